//! Failures of a store.

use std::io;
use std::path::PathBuf;

use myclaw_files::LockError;

/// Why a store cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A newer version of the program has written the file.
    #[error("{}", myclaw_files::formats::STORE.refusal(path, found))]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this version knows.
        known: i64,
    },
    /// The file is no database of this program.
    #[error(
        "{} is damaged, or is not a store of this program ({reason}); move it away, or restore it from a backup",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file cannot be opened, read or written.
    #[error("failed to {action} {}: {reason}; check the free space and the permissions", path.display())]
    Io {
        /// What was tried, in words that follow "failed to".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The failure.
        reason: String,
    },
    /// Another process has the store open.
    #[error(
        "{} is in use by {}; stop it first, or set MYCLAW_STATE_DIR to another directory",
        path.display(),
        holder(*.process_id)
    )]
    InUse {
        /// The lock file.
        path: PathBuf,
        /// The other process, if it is known.
        process_id: Option<u32>,
    },
    /// A key, a value or a batch is outside the limits.
    #[error("the record cannot be stored, because {0}")]
    Unusable(String),
    /// A record holds something that this version does not know.
    #[error(
        "the record {id} of the store cannot be used ({problem}); was it written by a newer version of this program?"
    )]
    Row {
        /// Its name.
        id: String,
        /// What is wrong.
        problem: String,
    },
    /// Others change the same record all the time.
    #[error("the record {0} of the store is being changed by others; try again")]
    Contended(String),
    /// A database server cannot be used. Nothing of a write is stored.
    #[error("the database {server} {problem}")]
    Database {
        /// The server and the database.
        server: String,
        /// What is wrong and what to do, in words that follow the name.
        problem: String,
    },
    /// A database server did not say whether a write is stored, and it could not be asked in time.
    #[error(
        "the database {server} {problem}; a write was under way, and whether it is stored is unknown until the database \
         answers again"
    )]
    Unconfirmed {
        /// The server and the database.
        server: String,
        /// As in [`StoreError::Database`].
        problem: String,
    },
    /// The store was closed while the call waited. Whether a write is stored is unknown.
    #[error("the store is closed; start the program again")]
    Closed,
}

fn holder(process_id: Option<u32>) -> String {
    process_id.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"))
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, error: &io::Error) -> Self {
        Self::Io { action, path: path.into(), reason: error.to_string() }
    }

    pub(crate) fn lock(path: PathBuf, error: LockError) -> Self {
        match error {
            LockError::Held { process_id, .. } => Self::InUse { path, process_id },
            LockError::Io { action, source } => Self::io(action, path, &source),
        }
    }
}
