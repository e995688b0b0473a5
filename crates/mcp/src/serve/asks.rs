//! Requests of the server to a client, and the answers that they wait for.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

type Outcome = Result<Value, String>;

/// The requests that wait. Nobody can guess their ids.
#[derive(Default)]
pub struct Asks(Mutex<HashMap<String, oneshot::Sender<Outcome>>>);

/// Takes a request back that nobody waits for any more.
struct Waiting<'a> {
    asks: &'a Asks,
    id: String,
    send: &'a (dyn Fn(Value) + Send + Sync),
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.asks.0.lock().remove(&self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": "no answer is needed any more"});
            (self.send)(
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
            );
        }
    }
}

impl Asks {
    /// Sends a request with `send`, and waits for the answer.
    ///
    /// # Errors
    /// What the client says against it.
    pub async fn ask(
        &self,
        method: &str,
        params: Value,
        send: &(dyn Fn(Value) + Send + Sync),
    ) -> Outcome {
        let id = format!("myclaw-{}", uuid::Uuid::new_v4().simple());
        let (sender, answered) = oneshot::channel();
        self.0.lock().insert(id.clone(), sender);
        let waiting = Waiting { asks: self, id, send };
        send(json!({"jsonrpc": "2.0", "id": waiting.id, "method": method, "params": params}));
        let answer = answered.await;
        drop(waiting);
        answer.unwrap_or_else(|_| Err("the question was withdrawn".to_owned()))
    }

    /// Takes the answer of a client. False if no request with this id waits.
    pub fn answer(&self, id: &Value, outcome: Outcome) -> bool {
        let asked = id.as_str().and_then(|id| self.0.lock().remove(id));
        asked.is_some_and(|asked| asked.send(outcome).is_ok())
    }
}
