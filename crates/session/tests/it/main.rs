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
mod subjects;
mod tail;
mod torn_tail;
mod values;

use std::fs;
use std::path::PathBuf;

use myclaw_session::{Entry, LockWait, SessionKey, SessionLog, SessionStore};

use values::{Push, assistant, compaction, limit_in_bytes, texts, user, work};

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

fn entries(home: &Home, key: &SessionKey) -> Vec<Entry> {
    home.store().reader(key).unwrap().unwrap().entries().map(Result::unwrap).collect()
}
