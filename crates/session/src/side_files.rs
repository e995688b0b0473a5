//! The room that side files take: large outputs of tools, downloads, and what undo needs. Each is bounded by its writer; this
//! bounds their sums, for a session and for all sessions of a directory. The oldest go first.
//!
//! Commands of a sandboxed session can write to its directory of side files. So nothing here follows a link, and a
//! directory in it counts as one file.

use std::fmt;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use myclaw_files::{is_locked, private_options};

use crate::store::{ARTIFACT_EXTENSION, LOCK_EXTENSION};
use crate::{SessionKey, SessionStore};

/// The directory with what undo needs. Its writer bounds it, so it does not count in its session.
const CHANGES: &str = "changes";
/// The list in it, which each change is appended to.
const CHANGES_LIST: &str = "journal.jsonl";
/// Files that are younger are never removed: a turn that is running, or the last one, may need them.
const YOUNGEST: Duration = Duration::from_secs(60 * 60);
/// What undo needs stays for longer.
const YOUNGEST_CHANGES: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Most files that a session keeps, so that looking through them takes a bounded time.
const MOST_FILES: usize = 1_000;
/// Most names that are looked at in one directory. Nobody but a command that fills it makes more.
const MOST_NAMES: usize = 100_000;
/// When a limit is exceeded, one part in this many of it is made free, so that not every run removes something.
const FREED_SHARE: u64 = 10;
/// Between two looks at all sessions of a directory.
const BETWEEN_LOOKS: Duration = Duration::from_secs(60 * 60);
/// The file whose time is that of the last look.
const LOOKED: &str = "side-files.looked";

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovedFiles {
    /// Number of files; a directory counts as one.
    pub files: usize,
    /// Their sizes in bytes.
    pub bytes: u64,
}

/// The directories on this machine in which the tools of a session work. They are apart from [`crate::Sessions`], because
/// commands and sandboxes need paths, and a session itself has none. All calls block.
pub trait SideFiles: fmt::Debug + Send + Sync {
    /// The directory for large data, such as a tool's full output, and for what undo needs. It need not exist yet. It is
    /// removed with the session.
    fn artifact_directory(&self, key: &SessionKey) -> PathBuf;

    /// Makes the directory what other machines left of it, and lets them have what is new in it, where several machines share
    /// the session. Opening the session does the first, appending and closing the second. Does nothing while somebody has
    /// the session open.
    ///
    /// # Errors
    /// The files cannot be read, written or shared.
    fn share(&self, _key: &SessionKey) -> io::Result<()> {
        Ok(())
    }

    /// Removes the oldest files of the session's [`SideFiles::artifact_directory`] until they have at most `most_bytes`
    /// together; 0 is no limit. Files for which `is_needed` holds stay, and so do those of the last hour.
    ///
    /// # Errors
    /// The directory cannot be read, or a file cannot be removed.
    fn trim(
        &self,
        _key: &SessionKey,
        _most_bytes: u64,
        _is_needed: &dyn Fn(&Path) -> bool,
    ) -> io::Result<RemovedFiles> {
        Ok(RemovedFiles::default())
    }

    /// As [`SideFiles::trim`], for all sessions together, with what undo needs. It looks at most once in an hour, and does
    /// nothing in between. Sessions that are open elsewhere keep everything.
    ///
    /// # Errors
    /// As for [`SideFiles::trim`].
    fn trim_all(
        &self,
        _most_bytes: u64,
        _is_needed: &dyn Fn(&Path) -> bool,
    ) -> io::Result<RemovedFiles> {
        Ok(RemovedFiles::default())
    }
}

/// A file or directory next to a session.
struct SideFile {
    path: PathBuf,
    bytes: u64,
    changed: SystemTime,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    /// [`CHANGES`].
    Changes,
}

impl SideFiles for SessionStore {
    fn artifact_directory(&self, key: &SessionKey) -> PathBuf {
        Self::artifact_directory(self, key)
    }

    fn trim(
        &self,
        key: &SessionKey,
        most_bytes: u64,
        is_needed: &dyn Fn(&Path) -> bool,
    ) -> io::Result<RemovedFiles> {
        trim_directory(&Self::artifact_directory(self, key), most_bytes, is_needed)
    }

