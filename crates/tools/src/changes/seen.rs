//! The content of files as the model knows it: a file that somebody else changed since is not overwritten.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_engine::{ToolContext, ToolError};
use myclaw_files::portable::MetadataExt;
use myclaw_files::{
    Durability, LockKind, LockWait, NewFile, create_private_directory, is_still_at, lock,
    private_options,
};
use serde::{Deserialize, Serialize};

use super::Fingerprint;
use crate::support::ResolvedPath;

/// Largest file that is compared by content: a larger one is compared by size, time of change and inode, because
/// hashing it would make a small `read` of it slow.
const MAX_HASHED_BYTES: u64 = 8 * 1024 * 1024;
/// Largest file that is hashed before the result of `read` goes out, which takes a tenth of a millisecond.
const MAX_HASHED_AT_ONCE: u64 = 128 * 1024;
/// Length at which the list is reduced to its newest half: a few thousand files.
const MAX_LIST_BYTES: u64 = 512 * 1024;
/// Longest wait for another call that writes to the list, which takes less than a millisecond.
const LOCK_WAIT: LockWait = LockWait::Until(Duration::from_secs(1));

/// A file as the model last saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Seen {
    path: String,
    size: u64,
    /// SHA-256; `None` for a large file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// Nanoseconds since the Unix epoch.
    modified: i64,
    inode: u64,
}

/// Records the state of a file that the model has seen. `file` was opened for the call, and `before` is its metadata at
/// that time: a file that changes while it is read counts as changed.
///
/// The result does not wait for the hash of a file of some size: it is recorded by size, time of change and inode, and a
/// thread adds the hash. Without the thread, or if the process ends before it has finished, that record decides.
pub(crate) fn note_read(context: &ToolContext, path: &ResolvedPath, file: File, before: &Metadata) {
    let Some(seen) = Seen::of(&path.real, before, None) else { return };
    let hashes_later =
        (MAX_HASHED_AT_ONCE + 1..=MAX_HASHED_BYTES).contains(&before.len()) && !is_recent(before);
    if !hashes_later {
        let Ok(hash) = unchanged_hash(file, before) else { return };
        return append(context, &Seen { hash, ..seen });
    }
    append(context, &seen);
    let (context, before) = (context.clone(), before.clone());
    let add_hash = move || {
        if let Ok(hash @ Some(_)) = unchanged_hash(file, &before) {
            let hashed = Seen { hash, ..seen.clone() };
            let _ = try_append(&context, &hashed, Some(&seen));
        }
    };
    let _ = std::thread::Builder::new().name("file hash".to_owned()).spawn(add_hash);
}

/// Whether a file changed so short a time ago that a further change may leave its time as it is: the clock of a file
/// system advances in steps of up to 10 ms.
fn is_recent(metadata: &Metadata) -> bool {
    let age = metadata.modified().ok().and_then(|modified| modified.elapsed().ok());
    age.is_none_or(|age| age < Duration::from_millis(100))
}

/// The hash of a file; `None` if it is large, or has changed since `before`.
fn unchanged_hash(mut file: File, before: &Metadata) -> io::Result<Option<String>> {
    if before.len() > MAX_HASHED_BYTES {
        return Ok(None);
    }
    file.rewind()?;
    let fingerprint = Fingerprint::of_file(&file, before, MAX_HASHED_BYTES)?;
    let after = file.metadata()?;
    let is_unchanged = nanoseconds(before) == nanoseconds(&after) && before.len() == after.len();
    Ok(fingerprint.filter(|_| is_unchanged).map(|fingerprint| fingerprint.hash))
}

/// Records that the model knows all of a file, because it has just written it, or because the file had the wanted
/// content already.
pub(crate) fn note_seen(context: &ToolContext, path: &Path, content: &Fingerprint) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    let hash = (metadata.len() <= MAX_HASHED_BYTES).then(|| content.hash.clone());
    if let Some(seen) = Seen::of(path, &metadata, hash) {
        append(context, &seen);
    }
}

/// Refuses to change a file that differs from what the model last saw of it. A file that it has never seen may be
/// changed. `content` is `None` if the caller has not read it.
///
/// # Errors
/// The file has changed since.
pub(crate) fn require_fresh(
    context: &ToolContext,
    path: &ResolvedPath,
    metadata: &Metadata,
    content: Option<&Fingerprint>,
) -> Result<(), ToolError> {
    let Some(seen) = find(context, &path.real) else { return Ok(()) };
    let is_same = match (&seen.hash, content) {
        (Some(hash), Some(content)) => *hash == content.hash,
        _ => {
            seen.size == metadata.len()
                && seen.modified == nanoseconds(metadata)
                && seen.inode == metadata.ino()
        }
    };
    if is_same { Ok(()) } else { Err(changed_since(&path.shown)) }
}

