//! The record of what is to be forgotten, and the lock of those who forget.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_files::{
    Documents, Durability, FileDocuments, LockError, LockFile, LockWait, MemoryDocuments,
    create_private_directory, parent_of,
};
use parking_lot::{Mutex, MutexGuard};

/// Name of the record.
pub(super) const RECORD: &str = "forget.json";
const LOCK: &str = "forget.lock";
/// Longest wait for another command that forgets.
const WAIT: Duration = Duration::from_secs(5);

/// The record: it belongs to the files of one state directory, in which words become unreadable.
#[derive(Debug, Clone)]
pub struct ForgetRecord {
    documents: Arc<dyn Documents>,
    lock: Lock,
}

#[derive(Debug, Clone)]
enum Lock {
    File(PathBuf),
    Process(Arc<Mutex<()>>),
}

/// Why the lock cannot be taken.
pub(super) enum Unlocked {
    /// Another command has it.
    Held,
    /// Its file cannot be used.
    Io(io::Error),
}

/// The held lock.
#[expect(dead_code, reason = "what they hold ends with them")]
pub(super) enum Guard<'r> {
    File(LockFile),
    Process(MutexGuard<'r, ()>),
}

impl ForgetRecord {
    /// That of a state directory.
    pub(crate) fn in_state_dir(state: &Path) -> Self {
        let lock = Lock::File(state.join(LOCK));
        Self { documents: Arc::new(FileDocuments::new(state)), lock }
    }

    /// One that ends with the process.
    pub(crate) fn in_memory() -> Self {
        let lock = Lock::Process(Arc::default());
        Self { documents: Arc::new(MemoryDocuments::default()), lock }
    }

    pub(super) fn lock(&self) -> Result<Guard<'_>, Unlocked> {
        match &self.lock {
            Lock::Process(lock) => {
                lock.try_lock_for(WAIT).map(Guard::Process).ok_or(Unlocked::Held)
            }
            Lock::File(path) => {
                create_private_directory(&parent_of(path)).map_err(Unlocked::Io)?;
                let lock = LockFile::acquire(path, LockWait::Until(WAIT));
                lock.map(Guard::File).map_err(|error| match error {
                    LockError::Held { .. } => Unlocked::Held,
                    LockError::Io { source, .. } => Unlocked::Io(source),
                })
            }
        }
    }

    /// Whether something is to be forgotten.
    pub(super) fn is_there(&self) -> bool {
        match self.documents.read(RECORD) {
            Ok(found) => found.is_some(),
            // No state directory is there.
            Err(error) => error.kind() != io::ErrorKind::NotADirectory,
        }
    }

    pub(super) fn read(&self) -> io::Result<Option<String>> {
        Ok(self.documents.read(RECORD)?.map(|document| document.text))
    }

    /// Stores it. It is durable when this returns.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        self.documents.change(RECORD, Durability::Synced, &mut |_| text.to_owned())
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        self.documents.remove(RECORD).map(drop)
    }

    /// Where it is, for people.
    pub(super) fn place(&self) -> String {
        self.documents.describe(RECORD)
    }
}
