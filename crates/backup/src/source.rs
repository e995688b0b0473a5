//! What of a state directory is in a backup, and in which order it is copied.

use std::io;
use std::path::{Path, PathBuf};

use myclaw_files::{EntryKind, SharedDirectory};

use crate::BackupError;

/// What a file of the state directory is for. The order is that in which they are copied; the crate's first comment says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileRole {
    /// An SQLite database. A copy of it as of one moment is taken.
    Database,
    /// Anything else that the program keeps.
    Other,
    /// Messages that wait for a session.
    Inbox,
    /// A session's log, to which lines are appended.
    Log,
    /// What logs refer to.
    SideFile,
    /// What the owner and the agent have made, which less trusted parties can change.
    Work,
    /// Something with keys in it.
    Key,
    /// Nothing that a copy needs: locks, sockets, files that are being written, what can be made again.
    Skipped,
}

/// One thing to copy.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) part: FileRole,
    /// In the state directory.
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Directory,
    File,
    Link,
}

/// Lists a state directory. `part_of` says what a path in it is for; of a directory that it names [`FileRole::Skipped`], and of
/// one for which `is_wanted` does not hold, nothing below is looked at. What is not wanted is given to `left_out`.
pub(crate) fn list(
    state: &SharedDirectory,
    part_of: &dyn Fn(&Path) -> FileRole,
    is_wanted: &dyn Fn(FileRole) -> bool,
    left_out: &mut dyn FnMut(&Path, FileRole),
) -> Result<Vec<Item>, BackupError> {
    let mut items = Vec::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        let unreadable =
            |source| BackupError::Unreadable { path: state.path().join(&directory), source };
        let opened = match state.directory(&directory) {
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened.map_err(unreadable)?,
        };
        for name in opened.names(usize::MAX, |_| true).map_err(unreadable)?.names {
            let path = directory.join(&name);
            let part = part_of(&path);
            let Some(facts) = opened.facts(&name).map_err(unreadable)? else { continue };
            let kind = match facts.kind {
                EntryKind::File => Kind::File,
                EntryKind::Directory => Kind::Directory,
                EntryKind::Link => Kind::Link,
                EntryKind::Special => continue,
            };
            if part == FileRole::Skipped {
                continue;
            }
            if !is_wanted(part) {
                left_out(&path, part);
                continue;
            }
            if kind == Kind::Directory {
                directories.push(path.clone());
            }
            items.push(Item { part, path, kind });
        }
    }
    items.sort_unstable();
    Ok(items)
}
