//! Finds repositories inside a repository: git runs itself in each that the index names, with the config of that one.

use std::path::Path;

use myclaw_files::read_regular;

/// Largest index that is read; a repository with half a million files has about this much.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The mode of an entry that is a repository.
const REPOSITORY_MODE: u32 = 0o160_000;
/// The length of an entry before its path: times, numbers, mode, size, and a SHA-1.
const FIXED_BYTES: usize = 62;
const MODE_AT: usize = 24;
/// The flag for two further bytes of flags.
const EXTENDED: u16 = 0x4000;
/// The extension by which an index leaves entries to another file.
const SPLIT: &[u8] = b"link";
/// The checksum at the end.
const CHECKSUM_BYTES: usize = 20;

/// What the index names that is a repository of its own, or why this cannot be known.
pub(super) fn inner_repository(index: &Path) -> Option<String> {
    if std::fs::symlink_metadata(index).is_err() {
        return None;
    }
    let unknown = || Some(format!("what cannot be read of {}", index.display()));
    let Ok(bytes) = read_regular(index, MAX_BYTES) else { return unknown() };
    match scan(&bytes) {
        Some(Scan::Plain) => None,
        Some(Scan::Inner(path)) => Some(format!("the repository {path} inside it")),
        None => unknown(),
    }
}

/// What an index holds.
#[derive(Debug, PartialEq, Eq)]
enum Scan {
    /// Files only.
    Plain,
    /// A repository at this path.
    Inner(String),
}

/// `None` for an index in a form that is not known.
fn scan(bytes: &[u8]) -> Option<Scan> {
    if bytes.get(..4)? != b"DIRC" {
        return None;
    }
    let version = number(bytes, 4)?;
    let count = number(bytes, 8)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    for _ in 0..count {
        let mode = number(bytes, at + MODE_AT)?;
        let flags = u16::from_be_bytes(bytes.get(at + FIXED_BYTES - 2..)?.first_chunk().copied()?);
        let mut start = at + FIXED_BYTES;
        if flags & EXTENDED != 0 {
            start += 2;
        }
        if version == 4 {
            // The number of bytes that the path shares with the one before.
            start += bytes.get(start..)?.iter().position(|byte| byte & 0x80 == 0)? + 1;
        }
        let length = bytes.get(start..)?.iter().position(|byte| *byte == 0)?;
        if mode & 0o170_000 == REPOSITORY_MODE {
            let path = bytes.get(start..start + length)?;
            return Some(Scan::Inner(String::from_utf8_lossy(path).into_owned()));
        }
        let end = start + length;
        // Older versions fill each entry up to a multiple of eight bytes.
        at = if version == 4 { end + 1 } else { at + (end - at + 8) / 8 * 8 };
    }
    while at + CHECKSUM_BYTES < bytes.len() {
        let length = usize::try_from(number(bytes, at + 4)?).ok()?;
        if bytes.get(at..at + 4)? == SPLIT {
            return None;
        }
        at = at.checked_add(8)?.checked_add(length)?;
    }
    (at + CHECKSUM_BYTES == bytes.len()).then_some(Scan::Plain)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}
