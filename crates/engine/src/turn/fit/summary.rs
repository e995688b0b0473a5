//! The summary itself: one model call, or a few where the text is long; the fallback models where that fails, and a
//! plain note where they fail too.

mod note;

use std::fmt::Write;

use futures_util::future::BoxFuture;
use myclaw_llm::{AssistantMessage, ErrorClass, Message, ModelError, PairedMessages, UserMessage};
use myclaw_session::{Role, Tail, TranscriptMessage};
use serde_json::Value;

pub(super) use self::note::LAST_REQUEST;
use self::note::Standing;

use crate::transcript::row_to_message;
use crate::turn::Shared;
use crate::{ActiveModel, Notice, RunError};

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
pub(super) const LARGEST_SHARE: u64 = 8;

/// Bytes in a token, on average.
const BYTES_PER_TOKEN: u64 = 4;

/// Stands where the middle of a log was not read.
const GAP: &str = "[… many messages left out …]\n";

const INSTRUCTION: &str = include_str!("../../../prompts/summarise.md");

/// The models that can write a summary.
pub(in crate::turn) trait Writers: Send {
    /// The one that answers.
    fn active(&self) -> &ActiveModel;

    /// The fallback at `place`, from 0.
    fn fallback(&self, place: usize) -> Option<&ActiveModel>;

    /// Asks one of them. The inner error is why it gives no summary with any of its keys.
    fn ask<'f>(
        &'f mut self,
        shared: &'f mut Shared,
        request: SummaryRequest<'f>,
    ) -> BoxFuture<'f, Result<Result<AssistantMessage, ModelError>, RunError>>;
}

/// What a model is asked for a summary with.
pub(in crate::turn) struct SummaryRequest<'f> {
    /// Which fallback is asked; `None` means the active model.
    pub(in crate::turn) fallback: Option<usize>,
    pub(in crate::turn) messages: &'f PairedMessages,
    /// Tokens that the summary may have.
    pub(in crate::turn) max_output: u64,
}

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
    shared: &mut Shared,
    writers: &mut dyn Writers,
    tail: &Tail,
    rows: Rows<'_>,
    focus: Option<&str>,
) -> Result<Summary, RunError> {
    let longest = share_bytes(writers.active().model.context_window);
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
    for number in 0..MAX_WRITERS {
        let mut writer = Writer { shared, writers, fallback: number.checked_sub(1) };
        let Some(model) = writer.model() else { break };
        let (name, window) = (model.reference(), model.model.context_window);
        let Some(error) = writer.write(&mut work).await? else {
            return Ok(Summary::Written(finished(work, window)));
        };
        if number + 1 < MAX_WRITERS
            && let Some(next) = writers.fallback(number)
        {
            shared.notice(Notice::SummaryFailed {
                model: name,
                next: next.reference(),
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

/// One of the models, at work.
struct Writer<'w> {
    shared: &'w mut Shared,
    writers: &'w mut dyn Writers,
    /// Which fallback it is; `None` means the active model.
    fallback: Option<usize>,
}

impl Writer<'_> {
    fn model(&self) -> Option<&ActiveModel> {
        self.fallback.map_or(Some(self.writers.active()), |place| self.writers.fallback(place))
    }

    /// Works as far as it can; why it went no further, if it did not. What it refuses as too long it gets in smaller
    /// pieces.
    async fn write(&mut self, work: &mut Work<'_>) -> Result<Option<ModelError>, RunError> {
        let Some(model) = self.model() else { return Ok(Some(no_summary())) };
        let refused = self.shared.conversation.smallest_refused(&model.reference());
        let window = model.model.context_window.min(refused.unwrap_or(u64::MAX));
        let mut limit =
            usize::try_from(window * INPUT_BYTES_PER_WINDOW_TOKEN).unwrap_or(usize::MAX);
        loop {
            let Some(error) = self.write_pieces(work, limit).await? else { return Ok(None) };
            if error.class != ErrorClass::ContextOverflow || work.refusals_left == 0 {
                return Ok(Some(error));
            }
            work.refusals_left -= 1;
            limit = limit.min(work.text.len()) / 2;
        }
    }

    /// Summarises one piece of at most `limit` bytes after the other; why it went no further, if it did not.
    async fn write_pieces(
        &mut self,
        work: &mut Work<'_>,
        limit: usize,
    ) -> Result<Option<ModelError>, RunError> {
        let text = std::mem::take(&mut work.text);
        let pieces = pieces(&text, limit, work.calls_left);
        for (number, piece) in pieces.iter().enumerate() {
            match self.call(work, piece).await? {
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

    /// One part of the summary. The inner error is why there is none.
    async fn call(
        &mut self,
        work: &Work<'_>,
        piece: &str,
    ) -> Result<Result<String, ModelError>, RunError> {
        let Some(model) = self.model().map(|choice| &choice.model) else {
            return Ok(Err(no_summary()));
        };
        let max_output = model.max_output.min(model.context_window / LARGEST_SHARE);
        let message = UserMessage::text(work.request(piece), self.shared.now_ms());
        let messages = PairedMessages::repair(vec![Message::User(message)]);
        let request = SummaryRequest { fallback: self.fallback, messages: &messages, max_output };
        let message = match self.writers.ask(self.shared, request).await? {
            Ok(message) => message,
            Err(error) => return Ok(Err(error)),
        };
        self.shared.tally.usage.add_call(&message.usage);
        let summary = message.text();
        Ok(if summary.trim().is_empty() { Err(no_summary()) } else { Ok(summary) })
    }
}

impl Work<'_> {
    /// The text that asks for a summary of `piece`.
    fn request(&self, piece: &str) -> String {
        let focus = self.focus.map_or_else(String::new, |focus| {
            format!("\nPay attention to this above all: {focus}\n")
        });
        let before = self.so_far.as_ref().map_or_else(String::new, |summary| {
            format!("summary of what came before: {summary}\n")
        });
        format!("{INSTRUCTION}{focus}\n<conversation>\n{before}{piece}</conversation>")
    }
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
