//! Failures of the side of a client.

use std::path::PathBuf;

use myclaw_agent::AgentError;
use myclaw_store::StoreError;

/// Why a program cannot use a gateway.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file cannot be read or written.
    #[error("failed to {action} {}: {reason}; check the free space and the permissions", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The failure.
        reason: String,
    },
    /// The token cannot be used.
    #[error("{0}")]
    Token(String),
    /// A certificate cannot be used.
    #[error("{0}")]
    Certificate(String),
    /// The gateway refuses the request, or what was given cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The store, which says whether a gateway runs, failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The agent of a node failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A defect of the program.
    #[error("internal error: {0}. Please report it")]
    Internal(String),
}

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// It may work later.
    Unreachable(String),
    /// It has to be corrected first.
    Refused(String),
}

impl From<ClientError> for ConnectError {
    fn from(error: ClientError) -> Self {
        Self::Refused(error.to_string())
    }
}
