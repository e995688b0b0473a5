//! Questions about calls that need an approval: an event asks, the command `approve` answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use myclaw_agent::{
    AlwaysScope, Approval, ApprovalRequest, Approver, BoxFuture, FactForm, ShownFact,
};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::Wire;

/// A session and the model's id for a call.
type CallKey = (String, String);

/// The questions that wait for the client program.
#[derive(Clone)]
pub(super) struct Approvals {
    wire: Wire,
    open: Arc<Mutex<HashMap<CallKey, oneshot::Sender<Answer>>>>,
}

/// The answer of the client program.
pub(super) enum Answer {
    Once,
    Always,
    No { reason: String },
}

/// The question in the form of the protocol.
#[derive(Serialize)]
#[serde(tag = "type", rename = "approval_requested", rename_all = "camelCase")]
struct Question<'a> {
    session: &'a str,
    tool_call_id: &'a str,
    tool_name: &'a str,
    arguments: &'a Map<String, Value>,
    reason: &'a str,
    shown: &'a [ShownFact],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    changes: &'a [ShownFact],
    #[serde(skip_serializing_if = "Option::is_none")]
    always: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<&'a str>,
}

/// Removes the question when its answer has come or nobody waits for it any more.
struct Waiting<'a>(&'a Approvals, CallKey);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

impl Approvals {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, open: Arc::default() }
    }

    /// Answers a question. False if there is none.
    pub(super) fn answer(&self, session: &str, tool_call_id: &str, answer: Answer) -> bool {
        let key = (session.to_owned(), tool_call_id.to_owned());
        let asked = self.lock().remove(&key);
        asked.is_some_and(|asked| asked.send(answer).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallKey, oneshot::Sender<Answer>>> {
        // The map is whole after every statement, so a panic elsewhere does not spoil it.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for Approvals {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let (sender, answered) = oneshot::channel();
            let call = &request.call;
            let key = (request.session.to_string(), call.tool_call_id.clone());
            let waiting = Waiting(self, key.clone());
            // It can be answered from the moment at which the program reads it.
            self.lock().insert(key, sender);
            let question = Question {
                session: request.session.as_str(),
                tool_call_id: &call.tool_call_id,
                tool_name: &call.tool_name,
                arguments: call.arguments.as_map(),
                reason: &request.reason,
                shown: &request.shown,
                changes: &request.changes,
                always: request.always.first().map(AlwaysScope::covers),
                diff: request
                    .shown
                    .iter()
                    .find(|fact| fact.form == FactForm::Diff)
                    .map(|fact| fact.text.as_str()),
            };
            self.wire.output.push_json(&question, self.wire.mode);
            self.wire.output.flush();
            let answer = answered.await;
            drop(waiting);
            match answer {
                Ok(Answer::Once) => Approval::Once,
                Ok(Answer::Always) => request.approved_for_good(),
                Ok(Answer::No { reason }) => Approval::Denied { reason },
                Err(_) => Approval::Denied { reason: "the question was withdrawn".to_owned() },
            }
        })
    }
}
