//! Recording a change before it is made.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use myclaw_engine::{ToolContext, ToolError, TurnId};
use serde_json::{Value, json};

use super::image::{Kept, keep};
use super::journal::{FileChange, Journal, Origin, Record};
use super::seen::{changed_since, note_seen};
use super::{Fingerprint, MAX_IMAGE_BYTES, directory, now_ms};
use crate::support::shown_path;

/// A file that is about to change. The path has no links in it.
#[derive(Debug)]
pub(crate) struct Upcoming {
    pub path: PathBuf,
    /// `None` if there is no file.
    pub before: Option<Before>,
    /// `None` if there will be no file.
    pub after: Option<Fingerprint>,
}

/// A file in the state in which the caller found it.
#[derive(Debug, Clone)]
pub(crate) struct Before {
    pub metadata: Metadata,
    /// `None` if the caller has not read it.
    pub fingerprint: Option<Fingerprint>,
}

/// A change that was made.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// Why some of it cannot be undone.
    problem: Option<String>,
}

/// Why a change was not recorded.
#[derive(Debug)]
enum Failure {
    /// This file is not what the caller has read.
    Changed(PathBuf),
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Makes the changes of a tool call by `make`. Before it, what is needed to undo them is kept; after it, they are noted
/// as seen by the model. A change that cannot be recorded, for example on a full disk, is still made, and the result of
/// the call says that it cannot be undone.
///
/// # Errors
/// A file changed after the caller read it, or the error of `make`; nothing was changed then.
pub(crate) fn make_change(
    context: &ToolContext,
    upcoming: &[Upcoming],
    make: impl FnOnce() -> Result<(), ToolError>,
) -> Result<Recorded, ToolError> {
    let journal = Journal::new(directory(context));
    let id = new_id();
    let problem = match add(&journal, &id, &context.turn, Origin::Tool, upcoming) {
        Ok(record) => record.files.iter().find_map(|file| {
            let reason = file.not_kept.as_ref()?;
            Some(format!("{}: it {reason}", shown_path(context, &file.path)))
        }),
        Err(Failure::Changed(path)) => {
            return Err(changed_since(&shown_path(context, &path)));
        }
        Err(Failure::Io(error)) => Some(format!("the old content could not be kept: {error}")),
    };
    if let Err(error) = make() {
        // If this fails, undo finds the files in their old state and leaves them unchanged.
        let _ = journal.withdraw(&id);
        return Err(error);
    }
    for (path, after) in upcoming.iter().filter_map(|file| Some((&file.path, file.after.as_ref()?)))
    {
        note_seen(context, path, after);
    }
    Ok(Recorded { problem })
}

/// Records the changes of an undo. An undo makes no change that cannot be recorded.
pub(super) fn record_undo(
    journal: &Journal,
    turn: &TurnId,
    origin: Origin,
    upcoming: &[Upcoming],
) -> io::Result<()> {
    match add(journal, &new_id(), turn, origin, upcoming) {
        Ok(_) => Ok(()),
        Err(Failure::Changed(path)) => {
            let text = format!("{} changed in this moment; try again", path.display());
            Err(io::Error::other(text))
        }
        Err(Failure::Io(error)) => Err(error),
    }
}

impl Recorded {
    /// Adds to a result's details what cannot be undone.
    pub(crate) fn describe(self, details: &mut Value) {
        if let Some(problem) = self.problem {
            details["notUndoable"] = json!(problem);
        }
    }
}

pub(super) fn new_id() -> String {
    TurnId::generate().to_string()
}

fn add(
    journal: &Journal,
    id: &str,
    turn: &TurnId,
    origin: Origin,
    upcoming: &[Upcoming],
) -> Result<Record, Failure> {
    journal.prepare()?;
    let mut record = Record {
        id: id.to_owned(),
        turn: turn.clone(),
        origin,
        ts: now_ms(),
        files: Vec::new(),
        directories: Vec::new(),
    };
    let outcome =
        fill(journal, &mut record, upcoming).and_then(|()| Ok(journal.add(record.clone())?));
    if let Err(error) = outcome {
        for name in record.files.iter().filter_map(|file| file.image.as_ref()) {
            let _ = std::fs::remove_file(journal.images().join(name));
        }
        return Err(error);
    }
    Ok(record)
}

fn fill(journal: &Journal, record: &mut Record, upcoming: &[Upcoming]) -> Result<(), Failure> {
    for (number, change) in upcoming.iter().enumerate() {
        let mut file = FileChange {
            path: change.path.clone(),
            before: None,
            after: change.after.clone(),
            image: None,
            not_kept: None,
        };
        match &change.before {
            None => record.directories.extend(missing_parents(&change.path, &record.directories)),
            Some(before) => {
                let name = format!("{}-{number}", record.id);
                let image = journal.images().join(&name);
                match keep(&change.path, &before.metadata, &image)? {
                    Kept::Yes => file.image = Some(name),
                    Kept::No(reason) => file.not_kept = Some(reason),
                    Kept::Changed => return Err(Failure::Changed(change.path.clone())),
                }
                let read = match (&before.fingerprint, &file.image) {
                    (Some(known), _) => Some(known.clone()),
                    (None, Some(_)) => fingerprint_of(&image, &before.metadata)?,
                    (None, None) => None,
                };
                file.before = read.or_else(|| Some(Fingerprint::unknown(&before.metadata)));
            }
        }
        record.files.push(file);
    }
    Ok(())
}

fn fingerprint_of(path: &Path, metadata: &Metadata) -> io::Result<Option<Fingerprint>> {
    Fingerprint::of_file(&File::open(path)?, metadata, MAX_IMAGE_BYTES)
}

/// The directories above `path` that do not exist yet, the outermost first.
fn missing_parents(path: &Path, known: &[PathBuf]) -> Vec<PathBuf> {
    let missing = path.ancestors().skip(1).take_while(|parent| parent.symlink_metadata().is_err());
    let new = missing.filter(|parent| !known.iter().any(|known| known == parent));
    let mut new: Vec<PathBuf> = new.map(Path::to_owned).collect();
    new.reverse();
    new
}
