//! Failures of the host.

use std::io;
use std::path::{Path, PathBuf};

use myclaw_store::StoreError;

use crate::GroupsError;

/// Why the host stops. Everything that it had acknowledged is in its store.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another host uses the same directory.
    #[error(
        "a host already runs for {}{}; stop it first, or choose another --directory",
        directory.display(),
        process_id.map(|id| format!(" (process {id})")).unwrap_or_default()
    )]
    AlreadyRuns {
        /// The directory.
        directory: PathBuf,
        /// The other process, if it is known.
        process_id: Option<u32>,
    },
    /// The list of groups cannot be used.
    #[error(transparent)]
    Groups(#[from] GroupsError),
    /// A directory or a file cannot be used.
    #[error("failed to {action} {}: {source}; check the permissions and the free space", path.display())]
    Io {
        /// What was tried, in words that follow "failed to".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A record of the store holds something that this version does not know.
    #[error(
        "the record {id} of the host's store cannot be read ({problem}); was it written by a newer version?"
    )]
    Record {
        /// Its name.
        id: String,
        /// What is wrong.
        problem: String,
    },
    /// Two parts of this program changed one record, which is a defect of it.
    #[error("the record {0} was changed by something else; start the host again")]
    Conflict(String),
}

impl HostError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}
