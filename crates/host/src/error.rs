//! Failures of the host.

use std::io;
use std::path::{Path, PathBuf};

use myclaw_store::StoreError;

use crate::GroupsError;

/// Why the host cannot go on. What it had acknowledged is in its store.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
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
