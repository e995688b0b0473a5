//! The locks that let one process at a time change a store, or renew its logins.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use myclaw_files::{LockError, LockKind, LockWait, lock, private_options};

use crate::AuthStoreError;
use crate::error::failed_to;

/// Pause between two attempts of an async task, which must not block.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest wait for another process. A change takes milliseconds.
const PATIENCE: LockWait = LockWait::Until(Duration::from_secs(10));
/// Longest wait for another process that renews a login: longer than a server's request may take.
const LOGIN_PATIENCE: Duration = Duration::from_secs(45);

/// A held lock. The system releases it when the file is closed, so a killed process leaves no lock behind. The lock
/// file is never removed: otherwise a process that waits for the old file and one that creates a new file could both
/// get the lock.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _file: File,
}

/// A held lock that lets one process at a time renew logins. It is separate from the store's lock, because it is held
/// during a request to a server.
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
