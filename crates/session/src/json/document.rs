//! The content of a session's JSON file.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use myclaw_files::read_regular;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::line::{self, Line};
use crate::tail::{fill_missing_times, tail_of};
use crate::{
    Entry, MetaPatch, SessionEntry, SessionError, SessionKey, Tail, TailLimit, TranscriptMessage,
    now_ms,
};

/// Largest file that is read.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// A session in memory.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// In milliseconds since the Unix epoch, like `updated_at`.
    created_at: u64,
    updated_at: u64,
    /// The session's metadata, available without reading its messages.
    index: Option<SessionEntry>,
    /// Fields that other programs have added; they are kept.
    others: Map<String, Value>,
    /// The rows of the file, written back unchanged.
    rows: Vec<Value>,
    /// The entries of those rows, then the new ones.
    entries: Vec<Entry>,
    /// How many entries come from rows.
    loaded: usize,
    /// The number of rows that are not entries.
    skipped: usize,
    /// True if the file does not hold all of this.
    pub(crate) is_changed: bool,
}

/// The file as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    id: &'a str,
    created_at: u64,
    updated_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<&'a SessionEntry>,
    #[serde(flatten)]
    others: &'a Map<String, Value>,
    messages: Vec<Row<'a>>,
}

/// An element of `messages`.
#[derive(Serialize)]
#[serde(untagged)]
enum Row<'a> {
    Loaded(&'a Value),
    New(&'a Entry),
}

impl Document {
    /// Reads a file; `None` if there is none.
    pub(crate) fn load(path: &Path) -> Result<Option<Self>, SessionError> {
        let failed = |source| SessionError::from_io("read the session file", path, source);
        let bytes = match read_regular(path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it has no list `messages`");
        Self::parse(&bytes).map(Some).ok_or_else(|| failed(damaged()))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut others = line::parse_object(bytes)?;
        let Some(Value::Array(rows)) = others.shift_remove("messages") else { return None };
        let mut take = |name: &str| others.shift_remove(name);
        // The id is the name of the file.
        take("id");
        let created_at = line::milliseconds(take("createdAt").as_ref());
        let mut document = Self {
            created_at: if created_at == 0 { now_ms() } else { created_at },
            updated_at: line::milliseconds(take("updatedAt").as_ref()),
            index: take("index").and_then(|index| serde_json::from_value(index).ok()),
            others,
            rows,
            ..Self::default()
        };
        let mut last_time = document.created_at;
        for (place, row) in document.rows.iter().enumerate() {
            let object = row.as_object().cloned();
            match object.map(|object| line::decode_object(object, place as u64)) {
                Some(Line::Entry(mut entry)) => {
                    if let Entry::Message(message) = &mut entry {
                        let message = std::slice::from_mut(message);
                        fill_missing_times(message, || last_time);
                        last_time = message[0].ts;
                    }
                    document.entries.push(entry);
                }
                _ => document.skipped += 1,
            }
        }
        document.loaded = document.entries.len();
        Some(document)
    }

    /// True if it has no content that makes it a session.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.entries.is_empty()
    }

    /// The content of a new fork.
    pub(crate) fn of_entries(entries: Vec<Entry>, created_at: u64) -> Self {
        Self { entries, created_at, updated_at: now_ms(), ..Self::default() }
    }

    /// The entries, the oldest first.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// When the session was created, in milliseconds since the Unix epoch.
    pub(crate) fn created_at(&self) -> u64 {
        self.created_at
    }

    /// The session's metadata. Of a session in a turn, its time is that of the last entry if that is later.
    pub(crate) fn index(&self) -> Option<SessionEntry> {
        let mut entry = self.index.clone()?;
        if entry.in_turn {
            entry.updated_at = entry.updated_at.max(self.updated_at);
        }
        Some(entry)
    }

    /// The time of [`Document::index`].
    pub(crate) fn listed_at(&self) -> Option<u64> {
        let entry = self.index.as_ref()?;
        let written = if entry.in_turn { self.updated_at } else { 0 };
        Some(entry.updated_at.max(written))
    }

    /// The metadata, to be changed or removed.
    pub(crate) fn index_mut(&mut self) -> &mut Option<SessionEntry> {
        &mut self.index
    }

    /// The text of the file, if it must be written. It counts as written from then on.
    pub(crate) fn take_text(&mut self, id: &str) -> Option<serde_json::Result<Vec<u8>>> {
        if self.is_empty() || !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let new = self.entries[self.loaded..].iter().map(Row::New);
        let text = serde_json::to_vec_pretty(&Written {
            id,
            created_at: self.created_at,
            updated_at: self.updated_at,
            index: self.index.as_ref(),
            others: &self.others,
            messages: self.rows.iter().map(Row::Loaded).chain(new).collect(),
        });
        Some(text)
    }

    pub(crate) fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        if self.is_empty() {
            self.created_at = first.ts().filter(|time| *time > 0).unwrap_or_else(now_ms);
        }
        self.entries.extend_from_slice(entries);
        self.updated_at = now_ms();
        self.is_changed = true;
    }

    /// Removes the newest `count` entries.
    pub(crate) fn cut_off(&mut self, count: usize) {
        self.entries.truncate(self.entries.len().saturating_sub(count));
    }

    /// Adds an entry without another change.
    pub(crate) fn push(&mut self, entry: &Entry) {
        self.entries.push(entry.clone());
    }

    pub(crate) fn record(&mut self, key: &SessionKey, id: &str, patch: MetaPatch) {
        let file = format!("{id}.{}", super::EXTENSION);
        let changed = patch.apply_to(self.index.take(), key, id.to_owned());
        self.index = changed.map(|entry| SessionEntry { session_file: file, ..entry });
        self.is_changed = true;
    }

    pub(crate) fn tail(&self, limit: TailLimit) -> Tail {
        Tail { skipped_lines: self.skipped, ..tail_of(&self.entries, limit) }
    }

    pub(crate) fn visit_oldest(&self, visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>) {
        let _ = messages(self.entries.iter()).try_for_each(|message| visit(message.clone()));
    }

    pub(crate) fn visit_newest(&self, visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>) {
        let _ = messages(self.entries.iter().rev()).try_for_each(|message| visit(message.clone()));
    }
}

fn messages<'a>(
    entries: impl Iterator<Item = &'a Entry>,
) -> impl Iterator<Item = &'a TranscriptMessage> {
    entries.filter_map(|entry| match entry {
        Entry::Message(message) => Some(message),
        _ => None,
    })
}
