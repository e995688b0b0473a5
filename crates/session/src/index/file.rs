//! Reading and replacing the index file.

use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{EntriesByKey, SessionEntry};
use crate::durable::private_options;
use crate::error::{IoContext, SessionError};
use crate::now_ms;

/// What was read last, and from which state of the file.
#[derive(Debug)]
pub(super) struct Cached {
    pub(super) stamp: Stamp,
    pub(super) entries: Arc<EntriesByKey>,
}

/// Tells two states of a file apart. Each change makes a new file, so that even two of one length within one tick of
/// the clock differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    modified_seconds: i64,
    modified_nanoseconds: i64,
    length: u64,
    inode: u64,
}

/// What the index file gave.
pub(super) enum Loaded {
    /// There is none.
    Missing,
    /// All of it could be read.
    Sound(EntriesByKey),
    /// Something could not be read; here is what could.
    Corrupt(EntriesByKey),
}

impl Loaded {
    pub(super) fn is_sound(&self) -> bool {
        matches!(self, Self::Sound(_))
    }
}

/// The present state of the file.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|metadata| stamp_of(&metadata))
}

fn stamp_of(metadata: &Metadata) -> Stamp {
    Stamp {
        modified_seconds: metadata.mtime(),
        modified_nanoseconds: metadata.mtime_nsec(),
        length: metadata.len(),
        inode: metadata.ino(),
    }
}

/// Reads the index.
pub(super) fn load(path: &Path) -> Result<Loaded, SessionError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loaded::Missing),
        Err(error) => return Err(SessionError::from_io("read the session index", path, error)),
    };
    let Ok(values) = serde_json::from_slice::<Map<String, Value>>(&bytes) else {
        return Ok(Loaded::Corrupt(EntriesByKey::new()));
    };
    let count = values.len();
    let entries: EntriesByKey = values
        .into_iter()
        .filter_map(|(key, value)| Some((key, serde_json::from_value::<SessionEntry>(value).ok()?)))
        .collect();
    Ok(if entries.len() == count { Loaded::Sound(entries) } else { Loaded::Corrupt(entries) })
}

/// Replaces the index as a whole: another process sees the old one or the new one, never a part. Whoever calls this holds
/// the lock of the index, so that the new one is always written under the same name: a process that is killed leaves one
/// file behind, which the next one replaces.
///
/// It is not synchronised to the disk: what a power cut spoils is rebuilt from the logs.
pub(super) fn store(path: &Path, entries: EntriesByKey) -> Result<Cached, SessionError> {
    let mut text = serde_json::to_vec_pretty(&entries)
        .map_err(|source| SessionError::Encode { path: path.to_path_buf(), source })?;
    text.push(b'\n');
    let mut new_path = path.as_os_str().to_owned();
    new_path.push(".new");
    let new_path = PathBuf::from(new_path);
    let replace = || -> io::Result<Stamp> {
        // Not over what a killed process left: its mode may be another's.
        match std::fs::remove_file(&new_path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = private_options().write(true).create_new(true).open(&new_path)?;
        file.write_all(&text)?;
        std::fs::rename(&new_path, path)?;
        Ok(stamp_of(&file.metadata()?))
    };
    let stamp = replace()
        .inspect_err(|_| {
            let _is_reported_already = std::fs::remove_file(&new_path);
        })
        .context("write the session index", path)?;
    Ok(Cached { stamp, entries: Arc::new(entries) })
}

/// Copies a corrupt index away, so that nothing in it is lost for good.
pub(super) fn back_up(path: &Path) -> Result<(), SessionError> {
    let mut backup = path.as_os_str().to_owned();
    backup.push(format!(".bak.{}", now_ms()));
    let backup = PathBuf::from(backup);
    std::fs::copy(path, &backup).map(drop).context("save the corrupt session index to", &backup)
}
