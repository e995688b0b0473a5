//! Questions about calls that need an approval: an event asks, the command `approve` answers.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_agent::approvals::{Question, refusal};
use myclaw_engine::{Approval, ApprovalRequest, Approver, ScopeKind};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::oneshot;

use super::Wire;
use super::request::{Approve, Decision};
use myclaw_front::exit::CliError;

/// A session and the model's id for a call.
type CallKey = (String, String);

/// The questions that wait for the client program.
#[derive(Clone)]
pub(super) struct Approvals {
    wire: Wire,
    open: Arc<Mutex<HashMap<CallKey, Open>>>,
}

/// A question that waits, and where its answer goes.
struct Open {
    question: Question,
    answer: oneshot::Sender<Answer>,
}

/// The answer of the client program.
pub(super) enum Answer {
    Once,
    Always(Option<ScopeKind>),
    No { reason: Option<String> },
    Words(String),
    Cancel,
    Instead(String),
}

impl From<Approve> for Answer {
    fn from(command: Approve) -> Self {
        let Approve { decision, scope, reason, words, command, .. } = command;
        match decision {
            Decision::Once => Self::Once,
            Decision::Always => Self::Always(scope),
            Decision::No => Self::No { reason },
            Decision::Words => Self::Words(words.unwrap_or_default()),
            Decision::Cancel => Self::Cancel,
            Decision::Instead => Self::Instead(command.unwrap_or_default()),
        }
    }
}

/// The question in the form of the protocol.
#[derive(Serialize)]
#[serde(tag = "type", rename = "approval_requested")]
struct Event<'a> {
    #[serde(flatten)]
    question: &'a Question,
}

/// Removes the question when its answer has come or nobody waits for it any more.
struct Waiting<'a>(&'a Approvals, CallKey);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.open.lock().remove(&self.1);
    }
}

impl Approvals {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, open: Arc::default() }
    }

    /// Answers a question.
    ///
    /// # Errors
    /// There is none, or it does not offer this answer.
    pub(super) fn answer(
        &self,
        session: &str,
        tool_call_id: &str,
        answer: Answer,
    ) -> Result<(), CliError> {
        let none = || {
            CliError::usage(format!(
                "approve: no question about the call `{tool_call_id}` waits in this session; it was answered, its time \
                 is over, or `session` names another one"
            ))
        };
        let key = (session.to_owned(), tool_call_id.to_owned());
        let mut open = self.open.lock();
        let question = &open.get(&key).ok_or_else(none)?.question;
        let is_form = matches!(answer, Answer::Words(_));
        let is_yes = matches!(answer, Answer::Once | Answer::Always(_) | Answer::Instead(_));
        if question.wants.is_some() && is_yes || question.wants.is_none() && is_form {
            return Err(CliError::usage(match is_form {
                true => format!(
                    "approve: the question about the call `{tool_call_id}` wants no `words`; answer once or no"
                ),
                false => format!(
                    "approve: the question about the call `{tool_call_id}` wants words; answer with the decision `words`, `no` or `cancel`"
                ),
            }));
        }
        if matches!(&answer, Answer::Instead(command) if command.trim().is_empty()) {
            return Err(CliError::usage("approve: the decision `instead` needs a `command`"));
        }
        if matches!(answer, Answer::Always(scope) if !question.offers(scope)) {
            return Err(CliError::usage(format!(
                "approve: the question about the call `{tool_call_id}` does not offer `always` with this scope; its \
                 `always` lists what it offers"
            )));
        }
        let asked = open.remove(&key).ok_or_else(none)?;
        asked.answer.send(answer).map_err(|_| none())
    }
}

impl Approver for Approvals {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let (sender, answered) = oneshot::channel();
            let question = Question::from(request);
            let key = (question.session.clone(), question.tool_call_id.clone());
            let waiting = Waiting(self, key.clone());
            // It can be answered from the moment at which the program reads it.
            self.open.lock().insert(key, Open { question: question.clone(), answer: sender });
            self.wire.output.push_json(&Event { question: &question }, self.wire.mode);
            self.wire.output.flush();
            let answer = answered.await;
            drop(waiting);
            match answer {
                Ok(Answer::Once) => Approval::Once,
                Ok(Answer::Always(scope)) => request.always(scope).unwrap_or(Approval::Once),
                Ok(Answer::Words(words)) => Approval::Said { words },
                Ok(Answer::Cancel) => Approval::Cancelled,
                Ok(Answer::Instead(command)) => Approval::Instead { command },
                Ok(Answer::No { reason }) => {
                    Approval::Denied { reason: refusal(reason.as_deref()) }
                }
                Err(_) => Approval::Denied { reason: "the question was withdrawn".to_owned() },
            }
        })
    }
}