    fn trim_all(
        &self,
        most_bytes: u64,
        is_needed: &dyn Fn(&Path) -> bool,
    ) -> io::Result<RemovedFiles> {
        if most_bytes == 0 || !self.is_time_to_look()? {
            return Ok(RemovedFiles::default());
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(self.directory())?.flatten() {
            let path = entry.path();
            let is_ours = path.extension().is_some_and(|it| it == ARTIFACT_EXTENSION);
            // The lock of the session that runs this is held as well.
            if is_ours && !is_locked(&path.with_extension(LOCK_EXTENSION)).unwrap_or(true) {
                found.extend(side_files(&path)?);
            }
        }
        trim(found, most_bytes, usize::MAX, is_needed)
    }
}

impl SessionStore {
    /// Whether nobody has looked for an hour. Then the next hour begins.
    fn is_time_to_look(&self) -> io::Result<bool> {
        let path = self.directory().join(LOOKED);
        let mut options = private_options();
        let file = options.write(true).create(true).truncate(false).open(&path)?;
        if file.try_lock().is_err() {
            return Ok(false);
        }
        let metadata = file.metadata()?;
        let is_recent = metadata.modified()?.elapsed().is_ok_and(|past| past < BETWEEN_LOOKS);
        // A new file is empty: nobody has looked yet.
        if is_recent && metadata.len() > 0 {
            return Ok(false);
        }
        fs::write(&path, "The time of this file is that of the last look at all side files.\n")?;
        Ok(true)
    }
}

/// [`SideFiles::trim`] for the directory of one session.
pub(crate) fn trim_directory(
    directory: &Path,
    most_bytes: u64,
    is_needed: &dyn Fn(&Path) -> bool,
) -> io::Result<RemovedFiles> {
    let mut found = side_files(directory)?;
    found.retain(|file| file.kind != Kind::Changes);
    trim(found, limit(most_bytes), MOST_FILES, is_needed)
}

fn limit(bytes: u64) -> u64 {
    if bytes == 0 { u64::MAX } else { bytes }
}

/// What is in a directory of side files; nothing if there is no such directory.
fn side_files(directory: &Path) -> io::Result<Vec<SideFile>> {
    let is_directory = fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir());
    if !is_directory {
        return Ok(Vec::new());
    }
    let names = fs::read_dir(directory)?.take(MOST_NAMES).flatten();
    Ok(names.filter_map(|entry| side_file(&entry).ok()).collect())
}

fn side_file(entry: &DirEntry) -> io::Result<SideFile> {
    let path = entry.path();
    // The link itself, if it is one.
    let metadata = entry.metadata()?;
    if !metadata.is_dir() {
        let (bytes, changed) = (metadata.len(), metadata.modified()?);
        return Ok(SideFile { path, bytes, changed, kind: Kind::File });
    }
    let is_changes = entry.file_name() == CHANGES;
    let list = fs::symlink_metadata(path.join(CHANGES_LIST)).and_then(|list| list.modified());
    let changed = list.ok().filter(|_| is_changes).map_or_else(|| metadata.modified(), Ok)?;
    let kind = if is_changes { Kind::Changes } else { Kind::Directory };
    Ok(SideFile { bytes: size_of(&path), path, changed, kind })
}

/// The sizes of all files below a directory. Deeper nesting than a tool makes is left out.
fn size_of(directory: &Path) -> u64 {
    let mut sum: u64 = 0;
    let mut left = vec![(directory.to_owned(), 0)];
    let mut names = 0;
    while let Some((directory, depth)) = left.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            names += 1;
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && depth < 8 {
                left.push((entry.path(), depth + 1));
            }
            if !metadata.is_dir() {
                sum = sum.saturating_add(metadata.len());
            }
            if names > MOST_NAMES {
                return sum;
            }
        }
    }
    sum
}

/// Removes the oldest until both limits hold.
fn trim(
    mut found: Vec<SideFile>,
    most_bytes: u64,
    most_files: usize,
    is_needed: &dyn Fn(&Path) -> bool,
) -> io::Result<RemovedFiles> {
    let mut bytes: u64 = found.iter().map(|file| file.bytes).sum();
    let mut count = found.len();
    let mut removed = RemovedFiles::default();
    if bytes <= most_bytes && count <= most_files {
        return Ok(removed);
    }
    let kept_bytes = most_bytes - most_bytes / FREED_SHARE;
    let kept_files = most_files - most_files / 10;
    found.sort_by(|one, other| (one.changed, &one.path).cmp(&(other.changed, &other.path)));
    for file in found {
        if bytes <= kept_bytes && count <= kept_files {
            break;
        }
        let youngest = if file.kind == Kind::Changes { YOUNGEST_CHANGES } else { YOUNGEST };
        let is_young = file.changed.elapsed().map_or(true, |age| age < youngest);
        if is_young || is_needed(&file.path) {
            continue;
        }
        match file.kind {
            Kind::File => fs::remove_file(&file.path)?,
            Kind::Directory | Kind::Changes => fs::remove_dir_all(&file.path)?,
        }
        bytes -= file.bytes;
        count -= 1;
        removed.files += 1;
        removed.bytes += file.bytes;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests;
