//! The process of a helper, and how it ends.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use myclaw_files::portable::{DirBuilderExt, ExitStatusExt};
use myclaw_sandbox::Confined;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::ENDED;

/// Bytes of the helper's error output that are kept, from its end. It prints only when it fails.
const ERRORS_KEPT: usize = 4 << 10;
/// Longest wait for the end of a helper that closed its output, and then for the rest of its errors.
const END_GRACE: Duration = Duration::from_millis(500);
/// `SIGKILL`, which the kernel sends when memory runs out.
const KILLED: i32 = 9;

/// How the names of the directories for temporary files begin.
const TEMPORARY_PREFIX: &str = "tmp-";

/// The process and what ends with it.
pub(super) struct Process {
    confined: Confined,
    errors: AbortOnDropHandle<Vec<u8>>,
    /// Removed after the process has ended.
    temporary: TempDir,
}

impl Process {
    /// Reads the errors from now on. `temporary` is removed when the process has ended.
    pub(super) fn new(confined: Confined, errors: ChildStderr, temporary: TempDir) -> Self {
        let errors = AbortOnDropHandle::new(tokio::spawn(read_end(errors)));
        Self { confined, errors, temporary }
    }

    /// Ends the process with everything it started. Returns why it ended: `problem`, with what is known about it.
    pub(super) async fn end(mut self, problem: &str) -> String {
        if problem == ENDED {
            // It is ending by itself, and its exit code says why.
            drop(timeout(END_GRACE, self.confined.wait()).await);
        }
        let status = self.confined.end().await;
        let printed = timeout(END_GRACE, self.errors).await;
        let printed = printed.ok().and_then(Result::ok).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed);
        let temporary = self.temporary;
        // A failure leaves files in the session's own directory, which is deleted with the session.
        drop(tokio::task::spawn_blocking(move || temporary.close()).await);
        let Ok(status) = status else { return problem.to_owned() };
        if let Some(failure) = self.confined.setup_failure(status, &printed) {
            return failure;
        }
        match (problem, printed.trim()) {
            (ENDED, "") => describe(status),
            (ENDED, printed) => format!("{}: {printed}", describe(status)),
            (problem, _) => problem.to_owned(),
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(KILLED)) => "killed by signal 9, perhaps because memory ran out".to_owned(),
        (None, signal) => format!("ended by signal {}", signal.unwrap_or_default()),
    }
}

/// The end of what the helper prints as errors.
async fn read_end(mut errors: ChildStderr) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut piece).await {
        kept.extend_from_slice(&piece[..count]);
        let surplus = kept.len().saturating_sub(ERRORS_KEPT);
        kept.drain(..surplus);
    }
    kept
}

/// A directory for temporary files that only this user can enter.
pub(super) fn make_temporary(scratch: &Path) -> io::Result<TempDir> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(scratch)?;
    tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempdir_in(scratch)
}
