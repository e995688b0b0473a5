//! The locks that let one process at a time change a store, or renew the logins in it.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::AuthStoreError;
use crate::error::failed_to;

/// First pause between two tries; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Longest pause between two tries: short enough that nobody notices, long enough to cost nothing.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// Longest wait for another process. A change takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for another process that renews a login: longer than a server may take.
const LOGIN_PATIENCE: Duration = Duration::from_secs(45);

/// A held lock. The system releases it with the file, so a killed process leaves none behind. The lock file stays:
/// removing it would let a process that waits on the old file and one that makes a new one in together.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
}

/// A held lock that lets one process at a time renew logins. It is held while a server is asked, which the lock of the
/// store must not be.
#[derive(Debug)]
pub(crate) struct LoginLock {
    _file: File,
}

impl LoginLock {
    /// Waits for the lock at `path`, whose folder must exist.
    pub(crate) async fn acquire(path: &Path) -> Result<Self, AuthStoreError> {
        let file = open(path)?;
        let started = Instant::now();
        while !try_to_take(&file, path, started, LOGIN_PATIENCE)? {
            tokio::time::sleep(LONGEST_PAUSE).await;
        }
        Ok(Self { _file: file })
    }
}

/// Tries once to take the lock; whether it is taken now. An error when others have held it for longer than `patience`.
fn try_to_take(
    file: &File,
    path: &Path,
    started: Instant,
    patience: Duration,
) -> Result<bool, AuthStoreError> {
    match file.try_lock() {
        Ok(()) => return Ok(true),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(failed_to("lock", path)(error)),
    }
    let waited = started.elapsed();
    if waited >= patience {
        return Err(AuthStoreError::Locked { path: path.to_path_buf(), waited });
    }
    Ok(false)
}

fn open(path: &Path) -> Result<File, AuthStoreError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(failed_to("open", path))
}

impl StoreLock {
    /// Waits for the lock at `path`, whose folder must exist. Blocks.
    pub(crate) fn acquire(path: &Path) -> Result<Self, AuthStoreError> {
        let file = open(path)?;
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        while !try_to_take(&file, path, started, PATIENCE)? {
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(Self { _file: file })
    }
}
