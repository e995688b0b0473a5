//! The summary itself: one model call, or a few where the text is long; the fallback models where that fails, and a
//! plain note where they fail too.

mod note;

use std::fmt::Write;

use myclaw_llm::{ErrorClass, Message, ModelError, PairedMessages, UserMessage};
use myclaw_session::{Role, Tail, TranscriptMessage};
use serde_json::Value;

pub(super) use self::note::LAST_REQUEST;
use self::note::Standing;

use crate::transcript::row_to_message;
use crate::turn::Turn;
use crate::turn::call::call_for_summary;
use crate::{Notice, RunError};

/// Characters of each tool result in the summary's input: enough to tell what it was.
const TOOL_TEXT_CHARS: usize = 500;

/// Bytes of input for each token of the model's window: at some four bytes a token this fills half of it.
const INPUT_BYTES_PER_WINDOW_TOKEN: u64 = 2;

/// Most models that are asked for one summary.
const MAX_WRITERS: usize = 3;

/// Most calls that give a part of one summary. What is longer loses its middle: the beginning holds the task and the end the state.
const MAX_CALLS: usize = 4;

/// Most times that the text for one summary is refused as too long and goes out again in smaller pieces.
const MAX_REFUSALS: usize = 3;

/// Part of the window that a summary may fill.
const LARGEST_SHARE: u64 = 8;

/// Bytes in a token, on average.
const BYTES_PER_TOKEN: u64 = 4;

/// Stands where the middle of a log was not read.
const GAP: &str = "[… many messages left out …]\n";

const INSTRUCTION: &str = include_str!("../../../prompts/summarise.md");

/// What came of it.
pub(super) enum Summary {
    /// A model wrote one.
    Written(String),
    /// None did.
    Failed {
        /// Takes its place: says so, and keeps what an earlier summary said. For the model, so it does not say why.
        note: String,
        /// Why the first model did not.
        error: Box<ModelError>,
    },
}

/// What is to be summarised.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// The first rows of a log of which the middle was not read.
    pub(super) beginning: &'a [TranscriptMessage],
    /// Those that stand directly before what is kept.
    pub(super) older: &'a [TranscriptMessage],
}

impl Rows<'_> {
    fn as_text(self) -> String {
        if self.beginning.is_empty() {
            return render(self.older);
        }
        format!("{}{GAP}{}", render(self.beginning), render(self.older))
    }
}

/// What is still to be summarised.
struct Work<'a> {
    /// The summary of all that came before `text`.
    so_far: Option<String>,
    text: String,
    focus: Option<&'a str>,
    calls_left: usize,
    refusals_left: usize,
}

/// Asks the model to summarise `rows` and what was summarised before it, and the next one when it cannot. A failure
/// must not end the run.
pub(super) async fn of(
    turn: &mut Turn<'_>,
    tail: &Tail,
    rows: Rows<'_>,
    focus: Option<&str>,
) -> Result<Summary, RunError> {
    let longest = share_bytes(turn.model.model.context_window);
    let earlier = tail.compaction.as_ref().map(|earlier| Standing::read(&earlier.summary));
    let earlier = earlier.map(|standing| standing.into_text(longest));
    let so_far = earlier.filter(|summary| !summary.is_empty());
    let mut work = Work {
        so_far,
        text: rows.as_text(),
        focus,
        calls_left: MAX_CALLS,
        refusals_left: MAX_REFUSALS,
    };
    let mut first_error = None;
    let writers = MAX_WRITERS.min(1 + turn.candidates.waiting().count());
    for writer in 0..writers {
        // The others stay in line for the answer itself.
        let place = writer.checked_sub(1);
        turn.exchange_model(place);
        let written = write(turn, &mut work).await;
        let (name, window) = (turn.model.reference(), turn.model.model.context_window);
        turn.exchange_model(place);
        let Some(error) = written? else { return Ok(Summary::Written(finished(work, window))) };
        if writer + 1 < writers
            && let Some(next) = turn.candidates.waiting().nth(writer)
        {
            turn.notice(Notice::SummaryFailed {
                model: name,
                next: next.choice.reference(),
                error: error.message.clone(),
            });
        }
        first_error.get_or_insert(error);
    }
    let error = first_error.unwrap_or_else(no_summary);
    let standing = Standing::read(&work.so_far.unwrap_or_default());
    let note = standing.without(rows.older.len()).into_text(longest);
    Ok(Summary::Failed { note, error: Box::new(error) })
}

