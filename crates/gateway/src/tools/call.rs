//! A call of one of the tools that a session uses on behalf of itself.

use std::sync::{Arc, OnceLock, Weak};

use myclaw_agent::SessionConfig;
use myclaw_delivery::delivery::Delivery;
use myclaw_engine::CallArguments;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::GatewayError;
use crate::server::Server;

/// The server, which is made after the tools.
pub(crate) type LateServer = Arc<OnceLock<Weak<Server>>>;

/// A call of one of the tools.
pub(super) struct Call<'a> {
    pub(super) delivery: &'a Arc<Delivery>,
    pub(super) server: &'a LateServer,
    pub(super) caller: &'a SessionConfig,
    /// The model's id of the call.
    pub(super) id: &'a str,
    /// The turn, in which no two calls have the same id.
    pub(super) turn: String,
    pub(super) arguments: CallArguments,
    pub(super) cancel: &'a CancellationToken,
}

impl Call<'_> {
    pub(super) fn arguments<T: DeserializeOwned>(&self) -> Result<T, GatewayError> {
        self.arguments.parse().map_err(|error| GatewayError::Unusable(error.to_string()))
    }
}
