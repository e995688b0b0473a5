//! A call of one of the tools that a session uses on behalf of itself.

use std::sync::{Arc, OnceLock, Weak};

use myclaw_agent::SessionConfig;
use myclaw_delivery::delivery::Delivery;
use myclaw_delivery::route::{Route, WEB};
use myclaw_delivery::schedule::{Asker, AskingSession, CronRequest};
use myclaw_engine::CallArguments;
use myclaw_gateway_client::GatewayToolKind;
use myclaw_session::SessionKey;
use serde::de::DeserializeOwned;
use serde_json::Value;
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
    pub(super) origin: CallOrigin,
}

/// Which program runs the session of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallOrigin {
    /// This one.
    Own,
    /// Another one of the owner on this machine, such as a chat in a terminal.
    Elsewhere,
}

impl Call<'_> {
    /// Carries the call out.
    pub(super) async fn answer(&self, kind: GatewayToolKind) -> Result<Value, GatewayError> {
        match kind {
            GatewayToolKind::Cron => self.cron().await,
            GatewayToolKind::Spawn => self.spawn().await,
            GatewayToolKind::Subagents => self.subagents().await,
            GatewayToolKind::Agents => self.agents(),
            GatewayToolKind::List => self.list().await,
            GatewayToolKind::History => self.history().await,
            GatewayToolKind::Send => self.send().await,
            GatewayToolKind::Message => self.message().await,
            GatewayToolKind::Voice => self.voice().await,
            GatewayToolKind::Gateway => self.gateway().await,
        }
    }

    /// Plans work. What is asked for in a session of another program, or in a chat of the page, appears there.
    async fn cron(&self) -> Result<Value, GatewayError> {
        let request = CronRequest::of_arguments(self.arguments.as_map().clone())?;
        let asker = AskingSession {
            agent: self.caller.agent.id.to_string(),
            appears_in: match self.origin {
                CallOrigin::Own => self.shown_session().await?,
                CallOrigin::Elsewhere => self.stored_session().await?.as_ref().map(Route::session),
            },
        };
        Ok(self.delivery.cron(request, Asker::Agent(asker)).await?)
    }

    /// The way into the session of the call, if its owner wrote there last from a client that shows it. The main session needs
    /// none: there it is as if it was asked from everywhere.
    async fn shown_session(&self) -> Result<Option<Route>, GatewayError> {
        let key = &self.caller.session_key;
        if self.caller.is_main() {
            return Ok(None);
        }
        let last = self.delivery.routes().last(key.as_str()).await?;
        let is_shown = last.is_some_and(|last| last.channel == WEB);
        Ok(is_shown.then(|| Route::shown_session(key)))
    }

    /// The session of the call, unless nothing of it is kept.
    async fn stored_session(&self) -> Result<Option<SessionKey>, GatewayError> {
        let key = self.caller.session_key.clone();
        let of_catalog = key.clone();
        let exists = self.with_sessions(move |catalog| Ok(catalog.exists(&of_catalog))).await?;
        Ok(exists.then_some(key))
    }

    pub(super) fn arguments<T: DeserializeOwned>(&self) -> Result<T, GatewayError> {
        self.arguments.parse().map_err(|error| GatewayError::Unusable(error.to_string()))
    }
}
