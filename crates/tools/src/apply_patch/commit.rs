//! Several files changed as one: either all of them, or none.
//!
//! Everything that can fail for lack of space or permission is done first, under temporary names. Then the files get
//! their names one after the other, and a second link to each old file is kept until the last rename has worked. If one
//! fails, the old files get their names back. If the process is killed in between, every file is still whole, with its
//! old or its new content.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempPath};

use crate::files::{Attributes, StagedFile, stage_file, sync_directory};

/// Prefix of the names of kept old files.
const BACKUP_PREFIX: &str = ".myclaw-old-";
/// Most new files that stay open until they have their names. The system limits open files, often to 1024.
const MOST_OPEN: usize = 256;

/// The change of one file. Paths are real: they contain no links.
#[derive(Debug)]
pub(super) enum Change {
    /// There is no file yet.
    Create {
        path: PathBuf,
        bytes: Vec<u8>,
        attributes: Attributes,
    },
    /// There is one.
    Replace {
        path: PathBuf,
        bytes: Vec<u8>,
        attributes: Attributes,
    },
    Delete {
        path: PathBuf,
    },
}

/// A change that did not work.
#[derive(Debug)]
pub(super) struct CommitError {
    /// The file it was about.
    pub path: PathBuf,
    pub error: io::Error,
    /// Files whose old content could not be restored, each with the place where that content is kept.
    pub unrestored: Vec<(PathBuf, PathBuf)>,
}

/// How to undo a step.
#[derive(Debug)]
enum Undo {
    /// Rename the old file back.
    Restore { path: PathBuf, backup: TempPath },
    /// Remove the new file.
    Remove { path: PathBuf },
    /// Remove the new directory.
    RemoveDirectory { path: PathBuf },
}

/// A change that is complete except for its rename.
enum Ready {
    Create(PathBuf, StagedFile),
    Replace(PathBuf, StagedFile),
    Delete(PathBuf),
}

/// Makes all changes.
///
/// # Errors
/// The first change that failed; everything is then as it was before, except for what the error names.
pub(super) fn commit(changes: Vec<Change>) -> Result<(), CommitError> {
    let mut undo = Vec::new();
    let done = stage(changes, &mut undo).and_then(|ready| put_in_place(ready, &mut undo));
    match done {
        Ok(paths) => {
            paths.iter().for_each(|path| sync_directory(path));
            Ok(())
        }
        Err((path, error)) => Err(CommitError { path, error, unrestored: roll_back(undo) }),
    }
}

type Failure = (PathBuf, io::Error);

fn stage(changes: Vec<Change>, undo: &mut Vec<Undo>) -> Result<Vec<Ready>, Failure> {
    let mut ready = Vec::new();
    for change in changes {
        ready.push(match change {
            Change::Create { path, bytes, attributes } => {
                let staged = make_directories(&path, undo)
                    .and_then(|()| stage_file(&path, &bytes, &attributes));
                let staged = staged.map_err(|error| (path.clone(), error))?;
                Ready::Create(path, few_open(staged, ready.len()))
            }
            Change::Replace { path, bytes, attributes } => {
                let staged = stage_file(&path, &bytes, &attributes)
                    .map_err(|error| (path.clone(), error))?;
                Ready::Replace(path, few_open(staged, ready.len()))
            }
            Change::Delete { path } => Ready::Delete(path),
        });
    }
    Ok(ready)
}

fn few_open(staged: StagedFile, before: usize) -> StagedFile {
    if before < MOST_OPEN { staged } else { staged.unlocked() }
}

fn put_in_place(ready: Vec<Ready>, undo: &mut Vec<Undo>) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    for change in ready {
        let (path, done) = match change {
            Ready::Create(path, staged) => {
                let done = staged.put_at_free(&path).map(|()| Undo::Remove { path: path.clone() });
                (path, done)
            }
            Ready::Replace(path, staged) => {
                let done = keep(&path).and_then(|backup| {
                    staged.put_at(&path)?;
                    Ok(Undo::Restore { path: path.clone(), backup })
                });
                (path, done)
            }
            Ready::Delete(path) => {
                let done = keep(&path).and_then(|backup| {
                    std::fs::remove_file(&path)?;
                    Ok(Undo::Restore { path: path.clone(), backup })
                });
                (path, done)
            }
        };
        match done {
            Ok(step) => undo.push(step),
            Err(error) => return Err((path, error)),
        }
        paths.push(path);
    }
    Ok(paths)
}

fn make_directories(path: &Path, undo: &mut Vec<Undo>) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .take_while(|directory| directory.symlink_metadata().is_err())
        .collect();
    for directory in missing.into_iter().rev() {
        std::fs::create_dir(directory)?;
        undo.push(Undo::RemoveDirectory { path: directory.to_owned() });
    }
    Ok(())
}

/// Gives the file at `path` a second name next to it, or makes a copy where the file system has no links.
fn keep(path: &Path) -> io::Result<TempPath> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let link = Builder::new()
        .prefix(BACKUP_PREFIX)
        .make_in(directory, |name| std::fs::hard_link(path, name));
    match link {
        Ok(link) => Ok(link.into_temp_path()),
        Err(_) => {
            let copy = Builder::new().prefix(BACKUP_PREFIX).tempfile_in(directory)?;
            std::fs::copy(path, copy.path())?;
            Ok(copy.into_temp_path())
        }
    }
}

/// Undoes all steps, the last one first. Returns what could not be restored.
fn roll_back(undo: Vec<Undo>) -> Vec<(PathBuf, PathBuf)> {
    let mut unrestored = Vec::new();
    for step in undo.into_iter().rev() {
        match step {
            Undo::Restore { path, backup } => {
                if let Err(error) = backup.persist(&path) {
                    let kept = error.path.to_path_buf();
                    // The only copy of the old content: it stays where it is.
                    let _ = error.path.keep();
                    unrestored.push((path, kept));
                }
            }
            Undo::Remove { path } => {
                let _ = std::fs::remove_file(path);
            }
            Undo::RemoveDirectory { path } => {
                let _ = std::fs::remove_dir(path);
            }
        }
    }
    unrestored
}

#[cfg(test)]
mod tests;
