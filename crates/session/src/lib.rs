//! Session keys, the append-only log, and its derived index.
//!
//! A session's log is a file of JSON lines that only grows, and the log is the only source of truth: `sessions.json` is
//! an index derived from it. This crate stores and finds entries. It must not know what a model is, what a message
//! means to one, or which step comes next. Everything here is blocking standard I/O: callers decide on which thread it
//! runs. The formats are described for users and tool writers in `docs/develop/sessions.md`.
#![forbid(unsafe_code)]

mod about;
mod backward;
mod blobs;
mod catalog;
mod create;
mod entry;
mod error;
mod fork;
mod history;
mod id;
mod inbox;
mod index;
mod json;
mod key;
mod line;
mod log;
mod memory;
mod meta;
mod raw;
mod reader;
mod repair;
pub mod rows;
mod search;
mod sessions;
mod side_files;
mod spending;
mod store;
mod tail;
mod title;
mod wanted;

use myclaw_files::now_ms;
use std::sync::atomic::{AtomicU64, Ordering};

pub use about::{About, AboutEntry};
pub use blobs::{
    BlobError, BlobLimits, Blobs, FileBlobs, MemoryBlobs, NamedBlob, OpenBlob,
    checked as checked_blob_name,
};
pub use catalog::{Catalog, CreateSession, ReadEntries, ReadSession};
pub use create::NewSession;
pub use entry::{
    CompactionEntry, Entry, FORMAT_VERSION, Reduction, ReductionEntry, RefusalEntry, Role,
    SessionHeader, TranscriptMessage, UnsignedEntry,
};
pub use error::SessionError;
pub use fork::{FORKED_FROM, Fork, ForkOrigin};
pub use id::EntryId;
pub use inbox::{
    FileInbox, HeldInbox, Inbox, InboxCallback, InboxWatch, Keeper, QueuedKind, QueuedMessage,
    durability_of,
};
pub use index::{
    IndexRepair, IndexedSession, MetaPatch, PruneReport, PruneScope, SessionEntry, SessionIndex,
    UpdatedAt,
};
pub use json::JsonSessions;
pub use key::{CLI_CHANNEL, PeerKind, PositionalKey, SessionKey, SessionKeyError, SessionKeyParts};
pub use log::SessionLog;
pub use memory::MemorySessions;
pub use meta::Meta;
pub use myclaw_files::LockWait;
pub use reader::{Entries, SessionReader};
pub use repair::MovedAside;
pub use search::{
    Case, SearchError, SearchFilters, SearchHit, SearchQuery, SearchReport, SearchScope,
};
pub use sessions::{
    Epoch, IndexUpdate, LogEnd, MessageSearch, OpenSession, SessionUse, Sessions, SyncHandle,
};
pub use side_files::{RemovedFiles, SideFiles};
pub use spending::{DaySpending, MemorySpending, Spending, Spent};
pub use store::SessionStore;
pub use tail::{SwitchedOff, Tail, TailLimit};
pub use title::{automatic_title, exchange_title, first_words, indexed_title, title_of_beginning};

/// Field of a session's entry in the index, in `extra`: the beginning of the first message.
pub const FIRST_WORDS: &str = "firstWords";
/// Field of a session's entry in the index, in `extra`: the title that the program made.
pub const AUTOMATIC_TITLE: &str = "automaticTitle";
/// Field of a session's entry in the index, in `extra`, and of the meta of a user's rows: the permission mode that was chosen.
pub const MODE: &str = "mode";
/// Field of the meta of a user's rows: the ids of the messages that the row took from the inbox.
pub const TAKEN_IDS: &str = "queuedIds";

/// Microseconds since `begun`, for logs.
fn micros(begun: std::time::Instant) -> u64 {
    u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The number of an opening that begins now. Among those of this process it is the highest; among those of others it is as
/// far as their clocks agree. A lock on a file decides between owners, so nothing depends on more.
fn next_epoch() -> Epoch {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
    let next = |last: u64| Some(now.max(last.saturating_add(1)));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default();
    Epoch(now.max(last.saturating_add(1)))
}
