//! First rung: the older part of the conversation becomes a summary.
//!
//! A compaction is an entry of the log. What it summarises stays in the file; the next request, in this run and in
//! all later ones, starts from it.

use std::fmt::Write;

use myclaw_llm::{CallFailure, Message, ModelRequest, PairedMessages, ThinkingLevel, UserMessage};
use myclaw_session::{CompactionEntry, EntryId, Role, TranscriptMessage};

use serde_json::Value;

use super::estimated_tokens;
use crate::transcript::row_to_message;
use crate::turn::{Turn, call};
use crate::{AgentRunEvent, RunError};

/// Messages that stay as they are.
const KEPT_MESSAGES: usize = 10;

/// Characters of each tool result in the summary's input: enough to tell what it was.
const TOOL_TEXT_CHARS: usize = 500;

/// Bytes of summary input for each token of the model's window: at some four bytes a token this fills half of it.
const INPUT_BYTES_PER_WINDOW_TOKEN: u64 = 2;

/// A compaction ahead of the provider's refusal must take at least this part of the request away. Otherwise a
/// conversation whose newest messages fill the window would be summarised again before each call.
const WORTHWHILE_SHARE: u64 = 4;

/// Takes the place of what is left out without a summary.
const LEFT_OUT: &str = "The earlier messages of this conversation do not fit the context window and were left out \
                        without a summary. They are still in the session file; ask the user for what you need of them.";

const INSTRUCTION: &str = include_str!("../../../prompts/summarise.md");

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    /// The estimate says that it will not fit.
    Estimate,
    /// The provider refused it.
    Refusal,
}

/// Summarises all but the newest messages; whether anything changed.
pub(super) async fn compact(turn: &mut Turn<'_>, trigger: Trigger) -> Result<bool, RunError> {
    let old_count = turn.conversation.messages().len();
    let tail = turn.conversation.tail()?;
    let cut = cut_position(&tail.messages);
    let (older, kept) = tail.messages.split_at(cut);
    let Some(first_kept) = kept.first().filter(|_| cut > 0) else {
        turn.emit(AgentRunEvent::Compaction { old_count, new_count: old_count });
        return Ok(false);
    };
    let tokens_before = estimated_tokens(turn);
    let older_tokens: u64 = older.iter().map(crate::estimate::row_cost).sum();
    if trigger == Trigger::Estimate && older_tokens < tokens_before / WORTHWHILE_SHARE {
        return Ok(false);
    }
    let earlier_summary = tail.compaction.as_ref().map(|compaction| compaction.summary.as_str());
    let summary = summarise(turn, earlier_summary, older).await?;
    let counts = Counts { tokens_before, old_count, new_count: kept.len() + 1 };
    let entry = entry(turn, summary, first_kept.id, counts);
    turn.conversation.append_compaction(entry)?;
    turn.emit(counts.event());
    Ok(true)
}

/// Starts the conversation at the loaded end of a log that is too long to be read whole.
pub(super) fn leave_out_older_messages(
    turn: &mut Turn<'_>,
    first_kept_id: EntryId,
) -> Result<(), RunError> {
    turn.notice(
        "the session is longer than the model's context window; its oldest messages are no longer sent",
    );
    let kept = turn.conversation.messages().len();
    let counts =
        Counts { tokens_before: estimated_tokens(turn), old_count: kept, new_count: kept + 1 };
    let entry = entry(turn, LEFT_OUT.to_owned(), first_kept_id, counts);
    turn.conversation.append_compaction_before_all(&entry)?;
    turn.emit(counts.event());
    Ok(())
}

#[derive(Clone, Copy)]
struct Counts {
    tokens_before: u64,
    old_count: usize,
    new_count: usize,
}

impl Counts {
    fn event(self) -> AgentRunEvent {
        AgentRunEvent::Compaction { old_count: self.old_count, new_count: self.new_count }
    }
}

