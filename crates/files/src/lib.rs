//! Locks between processes, atomic replacement, private files and directories, bounded reading of regular
//! files, small documents, the formats of what is kept, directories that others can change, paths that are closed to tools,
//! texts and names that are the same for a person, problems of JSON files in words for those who write them, and what differs
//! between systems.
//!
//! Every other crate that keeps something on disk uses these, so that each rule holds everywhere and is tested once.
//! Nothing here knows what the files are for. All calls block: callers decide on which thread they run.
#![forbid(unsafe_code)]

mod canonical;
mod closed;
mod documents;
pub mod formats;
mod json;
mod lock;
mod owned;
pub mod portable;
mod private;
#[cfg(unix)]
mod pseudo_terminal;
mod read;
mod replace;
mod same_text;
mod shared_directory;
mod shortened;
mod stamp;
pub mod tenants;
pub mod variables;

pub use canonical::{canonical, canonical_or_same};
pub use closed::{
    ClosedNow, ClosedPaths, KnownLinks, Opening, PathUse, is_of_process, open_real, process_behind,
    real_path,
};
pub use documents::{Document, Documents, FileDocuments, MemoryDocuments, checked_document_name};
pub use json::from_json;
pub use lock::{LockError, LockFile, LockKind, LockWait, is_locked, is_still_at, lock, still_at};
pub use owned::OwnedDirectory;
pub use portable::sync_directory;
pub use private::{create_private_directory, parent_of, private_options};
#[cfg(unix)]
pub use pseudo_terminal::open_pseudo_terminal;
pub use read::{
    after_escape_sequence, open_regular, open_regular_unlinked, read_regular, text_of_bytes,
    without_controls,
};
pub use replace::{Durability, NewFile, remove_if_there, set_aside};
pub use same_text::{
    Folded, Sameness, characters, composed, folded, is_invisible, respelled, spellings,
};
pub use shared_directory::{Access, EntryFacts, EntryKind, Followed, Names, SharedDirectory};
pub use shortened::shortened;
pub use stamp::{hex, now_ms};