/// The error for a file that somebody else changed.
pub(super) fn changed_since(shown: &str) -> ToolError {
    ToolError::Failed(format!(
        "{shown} was not changed: it is not what it was when you last read or wrote it; another program, a command or the \
         user changed it since. Read it again, then make your change to what is there now"
    ))
}

impl Seen {
    /// `None` for a name that is not UTF-8, which no call can give in full.
    fn of(path: &Path, metadata: &Metadata, hash: Option<String>) -> Option<Self> {
        Some(Self {
            path: path.to_str()?.to_owned(),
            size: metadata.len(),
            hash,
            modified: nanoseconds(metadata),
            inode: metadata.ino(),
        })
    }
}

fn nanoseconds(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

fn list_path(context: &ToolContext) -> PathBuf {
    super::directory(context).join("seen.jsonl")
}

/// The latest line about `path`.
fn find(context: &ToolContext, path: &Path) -> Option<Seen> {
    let name = serde_json::to_string(path.to_str()?).ok()?;
    let lines = std::fs::read(list_path(context)).ok()?;
    let finder = memchr::memmem::Finder::new(name.as_bytes());
    lines
        .rsplit(|byte| *byte == b'\n')
        .filter(|line| finder.find(line).is_some())
        .filter_map(|line| serde_json::from_slice::<Seen>(line).ok())
        .find(|seen| path.to_str() == Some(&seen.path))
}

/// Adds a line. A failure is not reported: reading a file must work on a full disk, and the only loss is that a later
/// change by somebody else may go unnoticed.
fn append(context: &ToolContext, seen: &Seen) {
    let _ = try_append(context, seen, None);
}

/// Adds a line, if the latest one about the file is `latest` or that is `None`.
fn try_append(context: &ToolContext, seen: &Seen, latest: Option<&Seen>) -> io::Result<()> {
    let path = list_path(context);
    create_private_directory(&super::directory(context))?;
    let mut line = serde_json::to_vec(seen)?;
    line.push(b'\n');
    loop {
        let mut file = private_options().read(true).append(true).create(true).open(&path)?;
        lock(&file, LockKind::Exclusive, LOCK_WAIT).map_err(|_| io::ErrorKind::TimedOut)?;
        // Another call may have replaced the list in between.
        if !is_still_at(&file, &path)? {
            continue;
        }
        if latest.is_some() && find(context, Path::new(&seen.path)).as_ref() != latest {
            return Ok(());
        }
        file.write_all(&line)?;
        if file.metadata()?.len() > MAX_LIST_BYTES {
            shorten(&mut file, &path)?;
        }
        return Ok(());
    }
}

/// Replaces the list by its newest lines, one for each file.
fn shorten(file: &mut File, path: &Path) -> io::Result<()> {
    let mut lines = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut lines)?;
    let mut paths = HashSet::new();
    let mut room = (MAX_LIST_BYTES / 2) as usize;
    let mut kept: Vec<&[u8]> = Vec::new();
    for line in lines.rsplit(|byte| *byte == b'\n') {
        let Ok(seen) = serde_json::from_slice::<Seen>(line) else { continue };
        if line.len() >= room {
            break;
        }
        if paths.insert(seen.path) {
            room -= line.len() + 1;
            kept.push(line);
        }
    }
    let mut new = NewFile::in_directory(&myclaw_files::parent_of(path), "seen-")?;
    for line in kept.into_iter().rev() {
        new.write_all(line)?;
        new.write_all(b"\n")?;
    }
    new.put_at(path, Durability::Unsynced).map(drop)
}

#[cfg(test)]
mod tests {
    use myclaw_engine::TurnId;

    use super::*;

    #[test]
    fn a_hash_that_comes_late_does_not_replace_what_was_recorded_since() {
        let directory = tempfile::tempdir().unwrap();
        let context = ToolContext {
            working_directory: directory.path().to_owned(),
            artifact_directory: directory.path().join("artifacts"),
            max_result_chars: 1_000,
            workspace_only: false,
            closed: Default::default(),
            turn: TurnId::generate(),
        };
        let path = directory.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let read = Seen::of(&path, &path.metadata().unwrap(), None).unwrap();
        append(&context, &read);
        let hashed = Seen { hash: Some("of the old content".to_owned()), ..read.clone() };
        try_append(&context, &hashed, Some(&read)).unwrap();
        assert_eq!(find(&context, &path).as_ref(), Some(&hashed));

        append(&context, &read);
        std::fs::write(&path, "newer").unwrap();
        note_seen(&context, &path, &Fingerprint::of(b"newer", None));
        let written = find(&context, &path);
        try_append(&context, &hashed, Some(&read)).unwrap();
        assert_eq!(find(&context, &path), written);
    }
}
