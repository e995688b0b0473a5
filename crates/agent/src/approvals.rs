//! Approvals: who is asked about a call, what an answer covers, and which answers stay on disk.
//!
//! A front-end implements [`Approver`] and asks a person. `SessionApprover` stands between it and the engine: it
//! decides what "always" covers, looks for earlier answers, limits the wait, and records the question, so that a run
//! that is killed while it waits asks again.

mod message;
mod outside;
mod question;
mod store;
mod words;

use myclaw_files::{now_ms, shortened};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    AlwaysScope, Approval, ApprovalRequest, ApprovalTerms, Approver, CallEffect, PreparedCall,
    ToolContext,
};
use myclaw_session::SessionKey;
use serde_json::Value;

pub use myclaw_policy::{changes_direction, escape, is_deceptive};
pub use question::{Question, refusal};
pub use store::{ApprovalStore, Approvals, ApprovalsError, Grant, KeepApprovals, WaitingApproval};
pub use words::{INSTEAD, WrittenAnswer, read_answer, run_instead};

use crate::blocking::blocking;
use crate::permissions::Permissions;
use crate::{AgentError, SessionConfig, config_write::ConfigProposal};
use store::GRANT_FORMAT;

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
    /// The session, whose sandbox confines the look at the files that a call would change.
    pub(crate) session: SessionConfig,
    pub(crate) store: ApprovalStore,
    /// The sessions that share an answer.
    pub(crate) audience: String,
    /// Longest wait for an answer.
    pub(crate) limit: Duration,
    /// What the preview of a change needs.
    pub(crate) context: ToolContext,
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
    fn terms<'a>(
        &'a self,
        call: &'a PreparedCall,
        reason: &'a str,
    ) -> BoxFuture<'a, ApprovalTerms> {
        let (permissions, session) = (Arc::clone(&self.permissions), self.session.clone());
        let (context, own, why) = (self.context.clone(), call.clone(), reason.to_owned());
        let home = self.session.home.clone();
        Box::pin(async move {
            let reading = blocking(move || {
                // The files belong to the party that the tools work for, so they are read with the rights of the tools.
                let change = match own.subject.effects.contains(&CallEffect::ChangeConfig) {
                    true => {
                        let proposal = ConfigProposal::of_call(&home, own.arguments.as_map());
                        Some(proposal.map_or_else(|why| why, |proposal| proposal.shown))
                    }
                    false => session
                        .as_its_tools(|| myclaw_tools::preview(&own, &context))
                        .ok()
                        .flatten(),
                };
                permissions.terms(&own, &why, change)
            });
            reading.await.unwrap_or_else(|error| {
                tracing::warn!("approvals: {error}");
                ApprovalTerms { always: Vec::new(), ..ApprovalTerms::of_call(call, reason) }
            })
        })
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let Some(front_end) = &self.front_end else {
                return Approval::Denied { reason: nobody(request) };
            };
            let call = &request.call;
            let waiting = WaitingApproval {
                session: request.session.to_string(),
                tool_call_id: call.tool_call_id.clone(),
                tool: call.tool_name.clone(),
                call: summary(request),
                reason: request.reason.clone(),
                ts: now_ms(),
                begun: None,
                answer: None,
            };
            // If the question cannot be recorded and the run is killed now, the next run reports the call as
            // interrupted.
            report(self.on_disk(move |store| store.begin_wait(&waiting)).await);
            let asked = async {
                tokio::select! {
                    answer = front_end.decide(request) => answer,
                    answer = self.answer_of_others(request) => answer,
                }
            };
            let answer = tokio::time::timeout(self.limit, asked).await;
            self.forget(&request.session, &request.call.tool_call_id).await;
            match answer {
                Err(_) => Approval::Denied { reason: unanswered(self.limit) },
                Ok(Approval::Always(scope)) if request.always.contains(&scope) => {
                    self.remember(request, scope).await
                }
                Ok(Approval::Always(_)) => Approval::Once,
                Ok(Approval::Denied { reason }) => {
                    // An answer "always" from before a change does not hold any more: neither one that covers the changed
                    // call too, as one for a file does, nor one for the same command with other scripts and programs.
                    let ids: Vec<String> = match request.changes.is_empty() {
                        true => Vec::new(),
                        false => request.always.iter().map(|scope| scope.id().to_owned()).collect(),
                    };
                    let (audience, command_id) =
                        (self.audience.clone(), request.command_id.clone());
                    let withdraw = move |store: &ApprovalStore| {
                        store.withdraw(&audience, &ids, command_id.as_deref())
                    };
                    report(self.on_disk(withdraw).await);
                    Approval::Denied { reason }
                }
                Ok(answer) => answer,
            }
        })
    }

    fn has_approved<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let ids: Vec<String> =
                request.always.iter().map(|scope| scope.id().to_owned()).collect();
            if ids.is_empty() {
                return false;
            }
            let audience = self.audience.clone();
            report(self.on_disk(move |store| store.covers(&audience, &ids)).await).unwrap_or(false)
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
    /// Stores the answer "always". Without a place on disk it holds for this call only.
    async fn remember(&self, request: &ApprovalRequest, scope: AlwaysScope) -> Approval {
        let grant = Grant {
            digest: scope.id().to_owned(),
            command_id: request.command_id.clone(),
            audience: self.audience.clone(),
            tool: request.call.tool_name.clone(),
            call: summary(request),
            covers: escape(scope.covers()),
            ts: now_ms(),
            format: GRANT_FORMAT,
        };
        match report(self.on_disk(move |store| store.grant(&grant)).await) {
            Some(()) => Approval::Always(scope),
            None => Approval::Once,
        }
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ApprovalStore) -> Result<T, ApprovalsError> + Send + 'static,
    ) -> Result<T, AgentError> {
        let store = self.store.clone();
        blocking(move || work(&store)).await?.map_err(AgentError::from)
    }
}

/// Logs a failure of the store. The run continues: without the store every call is asked about.
fn report<T>(outcome: Result<T, AgentError>) -> Option<T> {
    outcome.inspect_err(|error| tracing::warn!("approvals: {error}")).ok()
}

/// The call in one line, safe to show in a list. A question shows all of it.
fn summary(request: &ApprovalRequest) -> String {
    let subject = &request.call.subject;
    let command = subject.commands().map(|command| command.command.clone());
    let paths = subject.targets().map(|target| target.path.display().to_string());
    let parts: Vec<String> = command.chain(paths).collect();
    let text = match parts.is_empty() {
        true => Value::Object(request.call.arguments.as_map().clone()).to_string(),
        false => parts.join(" "),
    };
    shortened(&escape(&text), MAX_SUMMARY_CHARS).into_owned()
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

#[cfg(test)]
mod tests;
