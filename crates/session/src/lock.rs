//! Advisory locks on lock files, respected by every process of this program.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::durable::private_options;
use crate::error::{IoContext, SessionError};

/// First pause between two tries; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Longest pause between two tries: short enough that nobody notices, long enough to cost nothing.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// What to do while another process holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Give up at once.
    Fail,
    /// Try again until this much time has passed.
    Until(Duration),
}

/// A held lock. Dropping it removes the lock file and lets the next one in.
#[derive(Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
    /// The lock lives as long as this file is open, so a killed process cannot leave one behind.
    file: File,
}

impl LockFile {
    /// Takes the lock at `path`, whose directory must exist.
    pub(crate) fn acquire(path: &Path, wait: LockWait) -> Result<Self, SessionError> {
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let process_id = match try_acquire(path)? {
                Attempt::Acquired(lock) => return Ok(lock),
                Attempt::Removed => continue,
                Attempt::HeldBy(process_id) => process_id,
            };
            let waited = started.elapsed();
            let left = match wait {
                LockWait::Fail => Duration::ZERO,
                LockWait::Until(limit) => limit.saturating_sub(waited),
            };
            if left.is_zero() {
                let waited = if wait == LockWait::Fail { Duration::ZERO } else { waited };
                return Err(SessionError::Locked { path: path.to_path_buf(), process_id, waited });
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Removed while still locked: whoever waits on the removed file notices and takes the next one. A file that
        // cannot be removed is harmless, since only the lock on it counts. If somebody put another file there, it is
        // not ours to remove.
        if is_still_at(&self.file, &self.path).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether somebody holds the lock at `path`. Makes no file, and stands in nobody's way for longer than a moment.
pub(crate) fn is_locked(path: &Path) -> Result<bool, SessionError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(SessionError::from_io("open the lock file", path, error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(SessionError::from_io("lock", path, source)),
    }
}

enum Attempt {
    Acquired(LockFile),
    /// The file was removed (by its last holder) between opening and locking it.
    Removed,
    /// Another holder, as far as its process is known.
    HeldBy(Option<u32>),
}

fn try_acquire(path: &Path) -> Result<Attempt, SessionError> {
    let mut file = private_options()
        .read(true)
        .write(true)
        .create(true)
        .open(path)
        .context("open the lock file", path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Attempt::HeldBy(read_process_id(&mut file))),
        Err(TryLockError::Error(source)) => {
            return Err(SessionError::from_io("lock", path, source));
        }
    }
    if !is_still_at(&file, path).context("check the lock file", path)? {
        return Ok(Attempt::Removed);
    }
    // Only for the message that others get, so a full disk must not stop anybody here.
    let _ = write_process_id(&mut file);
    Ok(Attempt::Acquired(LockFile { path: path.to_path_buf(), file }))
}

/// Whether `file` is the one that `path` names.
pub(crate) fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_process_id(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

fn read_process_id(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
