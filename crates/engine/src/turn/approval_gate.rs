//! Part of step `act`: waits for the approval of a call that needs one.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use myclaw_llm::ToolCall;
use serde_json::Value;

use super::{RunContext, result_text};
use crate::approval::SAME_CALL;
use crate::{AgentRunEvent, Approval, ApprovalRequest, Approver, PendingToolCall};

/// The approver of a run's calls, and the approvals that hold for the whole run.
pub(super) struct ApprovalGate {
    approver: Option<Arc<dyn Approver>>,
    granted: Mutex<HashSet<(String, String)>>,
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

    /// Waits until the call may be made; the error is the text for the model.
    pub(super) async fn pass(
        &self,
        run: &RunContext,
        call: &PendingToolCall,
        reason: String,
    ) -> Result<(), String> {
        let Some(approver) = &self.approver else {
            return Err(result_text::nobody_to_ask(&reason));
        };
        let arguments = Value::Object(call.arguments.clone()).to_string();
        let grant = (format!("{}\n{reason}", call.tool_name), arguments);
        if self.granted.lock().unwrap_or_else(PoisonError::into_inner).contains(&grant) {
            return Ok(());
        }
        let session = Arc::clone(&run.events.session);
        let request = ApprovalRequest {
            session,
            run: run.events.run,
            call: call.clone(),
            reason: reason.clone(),
            always: SAME_CALL.to_owned(),
            diff: None,
        };
        if approver.has_approved(&request).await {
            return Ok(());
        }
        run.events.emit(AgentRunEvent::ApprovalRequested {
            tool_name: call.tool_name.clone(),
            tool_call_id: call.tool_call_id.clone(),
            arguments: call.arguments.clone(),
            reason,
        });
        let pause = run.pauses.begin();
        let approval = tokio::select! {
            biased;
            () = run.cancel.cancelled() => {
                approver.forget(&request.session, &call.tool_call_id).await;
                let stop = run.cancel.stop().unwrap_or(super::shared::Stop::User);
                return Err(result_text::stopped_before_start(stop).to_owned());
            }
            approval = approver.decide(&request) => approval,
        };
        drop(pause);
        let tool_call_id = call.tool_call_id.clone();
        run.events
            .emit(AgentRunEvent::ApprovalResolved { tool_call_id, approval: approval.clone() });
        match approval {
            Approval::Once => Ok(()),
            Approval::Always => {
                self.granted.lock().unwrap_or_else(PoisonError::into_inner).insert(grant);
                Ok(())
            }
            Approval::Denied { reason } => Err(result_text::denied(&reason)),
        }
    }
}
