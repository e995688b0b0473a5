//! Failures of a cluster.

use myclaw_session::SessionError;
use myclaw_store::StoreError;

/// Why the database of a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The address, or what else the user has to correct in the config or the environment.
    #[error("{0}")]
    Config(String),
    /// What the user asks for cannot be done as things are.
    #[error("{0}")]
    Unusable(String),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A session.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A file.
    #[error("failed to {action} {}: {reason}; check the free space and the permissions", path.display())]
    File {
        /// What was tried, in words that follow "failed to".
        action: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        reason: String,
    },
}
