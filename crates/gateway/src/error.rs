//! Failures of the gateway.

use std::net::SocketAddr;
use std::path::PathBuf;

use myclaw_agent::AgentError;
use myclaw_delivery::DeliveryError;
use myclaw_gateway_client::ClientError;
use myclaw_store::StoreError;

/// Why the gateway does not run, or refuses a message.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Another gateway serves the same state directory.
    #[error(
        "a gateway already runs for {} ({}); stop it first, or set MYCLAW_STATE_DIR to another directory",
        directory.display(),
        process_id.map_or_else(|| "its process is not known".to_owned(), |id| format!("process {id}"))
    )]
    AlreadyRuns {
        /// The state directory.
        directory: PathBuf,
        /// The other process, if it is known.
        process_id: Option<u32>,
    },
    /// The address is in use by another program, or not allowed.
    #[error(
        "cannot listen on {address}: {reason}; set gateway.port in the config file, or MYCLAW_GATEWAY_PORT, to a free \
         port, and gateway.bind to an address of this machine"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The failure.
        reason: String,
    },
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
    /// The certificate of the config cannot be used.
    #[error("{0}")]
    Certificate(String),
    /// The message, or what it names, cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// What the request names does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The caller may not do that.
    #[error("{0}")]
    Forbidden(String),
    /// It was asked too often.
    #[error("{0}")]
    TooOften(String),
    /// The session works, or is used by another process.
    #[error("{0}")]
    InUse(String),
    /// The gateway is about to end.
    #[error("the gateway is about to stop; try again when it runs again")]
    Stopping,
    /// The records are in a database that gateways share, and none runs here.
    #[error("{0}")]
    Elsewhere(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The agent failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Delivery refused a message.
    #[error(transparent)]
    Delivery(DeliveryError),
    /// A defect of the program.
    #[error("internal error: {0}. Please report it")]
    Internal(String),
}

impl From<ClientError> for GatewayError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::File { action, path, reason } => Self::File { action, path, reason },
            ClientError::Token(message) => Self::Token(message),
            ClientError::Certificate(message) => Self::Certificate(message),
            ClientError::Unusable(message) => Self::Unusable(message),
            ClientError::Store(error) => Self::Store(error),
            ClientError::Agent(error) => Self::Agent(error),
            ClientError::Internal(message) => Self::Internal(message),
        }
    }
}

impl From<DeliveryError> for GatewayError {
    fn from(error: DeliveryError) -> Self {
        match error {
            DeliveryError::Unusable(message) => Self::Unusable(message),
            DeliveryError::Schedule(error) => Self::Unusable(error.to_string()),
            DeliveryError::Stopping => Self::Stopping,
            DeliveryError::Store(error) => Self::Store(error),
            DeliveryError::Agent(error) => Self::Agent(error),
            DeliveryError::Internal(message) => Self::Internal(message),
            other => Self::Delivery(other),
        }
    }
}
