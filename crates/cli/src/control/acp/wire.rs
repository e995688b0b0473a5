//! Standard output: a JSON-RPC message a line, and nothing else.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    AgentResponse, CLIENT_METHOD_NAMES, Error, JsonRpcMessage, Notification, RequestId, Response,
    SessionId, SessionNotification, SessionUpdate,
};
use tokio_util::sync::CancellationToken;

use crate::terminal::{Destination, JsonMode, Output};

/// Where messages for the client go.
#[derive(Clone)]
pub(super) struct Wire {
    output: Arc<Output>,
    mode: JsonMode,
}

impl Wire {
    /// Standard output. `on_closed` fires when nobody reads it any more.
    pub(super) fn new(on_closed: CancellationToken) -> Self {
        let mode = JsonMode::for_destination(Destination::of_stdout());
        Self { output: Arc::new(Output::stdout(on_closed)), mode }
    }

    /// What is written to.
    pub(super) fn output(&self) -> &Output {
        &self.output
    }

    /// Answers a request. Somebody waits for that, so it is written at once, behind all that was told before.
    pub(super) fn answer(&self, id: RequestId, outcome: Result<AgentResponse, Error>) {
        self.output.push_json(&JsonRpcMessage::wrap(Response::new(id, outcome)), self.mode);
        self.output.flush();
    }

    /// Tells what happens in a session. It may wait for more.
    pub(super) fn update(&self, session: &SessionId, update: SessionUpdate) {
        let notification = Notification {
            method: CLIENT_METHOD_NAMES.session_update.into(),
            params: Some(SessionNotification::new(session.clone(), update)),
        };
        self.output.push_json(&JsonRpcMessage::wrap(notification), self.mode);
    }
}
