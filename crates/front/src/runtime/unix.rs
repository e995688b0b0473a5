//! Unix: the limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Most files and sockets that a gateway needs: its connections, as many to models, and the files of sessions.
const MOST_FILES: u64 = 16_384;

/// Lets this process open as many files as its user allows, up to 16,384. Systems begin with 1,024 or less, which
/// is not enough for a thousand clients. If that is refused, connections beyond the limit wait.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(MOST_FILES).min(MOST_FILES);
    if limit.current.is_some_and(|current| current < most) {
        let raised = Rlimit { current: Some(most), maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files cannot be raised");
        }
    }
}
