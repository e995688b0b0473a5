//! The summary itself: one model call, or a few where the text is long, and a plain note where that fails.

use std::fmt::Write;

use myclaw_llm::{CallFailure, Message, ModelRequest, PairedMessages, ThinkingLevel, UserMessage};
use myclaw_session::{Role, Tail, TranscriptMessage};
use serde_json::Value;

use crate::RunError;
use crate::transcript::row_to_message;
use crate::turn::{Turn, call};

/// Characters of each tool result in the summary's input: enough to tell what it was.
const TOOL_TEXT_CHARS: usize = 500;

/// Bytes of input for each token of the model's window: at some four bytes a token this fills half of it.
const INPUT_BYTES_PER_WINDOW_TOKEN: u64 = 2;

/// Most calls for one summary. What is longer loses its middle: the beginning holds the task and the end the state.
const MAX_CALLS: usize = 4;

/// Part of the window that a summary may fill.
const LARGEST_SHARE: u64 = 8;

/// Bytes in a token, on average.
const BYTES_PER_TOKEN: u64 = 4;

const INSTRUCTION: &str = include_str!("../../../prompts/summarise.md");

/// What came of it.
pub(super) enum Summary {
    /// The model wrote one.
    Written(String),
    /// It did not; `note` says so and keeps what an earlier summary said.
    Failed {
        /// For the model.
        note: String,
    },
}

/// Asks the model to summarise `older` and what was summarised before it. A failure must not end the run.
pub(super) async fn of(
    turn: &mut Turn<'_>,
    tail: &Tail,
    older: &[TranscriptMessage],
    focus: Option<&str>,
) -> Result<Summary, RunError> {
    let window = turn.model.model.context_window;
    let limit = usize::try_from(window * INPUT_BYTES_PER_WINDOW_TOKEN).unwrap_or(usize::MAX);
    let earlier = tail.compaction.as_ref().map(|earlier| earlier.summary.clone());
    let mut so_far = earlier.filter(|summary| !summary.is_empty());
    for piece in pieces(&render(older), limit) {
        match call(turn, so_far.as_deref(), piece, focus).await? {
            Ok(summary) => so_far = Some(summary),
            Err(reason) => {
                turn.notice(format!(
                    "the older messages could not be summarised ({reason}); they are left out instead"
                ));
                let earlier = so_far.map(|summary| format!("{summary}\n\n")).unwrap_or_default();
                let count = older.len();
                let note = format!(
                    "{earlier}{count} later messages were left out without a summary: {reason}"
                );
                return Ok(Summary::Failed { note });
            }
        }
    }
    let mut text = so_far.unwrap_or_default();
    let longest = usize::try_from(window / LARGEST_SHARE * BYTES_PER_TOKEN).unwrap_or(usize::MAX);
    text.truncate(text.floor_char_boundary(longest));
    Ok(Summary::Written(text))
}

/// One call. The inner error is why there is no summary.
async fn call(
    turn: &mut Turn<'_>,
    so_far: Option<&str>,
    piece: &str,
    focus: Option<&str>,
) -> Result<Result<String, String>, RunError> {
    let model = &turn.model.model;
    let focus = focus
        .map(|focus| format!("\nPay attention to this above all: {focus}\n"))
        .unwrap_or_default();
    let before = so_far
        .map(|summary| format!("summary of what came before: {summary}\n"))
        .unwrap_or_default();
    let text = format!("{INSTRUCTION}{focus}\n<conversation>\n{before}{piece}</conversation>");
    let message = UserMessage::text(text, turn.params.clock.now_ms());
    let messages = PairedMessages::repair(vec![Message::User(message)]);
    let key = match call::key_of(turn, turn.rotation.current()).await? {
        Ok(key) => key,
        Err(error) => return Ok(Err(error.message)),
    };
    let request = ModelRequest {
        model,
        system_prompt: "",
        messages: &messages,
        tools: &[],
        max_output: Some(model.max_output.min(model.context_window / LARGEST_SHARE)),
        thinking: ThinkingLevel::Off,
        api_key: key.as_ref(),
        limits: turn.limits.call,
    };
    match turn.provider.call(request, &turn.params.cancel, &mut |_event| {}).await {
        Ok(message) => {
            turn.tally.usage.add_call(&message.usage);
            let summary = message.text();
            Ok(match summary.trim().is_empty() {
                false => Ok(summary),
                true => Err("the model gave an empty summary".to_owned()),
            })
        }
        Err(failure) => {
            if let Some(usage) = failure.usage() {
                turn.tally.usage.add_call(usage);
            }
            match failure {
                CallFailure::Aborted { .. } => Err(RunError::Aborted),
                CallFailure::Failed { error, .. } => Ok(Err(error.message)),
            }
        }
    }
}

/// `text` in pieces of at most `limit` bytes, cut between lines where there are any, and without its middle where
/// that would be too many.
fn pieces(text: &str, limit: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > limit {
        let furthest = rest.floor_char_boundary(limit.max(4));
        let at = rest[..furthest].rfind('\n').map_or(furthest, |newline| newline + 1);
        let (piece, remainder) = rest.split_at(at);
        pieces.push(piece);
        rest = remainder;
    }
    pieces.push(rest);
    let superfluous = pieces.len().saturating_sub(MAX_CALLS);
    pieces.drain(1..1 + superfluous);
    pieces
}

/// The rows as text.
fn render(rows: &[TranscriptMessage]) -> String {
    let mut text = String::new();
    for row in rows {
        let _infallible = match row.role {
            Role::System => Ok(()),
            Role::User => writeln!(text, "user: {}", row.content),
            Role::Assistant => writeln!(text, "assistant: {}{}", row.content, called_tools(row)),
            Role::Tool => {
                let short: String = row.content.chars().take(TOOL_TEXT_CHARS).collect();
                writeln!(text, "tool result: {short}")
            }
        };
    }
    text
}

fn called_tools(row: &TranscriptMessage) -> String {
    let Some(Message::Assistant(assistant)) = row_to_message(row.clone()) else {
        return String::new();
    };
    let mut text = String::new();
    for call in assistant.tool_calls() {
        let arguments = Value::Object(call.arguments.clone()).to_string();
        let short: String = arguments.chars().take(TOOL_TEXT_CHARS).collect();
        let _infallible = write!(text, " [called {} {short}]", call.name);
    }
    text
}

#[cfg(test)]
mod tests;
