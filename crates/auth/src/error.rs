//! The errors of the store, in words that a user can act on.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why the store could not be read or changed. No message holds a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthStoreError {
    /// The file is not a valid store.
    #[error("{} cannot be read ({detail}); correct it, or move it away: its keys are not used until then", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Position and kind of the problem, without any of the content.
        detail: String,
    },
    /// A later version of the program wrote the file.
    #[error("{}", myclaw_files::formats::KEYS.refusal(path, found))]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// The version in it.
        found: u64,
        /// The version that this program writes.
        supported: u64,
    },
    /// Another process kept the store locked for too long.
    #[error("{} is locked by another process (waited {:.1} s); stop that process if it hangs, then try again", path.display(), waited.as_secs_f64())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// How long this call waited for it.
        waited: Duration,
    },
    /// The file is far larger than a store can be.
    #[error("{} is larger than {} KiB, so it is not a store of keys; move it away", path.display(), limit / 1024)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size that is read, in bytes.
        limit: u64,
    },
    /// A store that is no file fails, in words for people.
    #[error("{0}")]
    Elsewhere(String),
    /// The system refused.
    #[error("cannot {action} {}: {source}; check the free space and the permissions of its directory", path.display())]
    Io {
        /// The action that failed, worded to follow "cannot".
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Adds the action and the path to a system error.
pub(crate) fn failed_to(
    action: &'static str,
    path: &std::path::Path,
) -> impl FnOnce(io::Error) -> AuthStoreError {
    let path = path.to_path_buf();
    move |source| AuthStoreError::Io { action, path, source }
}
