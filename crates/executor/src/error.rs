//! Why there is no helper process.

use myclaw_sandbox::SandboxError;

/// Why the helper process could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutorError {
    /// The sandbox cannot be set up.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A directory that the helper needs could not be made.
    #[error(
        "cannot prepare the directories of the sandbox: {0}; check that the disk has room and is writable"
    )]
    Directory(#[source] std::io::Error),
    /// The helper ended before it was ready, or it is not usable.
    #[error("the sandboxed helper process could not be started: {0}")]
    Start(String),
}
