//! Step `closing`: a run that reached a limit asks the model once for a summary.
//!
//! The request and the summary are rows of the log, so the next run goes on from them. The tools stay in the request,
//! because some providers refuse a conversation with tool calls without them and the provider's cache depends on them; a
//! call that comes all the same is not made.

use std::time::Duration;

use myclaw_llm::{Message, ToolCall};
use myclaw_session::{Role, TranscriptMessage};
use serde_json::json;

use super::{Turn, act, call, result_text, within};
use crate::failover::Pick;
use crate::transcript::with_meta;
use crate::{AgentRunEvent, Bound, Notice, RunError, ToolOutput};

const INSTRUCTION: &str = include_str!("../../prompts/closing.md");

/// How long the summary may take: time for a short answer of a slow model.
const CLOSING_TIME: Duration = Duration::from_secs(60);

/// Field of the request's meta: the limit that was reached.
const BOUND: &str = "bound";

/// Says which limit it was.
pub(super) fn announce(turn: &Turn<'_>, bound: Bound) {
    let message = format!("the run ends here, because {} ({})", bound.reason(), bound.setting());
    turn.emit(AgentRunEvent::BoundReached { bound, message });
}

/// Asks for the summary, once and without waiting for a key: the limit is reached. One that fails is no failure of the
/// run.
pub(super) async fn summarise(turn: &mut Turn<'_>, bound: Bound) -> Result<(), RunError> {
    if !matches!(turn.rotation.pick(turn.now_ms()), Pick::Ready(_)) {
        turn.notice(Notice::NoClosingSummary {
            reason: "every key rests after failures".to_owned(),
        });
        return Ok(());
    }
    turn.limits.max_retries = 0;
    append_request(turn, bound)?;
    // The run's own token may have fired with its time.
    turn.params.cancel = turn.abort.child_token();
    let cancel = turn.params.cancel.clone();
    let answer = within(Some(CLOSING_TIME), &cancel, call::call_model(turn)).await;
    match answer {
        Ok(message) => {
            turn.tally.count_closing(&message.usage);
            let calls: Vec<ToolCall> = match message.stop_reason.keeps_tool_calls() {
                true => message.tool_calls().cloned().collect(),
                false => Vec::new(),
            };
            turn.conversation.append(Message::Assistant(message))?;
            for call in calls {
                act::append_result(turn, &call, ToolOutput::error(result_text::CLOSING_CALL))?;
            }
            Ok(())
        }
        Err(RunError::Aborted) if turn.abort.is_cancelled() => Err(RunError::Aborted),
        Err(error @ RunError::Session(_)) => Err(error),
        Err(error) => {
            turn.notice(Notice::NoClosingSummary { reason: error.to_string() });
            Ok(())
        }
    }
}

fn append_request(turn: &mut Turn<'_>, bound: Bound) -> Result<(), RunError> {
    let text = INSTRUCTION.trim_end().replace("{reason}", bound.reason());
    let row = TranscriptMessage::new(Role::User, text, turn.now_ms());
    Ok(turn.conversation.append_user_rows(vec![with_meta(row, BOUND, json!(bound))])?)
}
