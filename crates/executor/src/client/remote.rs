//! The side that asks a node for calls: the same messages as to a helper, at the other end of a connection that somebody
//! else keeps.

use std::time::Duration;

use myclaw_engine::{ToolError, ToolOutput};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::helper::{Shared, Waiting};
use crate::frames;
use crate::protocol::{CallNumber, CallRequest, Reply, Request};

/// A node that makes calls. Its connection sends the requests that [`new`](Self::new) gives, and passes on what arrives.
#[derive(Debug)]
pub struct RemoteCalls {
    shared: Shared,
    /// Not more than two per call, and calls are counted.
    requests: mpsc::UnboundedSender<String>,
    most: usize,
}

/// Why a call has no result.
#[derive(Debug, PartialEq, Eq)]
pub enum RemoteCallError {
    /// As many calls run as the node takes.
    Full,
    /// The connection has ended.
    Gone,
    /// The node did not answer in time. The call was cancelled.
    Late,
    /// The node refused the call, or it failed.
    Failed(String),
}

impl RemoteCalls {
    /// A connection with at most `most` calls at a time, and the requests to send, as JSON.
    pub fn new(most: usize) -> (Self, mpsc::UnboundedReceiver<String>) {
        let (requests, queue) = mpsc::unbounded_channel();
        (Self { shared: Shared::default(), requests, most }, queue)
    }

    /// Makes a call. It ends on the node too when this future is dropped.
    ///
    /// # Errors
    /// There is no result.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<ToolOutput, RemoteCallError> {
        // Nobody watches the progress of a node.
        let (updates, _) = mpsc::channel(1);
        let (result, outcome) = oneshot::channel();
        let waiting = Waiting::Call { updates, result };
        let begun = self.shared.begin_within(waiting, self.most);
        let number = begun.ok_or(RemoteCallError::Gone)?.ok_or(RemoteCallError::Full)?;
        let _place = RemotePlace { calls: self, number };
        let call_id = number.to_string();
        let call = CallRequest { number, tool: tool.to_owned(), call_id, arguments, context: None };
        self.send(&Request::Call(call)).map_err(|why| RemoteCallError::Failed(why.to_string()))?;
        let outcome = timeout(limit, outcome).await.map_err(|_| RemoteCallError::Late)?;
        outcome.map_err(|_| RemoteCallError::Gone)?.check().map_err(|error| match error {
            ToolError::Failed(why) | ToolError::Aborted(why) => RemoteCallError::Failed(why),
        })
    }

    /// Takes a reply, as JSON. One to a call that does not wait is dropped.
    ///
    /// # Errors
    /// It is no reply to a call.
    pub fn take_text(&self, text: &str) -> Result<(), String> {
        match serde_json::from_str(text).map_err(|error| error.to_string())? {
            Reply::Update { .. } => Ok(()),
            reply @ Reply::Result { number, .. } => match self.shared.remove(number) {
                Some(waiting) => waiting.end(reply),
                None => Ok(()),
            },
            _ => Err("it is no reply to a call".to_owned()),
        }
    }

    /// Fails the calls that wait, and takes no more.
    pub fn end(&self) {
        self.shared.end("the connection has ended");
    }

    fn send(&self, request: &Request) -> std::io::Result<()> {
        let text = frames::text_of(frames::encode(request)?);
        // Without a connection, the calls that wait fail.
        let _ = self.requests.send(text);
        Ok(())
    }
}

/// The place of a call among those of a node. Dropped before its end, it cancels the call.
struct RemotePlace<'a> {
    calls: &'a RemoteCalls,
    number: CallNumber,
}

impl Drop for RemotePlace<'_> {
    fn drop(&mut self) {
        if self.calls.shared.remove(self.number).is_some() {
            let _ = self.calls.send(&Request::Cancel { number: self.number });
        }
    }
}