/// Lets one model work as far as it can; why it went no further, if it did not. What it refuses as too long it gets in
/// smaller pieces.
async fn write(turn: &mut Turn<'_>, work: &mut Work<'_>) -> Result<Option<ModelError>, RunError> {
    let refused = turn.conversation.smallest_refused(&turn.model.reference());
    let window = turn.model.model.context_window.min(refused.unwrap_or(u64::MAX));
    let mut limit = usize::try_from(window * INPUT_BYTES_PER_WINDOW_TOKEN).unwrap_or(usize::MAX);
    loop {
        let Some(error) = write_pieces(turn, work, limit).await? else { return Ok(None) };
        if error.class != ErrorClass::ContextOverflow || work.refusals_left == 0 {
            return Ok(Some(error));
        }
        work.refusals_left -= 1;
        limit = limit.min(work.text.len()) / 2;
    }
}

/// Lets a model summarise one piece of at most `limit` bytes after the other; why it went no further, if it did not.
async fn write_pieces(
    turn: &mut Turn<'_>,
    work: &mut Work<'_>,
    limit: usize,
) -> Result<Option<ModelError>, RunError> {
    let text = std::mem::take(&mut work.text);
    let pieces = pieces(&text, limit, work.calls_left);
    for (number, piece) in pieces.iter().enumerate() {
        match call(turn, work, piece).await? {
            Ok(summary) => {
                work.so_far = Some(summary);
                work.calls_left -= 1;
            }
            Err(error) => {
                work.text = pieces[number..].concat();
                return Ok(Some(error));
            }
        }
    }
    Ok(None)
}

/// The summary, cut to its share of the window.
fn finished(work: Work<'_>, window: u64) -> String {
    let mut text = work.so_far.unwrap_or_default();
    text.truncate(text.floor_char_boundary(share_bytes(window)));
    text
}

/// Bytes of the part of a window that a summary may fill.
pub(super) fn share_bytes(window: u64) -> usize {
    usize::try_from(window / LARGEST_SHARE * BYTES_PER_TOKEN).unwrap_or(usize::MAX)
}

/// One part of the summary. The inner error is why there is none.
async fn call(
    turn: &mut Turn<'_>,
    work: &Work<'_>,
    piece: &str,
) -> Result<Result<String, ModelError>, RunError> {
    let focus = work
        .focus
        .map(|focus| format!("\nPay attention to this above all: {focus}\n"))
        .unwrap_or_default();
    let before = work
        .so_far
        .as_ref()
        .map(|summary| format!("summary of what came before: {summary}\n"))
        .unwrap_or_default();
    let text = format!("{INSTRUCTION}{focus}\n<conversation>\n{before}{piece}</conversation>");
    let message = UserMessage::text(text, turn.now_ms());
    let messages = PairedMessages::repair(vec![Message::User(message)]);
    let model = &turn.model.model;
    let max_output = model.max_output.min(model.context_window / LARGEST_SHARE);
    let message = match call_for_summary(turn, &messages, max_output).await? {
        Ok(message) => message,
        Err(error) => return Ok(Err(error)),
    };
    turn.tally.usage.add_call(&message.usage);
    let summary = message.text();
    Ok(if summary.trim().is_empty() { Err(no_summary()) } else { Ok(summary) })
}

fn no_summary() -> ModelError {
    ModelError::new(ErrorClass::Unknown, "the model gave an empty summary")
}

/// `text` in pieces of at most `limit` bytes, cut between lines where there are any, and without its middle where
/// that would be more than `most`.
fn pieces(text: &str, limit: usize, most: usize) -> Vec<&str> {
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
    let superfluous = pieces.len().saturating_sub(most.max(1));
    let from = usize::from(most > 1);
    pieces.drain(from..from + superfluous);
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