fn entry(
    turn: &Turn<'_>,
    summary: String,
    first_kept_id: EntryId,
    counts: Counts,
) -> CompactionEntry {
    CompactionEntry {
        id: EntryId::generate(),
        ts: turn.now_ms(),
        summary,
        first_kept_id,
        tokens_before: counts.tokens_before,
        old_count: counts.old_count as u64,
        new_count: counts.new_count as u64,
    }
}

/// Where the kept part begins: the last ten messages, or a few more so that no result is parted from its call.
fn cut_position(rows: &[TranscriptMessage]) -> usize {
    let mut cut = rows.len().saturating_sub(KEPT_MESSAGES);
    while cut > 0 && rows[cut].role == Role::Tool {
        cut -= 1;
    }
    cut
}

/// Asks the model for a summary. A failure must not end the run: then a plain note says what is missing.
async fn summarise(
    turn: &mut Turn<'_>,
    earlier_summary: Option<&str>,
    older: &[TranscriptMessage],
) -> Result<String, RunError> {
    let model = &turn.model.model;
    let limit = (model.context_window * INPUT_BYTES_PER_WINDOW_TOKEN) as usize;
    let text = format!(
        "{INSTRUCTION}\n<conversation>\n{}</conversation>",
        render(earlier_summary, older, limit)
    );
    let messages = PairedMessages::repair(vec![Message::User(UserMessage::text(
        text,
        turn.params.clock.now_ms(),
    ))]);
    let key = call::key_of(turn, turn.rotation.current()).await?;
    let key = match &key {
        Ok(key) => key.as_ref(),
        Err(error) => return Ok(without_summary(turn, earlier_summary, older, &error.message)),
    };
    let request = ModelRequest {
        model,
        system_prompt: "",
        messages: &messages,
        tools: &[],
        max_output: None,
        thinking: ThinkingLevel::Off,
        api_key: key,
        limits: turn.limits.call,
    };
    let reason = match turn.provider.call(request, &turn.params.cancel, &mut |_event| {}).await {
        Ok(message) => {
            turn.tally.usage.add_call(&message.usage);
            let summary = message.text();
            if !summary.trim().is_empty() {
                return Ok(summary);
            }
            "the model gave an empty summary".to_owned()
        }
        Err(CallFailure::Aborted { .. }) => return Err(RunError::Aborted),
        Err(CallFailure::Failed { error, partial }) => {
            if let Some(partial) = partial {
                turn.tally.usage.add_call(&partial.usage);
            }
            error.message
        }
    };
    Ok(without_summary(turn, earlier_summary, older, &reason))
}

/// What takes the place of a summary that could not be had.
fn without_summary(
    turn: &Turn<'_>,
    earlier_summary: Option<&str>,
    older: &[TranscriptMessage],
    reason: &str,
) -> String {
    turn.notice(format!(
        "the older messages could not be summarised ({reason}); they are left out instead"
    ));
    let earlier = earlier_summary.map(|summary| format!("{summary}\n\n")).unwrap_or_default();
    format!("{earlier}{} later messages were left out without a summary: {reason}", older.len())
}

/// The rows as text for the summary, at most `limit` bytes: what does not fit is left out in the middle, because the
/// beginning holds the task and the end the state.
fn render(earlier_summary: Option<&str>, rows: &[TranscriptMessage], limit: usize) -> String {
    let mut text = String::new();
    if let Some(summary) = earlier_summary {
        let _infallible = writeln!(text, "summary of what came before: {summary}");
    }
    for row in rows {
        match row.role {
            Role::System => {}
            Role::User => {
                let _infallible = writeln!(text, "user: {}", row.content);
            }
            Role::Assistant => {
                let _infallible = writeln!(text, "assistant: {}{}", row.content, called_tools(row));
            }
            Role::Tool => {
                let short: String = row.content.chars().take(TOOL_TEXT_CHARS).collect();
                let _infallible = writeln!(text, "tool result: {short}");
            }
        }
    }
    leave_out_middle(text, limit)
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

fn leave_out_middle(text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let head = text.floor_char_boundary(limit / 4);
    let tail = text.ceil_char_boundary(text.len() - (limit - limit / 4));
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests;
