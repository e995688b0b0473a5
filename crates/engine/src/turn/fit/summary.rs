//! Writes the summary: one model call, or a few if the text is long. If the model fails the fallbacks are asked, and if
//! they fail too, a note replaces the summary.

mod note;

use std::fmt::Write;

use futures_util::future::BoxFuture;
use myclaw_llm::outside::{harmless, restored};
use myclaw_llm::{AssistantMessage, ErrorClass, Message, ModelError, PairedMessages, UserMessage};
use myclaw_session::{Role, Tail, TranscriptMessage};
use serde_json::Value;

use self::note::Standing;
pub(super) use self::note::{LAST_REQUEST, PLAN};

use crate::transcript::row_to_message;
use crate::turn::Shared;
use crate::{ActiveModel, Notice, RunError};

/// Characters of each tool result in the summary's input: enough to show what it was.
const TOOL_TEXT_CHARS: usize = 500;

/// Bytes of input per token of the model's window: at about four bytes per token this fills half of the window.
const INPUT_BYTES_PER_WINDOW_TOKEN: u64 = 2;

/// Most models that are asked for one summary.
const MAX_WRITERS: usize = 3;

/// Most calls that give a part of one summary. A longer text loses its middle, because the beginning contains the task
/// and the end the state.
const MAX_CALLS: usize = 4;

/// How often the text of one summary may be refused as too long and be sent again in smaller pieces.
const MAX_REFUSALS: usize = 3;

/// A summary may fill one part in this many of the window.
pub(super) const LARGEST_SHARE: u64 = 8;

/// Average bytes per token.
const BYTES_PER_TOKEN: u64 = 4;

/// Marks the place where the middle of a log was not read.
const GAP: &str = "[… many messages left out …]\n";

const INSTRUCTION: &str = include_str!("../../../prompts/summarise.md");

/// The models that can write a summary.
pub(in crate::turn) trait Writers: Send {
    /// The active model.
    fn active(&self) -> &ActiveModel;

    /// The fallback at `place`, from 0.
    fn fallback(&self, place: usize) -> Option<&ActiveModel>;

    /// Asks one of them. The inner error is the reason why it gives no summary with any of its keys.
    fn ask<'f>(
        &'f mut self,
        shared: &'f mut Shared,
        request: SummaryRequest<'f>,
    ) -> BoxFuture<'f, Result<Result<AssistantMessage, ModelError>, RunError>>;
}

/// A request for a summary.
pub(in crate::turn) struct SummaryRequest<'f> {
    /// The fallback to ask; `None` means the active model.
    pub(in crate::turn) fallback: Option<usize>,
    pub(in crate::turn) messages: &'f PairedMessages,
    /// Tokens that the summary may have.
    pub(in crate::turn) max_output: u64,
}

/// The outcome.
pub(super) enum Summary {
    /// A model wrote one.
    Written(String),
    /// No model wrote one.
    Failed {
        /// The text that replaces the summary. It mentions the missing messages and keeps the earlier summary. It gives
        /// no reason, because the model reads it.
        note: String,
        /// The failure of the first model.
        error: Box<ModelError>,
    },
}

/// The rows to summarise.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// The first rows of a log whose middle was not read.
    pub(super) beginning: &'a [TranscriptMessage],
    /// The rows directly before the kept part.
    pub(super) older: &'a [TranscriptMessage],
}

impl Rows<'_> {
    fn as_text(self) -> String {
        let mut text = String::new();
        if !self.beginning.is_empty() {
            render(&mut text, self.beginning);
            text.push_str(GAP);
        }
        render(&mut text, self.older);
        text
    }
}

/// The remaining work.
struct Work<'a> {
    /// The summary of everything before `text`.
    so_far: Option<String>,
    text: String,
    focus: Option<&'a str>,
    calls_left: usize,
    refusals_left: usize,
}

/// Asks the model to summarise `rows` and the earlier summary, and the next model if it fails. A failure does not end
/// the run.
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

/// One of the models, writing a summary.
struct Writer<'w> {
    shared: &'w mut Shared,
    writers: &'w mut dyn Writers,
    /// The place of the fallback; `None` means the active model.
    fallback: Option<usize>,
}

impl Writer<'_> {
    fn model(&self) -> Option<&ActiveModel> {
        self.fallback.map_or(Some(self.writers.active()), |place| self.writers.fallback(place))
    }

    /// Summarises as much as the model can, and returns the error that stopped it, if any. Text that it refuses as too
    /// long is sent again in smaller pieces.
    async fn write(&mut self, work: &mut Work<'_>) -> Result<Option<ModelError>, RunError> {
        let Some(model) = self.model() else { return Ok(Some(no_summary())) };
        let refused = self.shared.log.smallest_refused(&model.reference());
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

    /// Summarises one piece of at most `limit` bytes after the other, and returns the error that stopped it, if any.
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
                    // The model copied from text that was made harmless for it.
                    work.so_far = Some(restored(&summary).into_owned());
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

    /// Gets one part of the summary. The inner error is the reason why there is none.
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
        let summary = message.text();
        Ok(if summary.trim().is_empty() { Err(no_summary()) } else { Ok(summary) })
    }
}

impl Work<'_> {
    /// The text that requests a summary of `piece`.
    fn request(&self, piece: &str) -> String {
        let focus = self.focus.map_or_else(String::new, |focus| {
            format!("\nPay attention to this above all: {focus}\n")
        });
        let before = self.so_far.as_ref().map_or_else(String::new, |summary| {
            format!("summary of what came before: {}\n", harmless(summary))
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

/// Most bytes of a summary for this window.
pub(super) fn share_bytes(window: u64) -> usize {
    usize::try_from(window / LARGEST_SHARE * BYTES_PER_TOKEN).unwrap_or(usize::MAX)
}

fn no_summary() -> ModelError {
    ModelError::new(ErrorClass::Unknown, "the model gave an empty summary")
}

/// Splits `text` into pieces of at most `limit` bytes, between lines if possible. The middle is left out if there would
/// be more than `most` pieces.
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

/// Adds the rows to `text`, so that nothing in a row looks like another one. Of a long session that is some megabytes, so
/// there is only one copy.
fn render(text: &mut String, rows: &[TranscriptMessage]) {
    for row in rows {
        let _infallible = match row.role {
            Role::System => Ok(()),
            Role::User => writeln!(text, "user: {}", harmless(&row.content)),
            Role::Assistant => {
                writeln!(text, "assistant: {}{}", harmless(&row.content), called_tools(row))
            }
            Role::Tool => {
                let short: String = row.content.chars().take(TOOL_TEXT_CHARS).collect();
                writeln!(text, "tool result: {}", harmless(&short))
            }
        };
    }
}

fn called_tools(row: &TranscriptMessage) -> String {
    let Some(Message::Assistant(assistant)) = row_to_message(row.clone()) else {
        return String::new();
    };
    let mut text = String::new();
    for call in assistant.tool_calls() {
        let arguments = Value::Object(call.arguments.clone()).to_string();
        let short: String = arguments.chars().take(TOOL_TEXT_CHARS).collect();
        let _infallible = write!(text, " [called {} {}]", call.name, harmless(&short));
    }
    text
}

#[cfg(test)]
mod tests;
