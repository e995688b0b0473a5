//! A session as a document: for people, or for another program.

mod excerpt;
mod html;
mod jsonl;
mod markdown;
mod redaction;
mod redactors;
mod rich;

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use myclaw_llm::Redactor;
use myclaw_session::{CompactionEntry, Entry, ReadSession, Role, SessionError, TranscriptMessage};

pub use excerpt::Excerpt;
pub use redaction::{redact_about, redact_entry, redact_row};
pub(crate) use redactors::Redactors;

/// The form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Rows that `sessions import` reads.
    Jsonl,
    /// A Markdown document.
    Markdown,
    /// One HTML file with everything in it.
    Html,
}

/// The session that is exported.
pub struct ExportedSession<'a> {
    /// Reads it.
    pub reader: &'a dyn ReadSession,
    /// Its title, or the name by which the user calls it.
    pub title: String,
    /// Removes keys. Without it everything stays; that is for the owner's own use.
    pub redactor: Option<Redactor>,
}

/// What an export did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// Lines of the log that were damaged.
    pub skipped_lines: usize,
    /// Places at which a key, or what looks like one, was replaced.
    pub redacted: usize,
}

/// Why an export failed.
#[derive(Debug)]
pub enum ExportError {
    /// The session cannot be read.
    Session(SessionError),
    /// The document cannot be written.
    Output(io::Error),
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// A writer of one export format, called once per part of the session.
trait Document {
    /// Writes the beginning.
    fn begin(&mut self, session: &mut ExportedSession<'_>) -> io::Result<()>;
    /// Removes keys from what the document shows of a message, and counts them.
    fn redact(&self, message: &mut TranscriptMessage, redactor: &mut Redactor) {
        redaction::redact_message(message, redactor);
    }
    /// A message.
    fn message(&mut self, message: &TranscriptMessage) -> io::Result<()>;
    /// A summary.
    fn summary(&mut self, compaction: &CompactionEntry) -> io::Result<()>;
    /// An entry of another type.
    fn other(&mut self, _entry: &Entry) -> io::Result<()> {
        Ok(())
    }
    /// Writes the end, with how many places were redacted.
    fn end(&mut self, redacted: usize) -> io::Result<()>;
}

/// Writes every entry without the keys in it, and at the end how many were replaced, if any.
///
/// # Errors
/// The session cannot be read, or the document cannot be written.
pub fn export_session(
    session: &mut ExportedSession<'_>,
    format: ExportFormat,
    mut out: impl Write,
) -> Result<Exported, ExportError> {
    let mut document: Box<dyn Document + '_> = match format {
        ExportFormat::Jsonl => Box::new(jsonl::Rows::new(&mut out)),
        ExportFormat::Markdown => Box::new(markdown::Text::new(&mut out)),
        ExportFormat::Html => Box::new(html::Page::new(&mut out)),
    };
    // A document for people shows the title, and the others have the entry with it.
    let is_for_people = format != ExportFormat::Jsonl;
    if let Some(redactor) = session.redactor.as_mut().filter(|_| is_for_people) {
        redactor.clean_in_place(&mut session.title);
    }
    document.begin(session)?;
    let mut entries = session.reader.entries();
    for entry in entries.by_ref() {
        let mut entry = entry.map_err(ExportError::Session)?;
        let is_shown = matches!(entry, Entry::Message(_) | Entry::Compaction(_));
        if let Some(redactor) = session.redactor.as_mut().filter(|_| is_shown || !is_for_people) {
            match &mut entry {
                Entry::Message(message) => document.redact(message, redactor),
                entry => redact_entry(entry, redactor),
            }
        }
        match &entry {
            Entry::Message(message) => document.message(message),
            Entry::Compaction(compaction) => document.summary(compaction),
            entry @ (Entry::Reduction(_)
            | Entry::Refusal(_)
            | Entry::Unsigned(_)
            | Entry::About(_)
            | Entry::Unknown(_)) => document.other(entry),
        }?;
    }
    let redacted = session.redactor.as_ref().map_or(0, Redactor::removed);
    document.end(redacted)?;
    drop(document);
    out.flush()?;
    Ok(Exported { skipped_lines: entries.skipped_lines(), redacted })
}

/// The sentence about what was replaced.
pub fn redacted_note(places: usize) -> String {
    let places = match places {
        1 => "1 place".to_owned(),
        places => format!("{places} places"),
    };
    format!("Keys, and what looks like one, were replaced by [redacted] in {places}.")
}

/// The heading of a message for people.
pub fn speaker(message: &TranscriptMessage) -> String {
    let meta = message.meta.as_ref();
    match message.role {
        Role::User => "you".to_owned(),
        Role::Assistant => {
            let stop: Option<String> = meta.and_then(|meta| meta.field("stopReason"));
            match stop.as_deref() {
                Some("error") => "assistant (broke off)",
                Some("aborted") => "assistant (aborted)",
                Some("length") => "assistant (cut at the output limit)",
                Some("refusal") => "assistant (refused)",
                _ => "assistant",
            }
            .to_owned()
        }
        Role::System => "system".to_owned(),
        Role::Tool => {
            let tool: Option<String> = meta.and_then(|meta| meta.field("toolName"));
            let tool = tool.filter(|name| !name.is_empty()).unwrap_or_else(|| "tool".to_owned());
            let failed = meta.and_then(|meta| meta.field("isError")).unwrap_or(false);
            if failed { format!("{tool} (failed)") } else { tool }
        }
    }
}

/// The calls that an assistant's message makes: name and arguments as JSON.
pub fn tool_calls(message: &TranscriptMessage) -> Vec<(String, String)> {
    let blocks: Vec<serde_json::Value> =
        message.meta.as_ref().and_then(|meta| meta.field("contentBlocks")).unwrap_or_default();
    let call = |block: &serde_json::Value| {
        (block.get("type")?.as_str()? == "toolCall").then_some(())?;
        Some((block.get("name")?.as_str()?.to_owned(), block.get("arguments")?.to_string()))
    };
    blocks.iter().filter_map(call).collect()
}

/// A time as `2026-11-21 23:42` in the zone of this machine; `-` for 0 (no time) and for times outside of the calendar.
pub fn local_minute(milliseconds: u64) -> String {
    local(milliseconds, "%Y-%m-%d %H:%M")
}

/// Like [`local_minute`], with seconds.
pub fn local_second(milliseconds: u64) -> String {
    local(milliseconds, "%Y-%m-%d %H:%M:%S")
}

fn local(milliseconds: u64, format: &str) -> String {
    let time = i64::try_from(milliseconds).ok().filter(|time| *time != 0);
    let time = time.and_then(|time| Timestamp::from_millisecond(time).ok());
    time.map_or_else(
        || "-".to_owned(),
        |time| time.to_zoned(TimeZone::system()).strftime(format).to_string(),
    )
}
