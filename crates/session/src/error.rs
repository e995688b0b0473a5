//! Session errors, with messages that a user can act on.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_files::LockError;

use crate::{EntryId, SessionKey, SessionKeyError};

/// Why a session could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Another process, or another place in this one, has the session open for writing.
    #[error(
        "session is in use{}: {} is locked{}; wait until it is done, stop it, or choose another session with --session",
        holder(*.process_id), .path.display(), after_waiting(*.waited)
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that wrote its number into the lock file, if known.
        process_id: Option<u32>,
        /// How long this call waited for it.
        waited: Duration,
    },
    /// Another process kept the index locked for too long.
    #[error(
        "the session index is in use{}: {} is locked{}; the session itself is not affected; \
         if that process hangs, stop it",
        holder(*.process_id), .path.display(), after_waiting(*.waited)
    )]
    IndexLocked {
        /// The lock file.
        path: PathBuf,
        /// The process that wrote its number into the lock file, if known.
        process_id: Option<u32>,
        /// How long this call waited for it.
        waited: Duration,
    },
    /// The index has an entry that cannot be read, and it could not be rebuilt.
    #[error("{} has an entry that cannot be read; move the file away, and it is rebuilt from the transcripts", .path.display())]
    UnreadableIndex {
        /// The index.
        path: PathBuf,
    },
    /// The disk, a quota or a file-size limit is full. The file's earlier content is untouched.
    #[error("failed to {action} {}: {source}; free some space (or raise the quota or file-size limit), then try again; nothing that was stored before is lost", .path.display())]
    NoSpace {
        /// The attempted action, in words that follow "failed to".
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The file system is mounted read-only.
    #[error("failed to {action} {}: the file system is read-only; remount it for writing, or keep the state elsewhere by setting MYCLAW_STATE_DIR", .path.display())]
    ReadOnlyFileSystem {
        /// The attempted action, in words that follow "failed to".
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The user lacks the permission for this.
    #[error("failed to {action} {}: {source}; check who owns it and its permissions, or keep the state elsewhere by setting MYCLAW_STATE_DIR", .path.display())]
    PermissionDenied {
        /// The attempted action, in words that follow "failed to".
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// There is a directory where a file should be, or a file where a directory should be.
    #[error("failed to {action} {}: {source}; move away what is in its place, or keep the state elsewhere by setting MYCLAW_STATE_DIR", .path.display())]
    InTheWay {
        /// The attempted action, in words that follow "failed to".
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Any other failure of the system.
    #[error("failed to {action} {}: {source}", .path.display())]
    Io {
        /// The attempted action, in words that follow "failed to".
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Too many messages wait for the session already.
    #[error("the inbox {} is full: all waiting messages together may take {limit} bytes; wait until they are answered, or send a shorter message", .path.display())]
    InboxFull {
        /// The inbox.
        path: PathBuf,
        /// Its largest size, in bytes.
        limit: u64,
    },
    /// Someone deleted the log while it was open.
    #[error("{} was deleted while the session was in use; start again to begin a new one", .path.display())]
    Removed {
        /// The transcript.
        path: PathBuf,
    },
    /// Somebody else opened the session after this owner had lost it.
    #[error(
        "session {key} was opened by somebody else meanwhile, so nothing more is written here; what was written before is kept; do not remove the lock files of running sessions, and run it again to continue"
    )]
    Fenced {
        /// The session's key.
        key: SessionKey,
    },
    /// A later version of the program wrote the file in a way that this one cannot read.
    #[error("{}", myclaw_files::formats::LOG.refusal(.path, found))]
    NewerVersion {
        /// The transcript.
        path: PathBuf,
        /// The version in its header.
        found: u32,
        /// The highest version that this program reads.
        supported: u32,
    },
    /// The file belongs to another session: it was copied, or the shortened names of two long keys are the same.
    #[error("{} belongs to session {found}, not to {wanted}; move that file away, and to continue a copy, import it with `myclaw sessions import FILE --session NAME`", .path.display())]
    ForeignTranscript {
        /// The transcript.
        path: PathBuf,
        /// The key in its header.
        found: String,
        /// The requested key.
        wanted: String,
    },
    /// There is no session with that key.
    #[error("there is no session {key}; `myclaw sessions list` lists the existing ones")]
    NoSuchSession {
        /// The requested key.
        key: SessionKey,
    },
    /// A session that should be created exists already.
    #[error("session {key} exists already; choose another name, or delete it first")]
    SessionExists {
        /// The key.
        key: SessionKey,
    },
    /// A session has no entry with that id.
    #[error(
        "session {key} has no entry {id}; `myclaw sessions show --all` shows the id of each message"
    )]
    NoSuchEntry {
        /// The session's key.
        key: SessionKey,
        /// The requested id.
        id: EntryId,
    },
    /// A session has no entries at all.
    #[error("session {key} has no messages yet, so it cannot be forked")]
    EmptySession {
        /// The session's key.
        key: SessionKey,
    },
    /// The file that holds the beginning of a fork is missing, or is a different file.
    #[error("{} does not hold the first {end} bytes of a session, up to the end of a line; restore it from a backup, or delete the session that it belongs to", .path.display())]
    BrokenHistory {
        /// The history file.
        path: PathBuf,
        /// How many bytes of it belong to the fork.
        end: u64,
    },
    /// An entry could not be written as JSON.
    #[error("failed to encode an entry of {}: {source}", .path.display())]
    Encode {
        /// The transcript.
        path: PathBuf,
        /// The encoding error.
        source: serde_json::Error,
    },
    /// The key is invalid.
    #[error(transparent)]
    Key(#[from] SessionKeyError),
}

impl SessionError {
    /// Turns a lock error into the one about the index: a lock there blocks only lists.
    pub(crate) fn of_index(self) -> Self {
        match self {
            Self::Locked { path, process_id, waited } => {
                Self::IndexLocked { path, process_id, waited }
            }
            other => other,
        }
    }

    /// Turns an I/O error into the variant whose message says what to do about it.
    pub(crate) fn from_io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::WriteZero => Self::NoSpace { action, path, source },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnlyFileSystem { action, path, source },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { action, path, source },
            io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists => Self::InTheWay { action, path, source },
            _ => Self::Io { action, path, source },
        }
    }
}

/// Adds the action and the path to an I/O error.
pub(crate) trait IoContext<T> {
    /// `action` is words that follow "failed to"; the path follows them.
    fn context(self, action: &'static str, path: &Path) -> Result<T, SessionError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, SessionError> {
        self.map_err(|source| SessionError::from_io(action, path, source))
    }
}

impl<T> IoContext<T> for Result<T, LockError> {
    /// A lock error already says what was attempted.
    fn context(self, _action: &'static str, path: &Path) -> Result<T, SessionError> {
        self.map_err(|error| match error {
            LockError::Held { process_id, waited } => {
                SessionError::Locked { path: path.to_path_buf(), process_id, waited }
            }
            LockError::Io { action, source } => SessionError::from_io(action, path, source),
        })
    }
}

fn holder(process_id: Option<u32>) -> String {
    process_id.map_or_else(String::new, |id| format!(" by process {id}"))
}

fn after_waiting(waited: Duration) -> String {
    if waited.is_zero() {
        String::new()
    } else {
        format!(" (waited {:.1} s)", waited.as_secs_f64())
    }
}
