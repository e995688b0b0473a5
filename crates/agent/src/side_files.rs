//! Keeps the side files of sessions within the limits of the config, while a run goes on.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use myclaw_session::RemovedFiles;
use myclaw_tools::outputs_of_running_jobs;

use crate::SessionConfig;

const MEGABYTE: u64 = 1024 * 1024;

impl SessionConfig {
    /// Removes old side files of the session, and once in an hour of all sessions, as the config says. A run does not wait
    /// for it: what it needs is younger than what is removed.
    pub fn trim_side_files(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let (store, key) = (self.home.session_store(), self.session_key.clone());
        let limits = self.config.side_files;
        let work = move || {
            let jobs = RefCell::new(None);
            let is_needed = |path: &Path| is_output_of_a_job(&jobs, path);
            // Without files of its own, the session has added nothing to any sum.
            if !store.artifact_directory(&key).is_dir() {
                return;
            }
            let most = u64::from(limits.session_mb) * MEGABYTE;
            report(store.trim_side_files(&key, most, &is_needed), &format!("the session {key}"));
            let most = u64::from(limits.total_mb) * MEGABYTE;
            report(store.trim_all_side_files(most, &is_needed), "all sessions");
        };
        // What is left because the work failed is removed by the next run.
        async move { drop(tokio::task::spawn_blocking(work).await) }
    }
}

/// Whether a running job writes to the file. The records of a session's jobs are next to the directory of its files; they
/// are read once for many files in a row.
fn is_output_of_a_job(read: &RefCell<Option<(PathBuf, Vec<PathBuf>)>>, path: &Path) -> bool {
    let Some(records) = path.parent().map(|files| files.with_extension("jobs")) else {
        return false;
    };
    let mut read = read.borrow_mut();
    match &*read {
        Some((directory, outputs)) if *directory == records => outputs.iter().any(|it| it == path),
        _ => {
            let outputs = outputs_of_running_jobs(&records);
            let is_output = outputs.iter().any(|it| it == path);
            *read = Some((records, outputs));
            is_output
        }
    }
}

fn report(outcome: std::io::Result<RemovedFiles>, whose: &str) {
    match outcome {
        Ok(RemovedFiles { files: 0, .. }) => {}
        Ok(RemovedFiles { files, bytes }) => {
            tracing::info!(
                files,
                bytes,
                "removed the oldest side files of {whose}: they took more room than sideFiles permits"
            );
        }
        Err(error) => tracing::warn!(%error, "side files of {whose} cannot be removed"),
    }
}
