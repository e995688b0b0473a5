//! Step `closing`: a run that reached a limit asks the model once for a summary.
//!
//! The request and the summary are rows of the log, so the next run continues from them. The tools stay in the request,
//! because some providers refuse a session with tool calls if they are missing, and because the provider's cache
//! depends on them. The request forbids tool calls; a call that arrives anyway is not made.

use std::pin::pin;
use std::time::Duration;

use myclaw_llm::{AssistantMessage, Message, ToolCall};
use myclaw_session::{Role, TranscriptMessage};
use serde_json::json;

use super::shared::Stop;
use super::time_limit::{TimeLimit, within};
use super::{Shared, Turn, act, result_text};
use crate::transcript::with_meta;
use crate::{AgentRunEvent, Bound, Notice, RunError, ToolOutput};

const INSTRUCTION: &str = include_str!("../../prompts/closing.md");

/// Most time for the summary: enough for a short answer of a slow model.
const CLOSING_TIME: Duration = Duration::from_secs(60);

/// Field of the request's meta: the limit that was reached.
const BOUND: &str = "bound";

/// Emits the limit that was reached.
pub(super) fn announce(shared: &Shared, bound: Bound, config_key: &str) {
    let message = format!("the run ends here, because {} ({config_key})", bound.reason());
    shared.emit(AgentRunEvent::BoundReached { bound, message });
}

impl Turn<'_> {
    /// Asks for the summary once, without waiting for a key: the run has already reached its limit. The run does not
    /// fail if the summary fails.
    pub(super) async fn summarise_closing(&mut self, bound: Bound) -> Result<(), RunError> {
        let no_summary = |reason: String| Notice::NoClosingSummary { reason };
        if !self.call.has_key_now(self.shared.now_ms()) {
            self.shared.notice(no_summary("every key is in cooldown after failures".to_owned()));
            return Ok(());
        }
        self.call.ask_for_closing_summary();
        append_request(&mut self.shared, bound)?;
        // The time of the run may be used up.
        self.shared.run.cancel.restart_time();
        let cancel = self.shared.run.cancel.token().clone();
        let limit = TimeLimit::new(CLOSING_TIME, &self.shared.run.pauses);
        let answer = within(Some(limit), &cancel, pin!(self.next_message())).await;
        match answer {
            Ok(message) => {
                if message.text().trim().is_empty() {
                    self.shared.notice(no_summary("the model gave an empty answer".to_owned()));
                }
                append_answer(&mut self.shared, message)
            }
            Err(RunError::Aborted) if self.shared.run.cancel.stop() == Some(Stop::User) => {
                Err(RunError::Aborted)
            }
            Err(error @ RunError::Session(_)) => Err(error),
            Err(error) => {
                self.shared.notice(no_summary(error.to_string()));
                Ok(())
            }
        }
    }
}

fn append_answer(shared: &mut Shared, message: AssistantMessage) -> Result<(), RunError> {
    shared.tally.last_call_usage = message.usage;
    let calls: Vec<ToolCall> = match message.stop_reason.keeps_tool_calls() {
        true => message.tool_calls().cloned().collect(),
        false => Vec::new(),
    };
    shared.log.append(Message::Assistant(message))?;
    for call in calls {
        act::append_result(shared, &call, ToolOutput::error(result_text::CLOSING_CALL))?;
    }
    Ok(())
}

fn append_request(shared: &mut Shared, bound: Bound) -> Result<(), RunError> {
    let text = INSTRUCTION.trim_end().replace("{reason}", bound.reason());
    let row = TranscriptMessage::new(Role::User, text, shared.now_ms());
    Ok(shared.log.append_user_rows(vec![with_meta(row, BOUND, json!(bound))])?)
}
