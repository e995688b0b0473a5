//! Sessions through the crate's public entry points, on real files and across real processes.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

mod about;
mod blobs;
mod catalog;
mod children;
mod conformance;
mod fork;
mod inbox;
mod index;
mod json;
mod locking;
mod log;
mod search;
mod spending;
mod storage_faults;
mod tail;
mod torn_tail;

use std::fs;
use std::path::PathBuf;

use myclaw_session::{
    CompactionEntry, Entry, EntryId, LockWait, OpenSession, Role, SessionError, SessionKey,
    SessionLog, SessionStore, TailLimit, TranscriptMessage,
};

/// A sessions directory that does not exist yet, in a temporary home.
struct Home {
    home: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    fn sessions(&self) -> PathBuf {
        self.home.path().join("state").join("sessions")
    }

    fn store(&self) -> SessionStore {
        SessionStore::new(self.sessions())
    }

    fn open(&self, key: &SessionKey) -> SessionLog {
        self.store().open(key, LockWait::Fail).unwrap()
    }

    /// Puts `bytes` where the log of `key` belongs.
    fn write_log(&self, key: &SessionKey, bytes: impl AsRef<[u8]>) -> PathBuf {
        fs::create_dir_all(self.sessions()).unwrap();
        let path = self.store().transcript_path(key);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The names in the sessions directory.
    fn names(&self) -> Vec<String> {
        let Ok(listing) = fs::read_dir(self.sessions()) else { return Vec::new() };
        let mut names: Vec<_> =
            listing.map(|found| found.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Appends at the end, wherever that is.
trait Push {
    fn push(&mut self, entries: &[Entry]) -> Result<(), SessionError>;
}

impl Push for Box<dyn OpenSession> {
    fn push(&mut self, entries: &[Entry]) -> Result<(), SessionError> {
        let end = self.end();
        self.append(end, entries).map(drop)
    }
}

/// A limit in bytes of the messages' lines.
fn limit_in_bytes(max_cost: u64) -> TailLimit {
    TailLimit {
        max_cost,
        cost: |message, _reduction| serde_json::to_string(message).unwrap().len() as u64,
        ..TailLimit::UNLIMITED
    }
}

fn work() -> SessionKey {
    SessionKey::for_cli("main", "work")
}

fn user(text: &str) -> TranscriptMessage {
    TranscriptMessage::new(Role::User, text, 1_700_000_000_000)
}

fn assistant(text: &str) -> TranscriptMessage {
    TranscriptMessage::new(Role::Assistant, text, 1_700_000_000_001)
}

fn compaction(first_kept_id: EntryId) -> CompactionEntry {
    CompactionEntry {
        id: EntryId::generate(),
        ts: 1_700_000_000_002,
        summary: "what was said".into(),
        first_kept_id,
        tokens_before: 1000,
        old_count: 12,
        new_count: 3,
    }
}

fn texts(messages: &[TranscriptMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.content.as_str()).collect()
}

fn entries(home: &Home, key: &SessionKey) -> Vec<Entry> {
    home.store().reader(key).unwrap().unwrap().entries().map(Result::unwrap).collect()
}
