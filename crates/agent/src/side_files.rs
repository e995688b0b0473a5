//! Keeps the side files of sessions within the limits of the config, during a run.

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};

use myclaw_engine::Notice;
use myclaw_session::RemovedFiles;
use myclaw_tools::{JobRecord, outputs_of_running_jobs};

use crate::SessionConfig;

const MEGABYTE: u64 = 1024 * 1024;

impl SessionConfig {
    /// Removes old side files of the session, and once in an hour of all sessions, as the config says. A run does not wait
    /// for it: what it needs is younger than what is removed.
    pub fn trim_side_files(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        // Without files of its own, the session has added nothing to any sum.
        let has_files = self.home.side_files().artifact_directory(&self.session_key).is_dir();
        let config = has_files.then(|| self.clone());
        let work = move |config: Self| {
            let (side_files, key) = (config.home.side_files(), &config.session_key);
            let limits = config.config.side_files;
            let jobs = RefCell::new(None);
            let is_needed = |path: &Path| is_output_of_a_job(&jobs, path);
            let most = config.most_side_files(u64::from(limits.session_mb) * MEGABYTE);
            let own = OnceCell::new();
            let is_needed_here = |path: &Path| config.is_output_of_own_job(&own, path);
            config.report(side_files.trim(key, most, &is_needed_here), "this session", "sessionMb");
            let most = u64::from(limits.total_mb) * MEGABYTE;
            config.report(side_files.trim_all(most, &is_needed), "all sessions", "totalMb");
        };
        // What is left because the work failed is removed by the next run.
        async move {
            if let Some(config) = config {
                drop(tokio::task::spawn_blocking(move || work(config)).await);
            }
        }
    }

    /// Makes the side files here those that other machines have, where several share the session. What fails is tried again by
    /// the next run. Blocks.
    pub(crate) fn share_side_files(&self) {
        if let Err(error) = self.home.side_files().share(&self.session_key) {
            let session = self.session_key.as_str();
            tracing::warn!(session, %error, "side files cannot be shared with other machines");
        }
    }

    /// Most bytes of side files, where the config says `most`, and 0 is no limit: at most half of what a session may hold that has a quota, in
    /// which they count.
    fn most_side_files(&self, most: u64) -> u64 {
        match self.quota().and_then(|quota| quota.bytes).map(|bytes| bytes / 2) {
            Some(room) if most == 0 => room,
            Some(room) => most.min(room),
            None => most,
        }
    }

    /// Whether a running job of the session writes to the file. The records are read once for many files.
    fn is_output_of_own_job(&self, read: &OnceCell<Vec<PathBuf>>, path: &Path) -> bool {
        let outputs = read.get_or_init(|| {
            let jobs = self.home.stores().jobs.all(self.session_key.as_str());
            let running = jobs.into_iter().filter(JobRecord::is_running);
            running.map(|job| job.output).collect()
        });
        outputs.iter().any(|output| output == path)
    }

    /// Tells the owner what was removed of side files because of a limit, whose key in `sideFiles` is `limit`.
    fn report(&self, outcome: std::io::Result<RemovedFiles>, of: &str, limit: &str) {
        let session = self.session_key.as_str();
        match outcome {
            Ok(RemovedFiles { files: 0, .. }) => {}
            Ok(RemovedFiles { files, bytes }) => {
                let message = format!(
                    "the oldest {files} files of large outputs, downloads and undo of {of} were removed ({} MB): they took \
                     more room than `sideFiles.{limit}` permits",
                    bytes.div_ceil(MEGABYTE)
                );
                tracing::info!(session, files, bytes, "{message}");
                self.emit_notice(Notice::Files { text: message });
            }
            Err(error) => tracing::warn!(session, %error, "side files of {of} cannot be removed"),
        }
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
