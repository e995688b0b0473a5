//! Approvals: who is asked about a call, what an answer covers, and which answers stay on disk.
//!
//! A front-end implements [`Approver`] and asks a person. `SessionApprover` stands between it and the engine: it
//! decides what "always" covers, looks for earlier answers, limits the wait, and records the question, so that a run
//! that is killed while it waits asks again.

mod store;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use myclaw_engine::{Approval, ApprovalRequest, Approver, ToolContext};
use myclaw_policy::ApprovalDigest;
use myclaw_session::SessionKey;
use serde_json::Value;

pub use myclaw_policy::{changes_direction, escape};
pub use store::{ApprovalStore, Grant, StoreError, WaitingApproval};

use crate::permissions::{POLICY, Permissions, Question, Verdict, is_config_change};
use crate::{AgentError, ConfigProposal, Home, SessionConfig};

/// The channel of the terminal, of editors and of programs on this machine. Its sessions share the answers of their
/// agent's owner.
const OWN_CHANNEL: &str = "cli";
/// Most characters of a call in a list.
const MAX_SUMMARY_CHARS: usize = 400;

/// Answers for the calls of one run.
pub(crate) struct SessionApprover {
    /// Who is asked; `None` if nobody can be.
    pub(crate) front_end: Option<Arc<dyn Approver>>,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) store: ApprovalStore,
    /// The sessions that share an answer.
    pub(crate) audience: String,
    /// Longest wait for an answer.
    pub(crate) limit: Duration,
    /// What the preview of a change needs.
    pub(crate) context: ToolContext,
    pub(crate) home: Home,
}

/// The sessions that share an answer: those of the agent on this machine, or one session of a channel.
pub(crate) fn audience(config: &SessionConfig) -> String {
    if config.session_key.parts().channel == OWN_CHANNEL {
        format!("agent:{}:{OWN_CHANNEL}", config.agent.id)
    } else {
        config.session_key.to_string()
    }
}

impl Approver for SessionApprover {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let Some(front_end) = &self.front_end else {
                return Approval::Denied { reason: nobody(request) };
            };
            let (question, diff) = self.describe(request).await;
            let call = &request.call;
            let waiting = WaitingApproval {
                session: request.session.to_string(),
                tool_call_id: call.tool_call_id.clone(),
                tool: call.tool_name.clone(),
                call: summary(request),
                reason: request.reason.clone(),
                ts: now_ms(),
            };
            // If the question cannot be recorded and the run is killed now, the next run reports the call as
            // interrupted.
            report(self.on_disk(move |store| store.begin_wait(waiting)).await);
            let mut request = request.clone();
            request.always.clone_from(&question.always);
            request.diff = diff;
            let answer = tokio::time::timeout(self.limit, front_end.decide(&request)).await;
            self.forget(&request.session, &request.call.tool_call_id).await;
            match answer {
                Err(_) => Approval::Denied { reason: unanswered(self.limit) },
                Ok(Approval::Always) => self.remember(&request, question).await,
                Ok(answer) => answer,
            }
        })
    }

    fn has_approved<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let digest = self.question(request).await.digest;
            let audience = self.audience.clone();
            report(self.on_disk(move |store| store.covers(&audience, digest)).await)
                .unwrap_or(false)
        })
    }

    fn was_asked<'a>(
        &'a self,
        session: &'a SessionKey,
        tool_call_id: &'a str,
    ) -> BoxFuture<'a, bool> {
        let (session, id) = (session.to_string(), tool_call_id.to_owned());
        Box::pin(async move {
            report(self.on_disk(move |store| store.waits(&session, &id)).await).unwrap_or(false)
        })
    }

    fn forget<'a>(&'a self, session: &'a SessionKey, tool_call_id: &'a str) -> BoxFuture<'a, ()> {
        let (session, id) = (session.to_string(), tool_call_id.to_owned());
        Box::pin(async move {
            report(self.on_disk(move |store| store.end_wait(&session, &id)).await);
        })
    }
}

impl SessionApprover {
    /// What "always" covers, and the change that the call would make.
    async fn describe(&self, request: &ApprovalRequest) -> (Question, Option<String>) {
        let (call, context) = (request.call.clone(), self.context.clone());
        let home = self.home.clone();
        let preview = tokio::task::spawn_blocking(move || {
            if is_config_change(&call.tool_name, &call.arguments) {
                let proposal = ConfigProposal::of_call(&home, &call.arguments);
                return Some(proposal.map_or_else(|why| why, |proposal| proposal.shown));
            }
            myclaw_tools::preview(&call.tool_name, &call.arguments, &context)
        });
        (self.question(request).await, preview.await.ok().flatten())
    }

    /// The question of the policy, or one about this very call if a hook of the config asks.
    async fn question(&self, request: &ApprovalRequest) -> Question {
        let (permissions, call) = (Arc::clone(&self.permissions), request.call.clone());
        let checking = tokio::task::spawn_blocking(move || permissions.check(&call));
        if let Ok(Verdict::NeedsApproval(question)) = checking.await
            && request.reason == format!("{POLICY}: {}", question.reason)
        {
            return question;
        }
        let call = &request.call;
        let subject = format!("{}\n{}", Value::Object(call.arguments.clone()), request.reason);
        Question {
            reason: request.reason.clone(),
            always: format!("this call of {} with the same arguments", call.tool_name),
            digest: ApprovalDigest::of_tool_call(
                &call.tool_name,
                &subject,
                &self.context.working_directory,
            ),
        }
    }

    /// Stores the answer "always". Without a place on disk it holds for this call only.
    async fn remember(&self, request: &ApprovalRequest, question: Question) -> Approval {
        let grant = Grant {
            digest: question.digest.to_string(),
            audience: self.audience.clone(),
            tool: request.call.tool_name.clone(),
            call: summary(request),
            covers: question.always,
            ts: now_ms(),
        };
        match report(self.on_disk(move |store| store.grant(grant)).await) {
            Some(()) => Approval::Always,
            None => Approval::Once,
        }
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ApprovalStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, AgentError> {
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || work(&store))
            .await
            .map_err(|error| AgentError::new(crate::FailureClass::Internal, error.to_string()))?
            .map_err(AgentError::from)
    }
}

/// Logs a failure of the store. The run goes on: without the store every call is asked about.
fn report<T>(outcome: Result<T, AgentError>) -> Option<T> {
    outcome.inspect_err(|error| tracing::warn!("approvals: {error}")).ok()
}

/// The call in one line, safe to show.
fn summary(request: &ApprovalRequest) -> String {
    let arguments = &request.call.arguments;
    let text = match arguments.get("command").or_else(|| arguments.get("path")) {
        Some(Value::String(text)) => text.clone(),
        _ => Value::Object(arguments.clone()).to_string(),
    };
    let escaped = escape(&text);
    match escaped.char_indices().nth(MAX_SUMMARY_CHARS) {
        Some((at, _)) => format!("{}…", &escaped[..at]),
        None => escaped,
    }
}

fn nobody(request: &ApprovalRequest) -> String {
    format!(
        "this run cannot ask anybody. The call needs an approval because: {}. The user can allow it: by continuing this \
         session in a terminal, with `myclaw chat --session {}`, or by changing that rule in the config file",
        request.reason, request.session
    )
}

fn unanswered(limit: Duration) -> String {
    format!(
        "nobody answered within {} s (tools.approvals.timeoutSeconds); ask the user before you try again",
        limit.as_secs()
    )
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
