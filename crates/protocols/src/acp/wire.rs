//! Standard output: one JSON-RPC message per line, and nothing else.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    AgentResponse, CLIENT_METHOD_NAMES, Error, JsonRpcMessage, Notification, Request, RequestId,
    Response, SessionId, SessionNotification, SessionUpdate,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use myclaw_front::terminal::{Destination, JsonMode, Output};

/// The output for messages to the client.
#[derive(Clone)]
pub(super) struct Wire {
    output: Arc<Output>,
    mode: JsonMode,
}

impl Wire {
    /// Standard output. `on_closed` fires when the reader has closed it.
    pub(super) fn new(on_closed: CancellationToken) -> Self {
        let mode = JsonMode::for_destination(Destination::of_stdout());
        Self { output: Arc::new(Output::stdout(on_closed)), mode }
    }

    /// The buffered output.
    pub(super) fn output(&self) -> &Output {
        &self.output
    }

    /// Answers a request. The response is written at once, after all updates before it.
    pub(super) fn answer(&self, id: RequestId, outcome: Result<AgentResponse, Error>) {
        self.output.push_json(&JsonRpcMessage::wrap(Response::new(id, outcome)), self.mode);
        self.output.flush();
    }

    /// Asks the client for something. It is written at once, after all updates before it.
    pub(super) fn ask(&self, id: RequestId, method: &'static str, params: impl Serialize) {
        let request = Request { id, method: method.into(), params: Some(params) };
        self.output.push_json(&JsonRpcMessage::wrap(request), self.mode);
        self.output.flush();
    }

    /// Sends an update of a session. It may be buffered.
    pub(super) fn update(&self, session: &SessionId, update: SessionUpdate) {
        let notification = Notification {
            method: CLIENT_METHOD_NAMES.session_update.into(),
            params: Some(SessionNotification::new(session.clone(), update)),
        };
        self.output.push_json(&JsonRpcMessage::wrap(notification), self.mode);
    }
}
