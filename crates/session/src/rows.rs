//! What a store of sessions in another crate needs, so that its rows are those of the files: the same JSON lines, the same
//! end of a log, the same list and the same hits.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use crate::line::{self, Line};
use crate::search::Found;
use crate::{
    About, Entry, EntryId, ForkOrigin, MetaPatch, QueuedMessage, RemovedFiles, SearchQuery,
    SearchReport, SearchScope, SessionEntry, SessionError, SessionHeader, SessionKey, Tail,
    TailLimit, TranscriptMessage,
};

pub use crate::raw::{RawLog, logs_in, visit_log};
pub use crate::spending::DayTotals;

/// Largest inbox, in bytes of its messages.
pub const MAX_INBOX_BYTES: u64 = crate::inbox::MAX_BYTES;

/// [`SideFiles::trim`](crate::SideFiles::trim) for the directory of one session.
///
/// # Errors
/// The directory cannot be read, or a file cannot be removed.
pub fn trim_side_files(
    directory: &Path,
    most_bytes: u64,
    is_needed: &dyn Fn(&Path) -> bool,
) -> io::Result<RemovedFiles> {
    crate::side_files::trim_directory(directory, most_bytes, is_needed)
}

/// The entry of a row; `None` if it is none. Without an id in it, `place` gives it one.
pub fn read_entry(row: &[u8], place: u64) -> Option<Entry> {
    match line::decode(row, place) {
        Line::Entry(entry) => Some(entry),
        Line::Header(_) | Line::Blank | Line::Corrupt => None,
    }
}

/// The header in a row; `None` if it is none.
pub fn read_header(row: &[u8]) -> Option<SessionHeader> {
    match line::decode(row, 0) {
        Line::Header(header) => Some(header),
        Line::Entry(_) | Line::Blank | Line::Corrupt => None,
    }
}

/// The message of a row of the inbox; `None` if it is none.
pub fn read_queued(row: &[u8]) -> Option<QueuedMessage> {
    crate::inbox::read_queued(row)
}

/// The end of a session whose entries come newest first. Reads no more of them than it needs.
///
/// # Errors
/// Those of the entries.
pub fn read_tail(
    newest_first: impl Iterator<Item = Result<Entry, SessionError>>,
    limit: TailLimit,
) -> Result<Tail, SessionError> {
    crate::tail::tail_of_newest(newest_first, limit)
}

/// Gives messages without a time that of the message before, else that of the beginning of the log.
pub fn fill_missing_times(messages: &mut [TranscriptMessage], beginning: u64) {
    crate::tail::fill_missing_times(messages, || beginning);
}

/// The header of a new session.
pub fn new_header(key: &SessionKey, created_at: u64) -> SessionHeader {
    SessionHeader::of_new_log(key.as_str(), created_at)
}

/// The entry of the list after a change. `session_id` counts if there was none before.
pub fn changed_entry(
    patch: MetaPatch,
    before: Option<SessionEntry>,
    key: &SessionKey,
    session_id: String,
) -> Option<SessionEntry> {
    patch.apply_to(before, key, session_id)
}

/// What the list says of a new fork.
pub fn fork_patch(key: &SessionKey, origin: &ForkOrigin) -> MetaPatch {
    MetaPatch::forked_from(key, origin)
}

/// The title and labels as fields of the list.
pub fn about_fields(about: &About) -> Map<String, Value> {
    about.to_extra()
}

/// Whether a search in `scope` reads this session.
pub fn is_in_scope(scope: &SearchScope, key: &SessionKey) -> bool {
    scope.contains(key)
}

/// Whether a text that is no message, such as a key or a title, matches.
pub fn matches(query: &SearchQuery, text: &str) -> bool {
    query.matches(text)
}

/// Collects the hits of a search.
pub struct Hits<'q> {
    query: &'q SearchQuery,
    found: Found,
}

impl std::fmt::Debug for Hits<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Hits").field(self.query).finish()
    }
}

impl<'q> Hits<'q> {
    /// None yet; the `limit` newest are kept.
    pub fn new(query: &'q SearchQuery, limit: usize) -> Self {
        Self { query, found: Found::new(limit) }
    }

    /// Looks into the row of a session.
    pub fn look_into(&mut self, key: &SessionKey, row: &[u8], place: u64) {
        if self.query.may_be_in(row)
            && let Some(Entry::Message(message)) = read_entry(row, place)
        {
            self.found.look_into(self.query, key, &message);
        }
    }

    /// The result.
    pub fn into_report(self) -> SearchReport {
        self.found.into_report()
    }
}

/// How a fork continues behind the entry that it branches off at: with the tool results that directly follow, because they
/// belong to calls before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Following {
    /// It belongs to the fork, and is its last message so far.
    Result(EntryId),
    /// It is no message, so the next one decides.
    Undecided,
    /// It does not belong to the fork.
    End,
}

/// What a fork does with the next entry.
pub fn following(entry: &Entry) -> Following {
    match entry {
        Entry::Message(message) if message.role == crate::Role::Tool => {
            Following::Result(message.id)
        }
        Entry::Message(_) | Entry::Compaction(_) => Following::End,
        _ => Following::Undecided,
    }
}
