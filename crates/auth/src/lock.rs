//! The locks that let one process at a time change a store, or renew the logins in it.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use myclaw_files::{LockError, LockKind, LockWait, lock, private_options};

use crate::AuthStoreError;
use crate::error::failed_to;

/// Pause between two tries of a task that must not block.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest wait for another process. A change takes milliseconds.
const PATIENCE: LockWait = LockWait::Until(Duration::from_secs(10));
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
    /// Waits for the lock at `path`, whose directory must exist.
    pub(crate) async fn acquire(path: &Path) -> Result<Self, AuthStoreError> {
        let file = open(path)?;
        let started = Instant::now();
        loop {
            match lock(&file, LockKind::Exclusive, LockWait::Fail) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(LockError::Held { .. }) if started.elapsed() < LOGIN_PATIENCE => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(LockError::Held { .. }) => {
                    let waited = started.elapsed();
                    return Err(AuthStoreError::Locked { path: path.to_path_buf(), waited });
                }
                Err(LockError::Io { source, .. }) => return Err(failed_to("lock", path)(source)),
            }
        }
    }
}

impl StoreLock {
    /// Waits for the lock at `path`, whose directory must exist. Blocks.
    pub(crate) fn acquire(path: &Path) -> Result<Self, AuthStoreError> {
        let file = open(path)?;
        lock(&file, LockKind::Exclusive, PATIENCE).map_err(|error| match error {
            LockError::Held { waited, .. } => {
                AuthStoreError::Locked { path: path.to_path_buf(), waited }
            }
            LockError::Io { source, .. } => failed_to("lock", path)(source),
        })?;
        Ok(Self { _file: file })
    }
}

fn open(path: &Path) -> Result<File, AuthStoreError> {
    private_options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(failed_to("open", path))
}
