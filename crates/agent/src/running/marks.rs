//! Which sessions are in a turn: a file for each, which its process has locked. So the list is as long as there are turns, however
//! many sessions there are.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use myclaw_files::{
    LockError, LockKind, LockWait, create_private_directory, is_locked, lock, private_options,
    read_regular, remove_if_there,
};
use myclaw_session::{EntryId, SessionKey};

/// Longest key, in bytes.
const MOST_BYTES: u64 = 64 * 1024;
/// How long one waits for a reader that looks whether a mark is locked.
const READER: Duration = Duration::from_secs(1);
/// How old a mark without a lock is before it is removed. A younger one may be about to be locked.
const MAKING: Duration = Duration::from_secs(60);

/// Says that a session is in a turn, for as long as it lives.
#[derive(Debug)]
pub(crate) struct TurnMark {
    path: PathBuf,
    /// The lock lives as long as this file is open.
    _file: File,
}

impl TurnMark {
    pub(super) fn put(directory: &Path, key: &SessionKey) -> io::Result<Self> {
        create_private_directory(directory)?;
        // Copies of the state directory leave out what ends so.
        let path = directory.join(format!("{}.lock", EntryId::generate()));
        let mut file = private_options().write(true).create_new(true).open(&path)?;
        let mark = |file: &mut File| -> io::Result<()> {
            file.write_all(key.as_str().as_bytes())?;
            lock(file, LockKind::Readable, LockWait::Until(READER)).map_err(plain)
        };
        match mark(&mut file) {
            Ok(()) => Ok(Self { path, _file: file }),
            Err(error) => {
                remove_if_there(&path)?;
                Err(error)
            }
        }
    }
}

impl Drop for TurnMark {
    fn drop(&mut self) {
        // What stays is not locked, and goes when somebody reads the list.
        let _ = remove_if_there(&self.path);
    }
}

/// The sessions with a mark, each once.
pub(super) fn marked(directory: &Path) -> io::Result<Vec<SessionKey>> {
    let listing = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing?,
    };
    let mut keys = Vec::new();
    for found in listing {
        let path = found?.path();
        if is_locked(&path).map_err(plain)? {
            let text = match read_regular(&path, MOST_BYTES) {
                // The turn ended between the two looks.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                text => text?,
            };
            keys.extend(std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()));
        } else if is_left_behind(&path) {
            remove_if_there(&path)?;
        }
    }
    keys.sort();
    keys.dedup();
    Ok(keys)
}

fn is_left_behind(path: &Path) -> bool {
    let age = |made: SystemTime| made.elapsed().unwrap_or_default();
    std::fs::metadata(path).and_then(|found| found.modified()).is_ok_and(|made| age(made) > MAKING)
}

fn plain(error: LockError) -> io::Error {
    match error {
        LockError::Io { source, .. } => source,
        LockError::Held { .. } => io::ErrorKind::WouldBlock.into(),
    }
}
