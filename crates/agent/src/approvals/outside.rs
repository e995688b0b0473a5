//! Answers that other processes give, such as `myclaw sessions answer`.

use std::time::Duration;

use myclaw_engine::{Approval, ApprovalRequest};

use super::words::WrittenAnswer;
use super::{Question, SessionApprover, refusal, report, run_instead};

/// How often the process that asks looks for an answer.
const INTERVAL: Duration = Duration::from_millis(500);

impl SessionApprover {
    /// Waits for an answer that another process gives; for ever if none does.
    pub(super) async fn answer_of_others(&self, request: &ApprovalRequest) -> Approval {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let (session, id) = (request.session.to_string(), request.call.tool_call_id.clone());
            let (of, call) = (session.clone(), id.clone());
            let looked = self.on_disk(move |store| store.waiting(&of, &call)).await;
            // A failure to read is logged once; after that no answer of others is looked for.
            let Some(waiting) = report(looked) else { return std::future::pending().await };
            let Some(answer) = waiting.and_then(|waiting| waiting.answer) else { continue };
            if let Some(approval) = approval(request, &answer) {
                return approval;
            }
            report(self.on_disk(move |store| store.reject(&session, &id)).await);
        }
    }
}

/// What an answer in words means; `None` if the question does not take it.
fn approval(request: &ApprovalRequest, answer: &str) -> Option<Approval> {
    let denied = |reason: Option<&str>| Approval::Denied { reason: refusal(reason) };
    let question = Question::from(request);
    Some(match question.read(answer)? {
        WrittenAnswer::Once => Approval::Once,
        WrittenAnswer::Always(scope) => request.always(scope)?,
        WrittenAnswer::No(reason) => denied(reason.as_deref()),
        WrittenAnswer::Said(words) => Approval::Said { words },
        WrittenAnswer::Cancel => Approval::Cancelled,
        WrittenAnswer::Instead(command) if question.is_plan() => Approval::Instead { command },
        WrittenAnswer::Instead(command) => denied(Some(&run_instead(&command))),
    })
}
