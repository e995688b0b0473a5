//! Requests of this program to the client, and the responses that they wait for.

use std::collections::HashMap;

use agent_client_protocol_schema::v1::RequestId;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;

use super::wire::Wire;

/// What the client responds: the result, or the message of an error.
type Response = Result<Value, String>;

/// The requests that wait for the client.
pub(super) struct Requests {
    wire: Wire,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    open: HashMap<String, oneshot::Sender<Response>>,
}

/// Removes a request when its response has come or nobody waits for it any more.
struct Waiting<'a>(&'a Requests, String);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().open.remove(&self.1);
    }
}

impl Requests {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, state: Mutex::default() }
    }

    /// Takes the client's response to a request of this program.
    pub(super) fn answer(&self, id: &RequestId, outcome: Response) {
        let RequestId::Str(id) = id else { return };
        if let Some(asked) = self.state.lock().open.remove(id) {
            // Whoever asked may be gone.
            let _ = asked.send(outcome);
        }
    }

    /// Sends a request, at once and after all updates before it, and waits for the response.
    ///
    /// # Errors
    /// What the client says against it, or that the response cannot be read.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> Result<T, String> {
        let (sender, answered) = oneshot::channel();
        let id = {
            let state = &mut *self.state.lock();
            state.last += 1;
            let id = format!("myclaw-{}", state.last);
            state.open.insert(id.clone(), sender);
            id
        };
        let waiting = Waiting(self, id.clone());
        self.wire.ask(RequestId::Str(id), method, params);
        let response = answered.await;
        drop(waiting);
        // Some clients answer with nothing where there is nothing to say.
        let value = match response.map_err(|_| "the request was withdrawn".to_owned())?? {
            Value::Null => Value::Object(serde_json::Map::new()),
            value => value,
        };
        serde_json::from_value(value).map_err(|error| format!("its answer cannot be read: {error}"))
    }
}
