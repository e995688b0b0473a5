//! Part of step `act`: waits for the approval of a call that needs one.

use std::collections::HashMap;
use std::sync::Arc;

use myclaw_llm::ToolCall;
use parking_lot::Mutex;

use super::{RunContext, result_text};
use crate::{
    AgentRunEvent, AlwaysScope, Approval, ApprovalRequest, Approver, MAX_SHOWN_BYTES, PreparedCall,
};

/// Most questions about one call: what it depends on changes each time.
const MAX_QUESTIONS: usize = 5;

/// What may be done after a question.
pub(super) enum Passed {
    /// The call.
    Call(PreparedCall),
    /// The call with this command in the place of its own, if the rules permit that one.
    Instead(PreparedCall, String),
}

/// The approver of a run's calls, and the approvals that hold for the whole run.
pub(super) struct ApprovalGate {
    approver: Option<Arc<dyn Approver>>,
    /// The ids of the scopes that were approved for the whole run, with the ids of their commands.
    granted: Mutex<HashMap<String, Option<String>>>,
}

impl ApprovalGate {
    pub(super) fn new(approver: Option<Arc<dyn Approver>>) -> Self {
        Self { approver, granted: Mutex::default() }
    }

    /// Whether an earlier run was killed while it waited for the answer about this call.
    pub(super) async fn was_asked(&self, run: &RunContext, call: &ToolCall) -> bool {
        match &self.approver {
            Some(approver) => approver.was_asked(&run.session_key, &call.id).await,
            None => false,
        }
    }

    /// Withdraws the question about a call whose result does not depend on the answer any more.
    pub(super) async fn forget(&self, run: &RunContext, call: &ToolCall) {
        if let Some(approver) = &self.approver {
            approver.forget(&run.session_key, &call.id).await;
        }
    }

    /// Waits until the call may be made, and returns it as it was approved; the error is the text for the model. When an
    /// answer has come, `again` reads the call once more, and what is different then is asked about.
    pub(super) async fn pass<F>(
        &self,
        run: &RunContext,
        mut call: PreparedCall,
        reason: &str,
        again: impl Fn(&PreparedCall) -> F,
    ) -> Result<Passed, String>
    where
        F: Future<Output = Result<PreparedCall, String>>,
    {
        let Some(approver) = &self.approver else {
            return Err(result_text::nobody_to_ask(reason));
        };
        let mut terms = approver.terms(&call, reason).await;
        let mut changes = Vec::new();
        let mut answers = Vec::new();
        for _ in 0..MAX_QUESTIONS {
            // An answer "always" was given to what was shown, so a change since then is asked about as well.
            let is_new = changes.is_empty();
            if is_new && self.has_granted(&terms.always) {
                return Ok(Passed::Call(call));
            }
            let request = ApprovalRequest {
                run: run.events.run,
                shown: terms.shown.clone(),
                always: terms.always.clone(),
                command_id: terms.command_id.clone(),
                changes,
                ..ApprovalRequest::new(Arc::clone(&run.events.session), call.clone(), reason)
            };
            if is_new && approver.has_approved(&request).await {
                return Ok(Passed::Call(call));
            }
            let facts = request.shown.iter().chain(&request.changes);
            let size = facts.map(|fact| fact.text.len()).sum();
            if size > MAX_SHOWN_BYTES {
                return Err(result_text::too_long_to_show(size, MAX_SHOWN_BYTES));
            }
            match ask(run, &**approver, &request).await? {
                Approval::Denied { reason } => {
                    self.withdraw(request.command_id.as_deref());
                    return Err(result_text::denied(&reason));
                }
                Approval::Instead { command } => return Ok(Passed::Instead(call, command)),
                // No question about whether a call is made wants words.
                Approval::Cancelled | Approval::Said { .. } => {
                    return Err(result_text::denied("the user closed the question"));
                }
                Approval::Always(scope) if request.always.contains(&scope) => {
                    answers.push((scope.id().to_owned(), request.command_id.clone()));
                }
                Approval::Once | Approval::Always(_) => {}
            }
            let now = again(&call).await?;
            let later = approver.terms(&now, reason).await;
            changes = terms.changes(&later);
            (call, terms) = (now, later);
            if changes.is_empty() {
                self.granted.lock().extend(answers);
                return Ok(Passed::Call(call));
            }
        }
        Err(result_text::KEEPS_CHANGING.to_owned())
    }

    fn has_granted(&self, scopes: &[AlwaysScope]) -> bool {
        let granted = self.granted.lock();
        scopes.iter().any(|scope| granted.contains_key(scope.id()))
    }

    /// Withdraws what was approved for the run of a command that is refused now, whatever its files held then.
    fn withdraw(&self, command_id: Option<&str>) {
        if command_id.is_some() {
            self.granted.lock().retain(|_, granted| granted.as_deref() != command_id);
        }
    }
}

/// Asks, and waits for the answer; the error is the text for the model.
async fn ask(
    run: &RunContext,
    approver: &dyn Approver,
    request: &ApprovalRequest,
) -> Result<Approval, String> {
    let call = &request.call;
    run.events.emit(AgentRunEvent::ApprovalRequested {
        tool_name: call.tool_name.clone(),
        tool_call_id: call.tool_call_id.clone(),
        arguments: call.arguments.as_map().clone(),
        reason: request.reason.clone(),
    });
    let pause = run.pauses.begin();
    let approval = tokio::select! {
        biased;
        () = run.cancel.cancelled() => {
            approver.forget(&request.session, &call.tool_call_id).await;
            let stop = run.cancel.stop().unwrap_or(super::shared::Stop::User);
            return Err(result_text::stopped_before_start(stop).to_owned());
        }
        approval = approver.decide(request) => approval,
    };
    drop(pause);
    let tool_call_id = call.tool_call_id.clone();
    run.events.emit(AgentRunEvent::ApprovalResolved { tool_call_id, approval: approval.clone() });
    Ok(approval)
}
