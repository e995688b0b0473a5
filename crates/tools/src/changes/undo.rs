//! Undo and redo of a turn's changes.
//!
//! An undo records what it changes as a tool does, so it can be taken back too. The caller marks it as done after the
//! session's log holds a message about it. If an undo is killed before that, the next undo repeats it and finds that
//! the files already have the right state.

use std::io;
use std::path::{Path, PathBuf};

use myclaw_engine::ToolContext;
use serde::Serialize;

use super::image::{give_mode, load};
use super::journal::Journal;
use super::plan::{Direction, Plan, Step, Undone, WhichTurn, plan, turns};
use super::record::record_undo;
use super::{Before, Upcoming, directory};
use crate::files::{Attributes, remove_abandoned, replace_file, sync_directory};

/// Why an undo failed.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The list of changes could not be read or written.
    #[error("cannot use the list of changes in {}: {source}. Nothing was changed; try again when that works", path.display())]
    Journal {
        /// Its directory.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A file could not be changed.
    #[error("cannot write {}: {source}. What was undone before it stays so; the next undo continues there", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

/// A turn that changed files, for a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedTurn {
    /// Its number, counted from the latest, which is 1.
    pub turn: usize,
    /// When it made its first change, in milliseconds since the Unix epoch.
    pub ts: u64,
    /// Whether its changes are undone.
    pub undone: bool,
}

/// An undo or redo that is computed and not done yet.
#[derive(Debug)]
pub struct Undo {
    journal: Journal,
    directory: PathBuf,
    plan: Plan,
}

/// The turns of a session that changed files, the latest first. Blocks.
///
/// # Errors
/// The list of changes cannot be read.
pub fn changed_turns(context: &ToolContext) -> Result<Vec<ChangedTurn>, UndoError> {
    let directory = directory(context);
    let content = Journal::new(directory.clone()).read();
    let content = content.map_err(|source| UndoError::Journal { path: directory, source })?;
    let listed = |(turn, found): (usize, super::plan::Turn)| ChangedTurn {
        turn,
        ts: found.ts,
        undone: found.is_undone,
    };
    Ok((1..).zip(turns(&content)).map(listed).collect())
}

/// Gives the session of `to`, which is new, the list of changes of the session of `from`, of which it is a copy: what the turns
/// that both have in common changed can be undone there too. The old contents are shared, as links. Blocks.
///
/// # Errors
/// The list cannot be read, or written in the new place.
pub fn inherit_changes(from: &ToolContext, to: &ToolContext) -> Result<(), UndoError> {
    let (old, new) = (directory(from), directory(to));
    let shared = Journal::new(old).share_with(&Journal::new(new.clone()));
    shared.map_err(|source| UndoError::Journal { path: new, source })
}

impl Undo {
    /// Computes what an undo does. `None` if there is no such turn. The caller holds the session's lock until the end.
    /// It uses only the directories and `workspace_only` of the context. All calls of this type block.
    ///
    /// # Errors
    /// The list of changes, or a file, cannot be read.
    pub fn plan(
        context: &ToolContext,
        direction: Direction,
        which: WhichTurn,
    ) -> Result<Option<Self>, UndoError> {
        let directory = directory(context);
        let journal = Journal::new(directory.clone());
        match plan(context, &journal, direction, which) {
            Ok(plan) => Ok(plan.map(|plan| Self { journal, directory, plan })),
            Err(source) => Err(UndoError::Journal { path: directory, source }),
        }
    }

    /// The changes that it makes.
    pub fn report(&self) -> &Undone {
        &self.plan.report
    }

    /// Whether the model has to know, because its knowledge of a file is wrong now.
    pub fn concerns_model(&self) -> bool {
        self.plan.is_resumed || !self.plan.steps.is_empty()
    }

    /// Changes the files.
    ///
    /// # Errors
    /// A file cannot be written. The next undo continues there.
    pub fn apply(&self) -> Result<(), UndoError> {
        let Plan { turn, direction, steps, directories, parents, .. } = &self.plan;
        parents.iter().for_each(|directory| remove_abandoned(directory));
        if steps.is_empty() {
            return Ok(());
        }
        let upcoming: Vec<Upcoming> = steps
            .iter()
            .map(|step| Upcoming {
                path: step.path.clone(),
                before: step.now.clone().map(|(metadata, fingerprint)| Before {
                    metadata,
                    fingerprint: Some(fingerprint),
                }),
                after: step.goal.as_ref().map(|goal| goal.fingerprint.clone()),
            })
            .collect();
        record_undo(&self.journal, turn, direction.origin(), &upcoming)
            .map_err(|source| self.journal_error(source))?;
        // Contents are written first, so that a file that was moved always exists.
        let (written, removed): (Vec<&Step>, Vec<&Step>) =
            steps.iter().partition(|step| step.goal.is_some());
        for step in written.into_iter().chain(removed) {
            step.take().map_err(|source| UndoError::File { path: step.path.clone(), source })?;
        }
        remove_empty(directories);
        Ok(())
    }

    /// Notes that the undo is done.
    ///
    /// # Errors
    /// The list of changes cannot be written. The next undo repeats this one.
    pub fn finish(&self) -> Result<(), UndoError> {
        let Plan { turn, direction, .. } = &self.plan;
        self.journal.mark(turn, direction.state()).map_err(|source| self.journal_error(source))
    }

    fn journal_error(&self, source: io::Error) -> UndoError {
        UndoError::Journal { path: self.directory.clone(), source }
    }
}

impl Step {
    fn take(&self) -> io::Result<()> {
        let Some(goal) = &self.goal else {
            std::fs::remove_file(&self.path)?;
            sync_directory(&self.path);
            return Ok(());
        };
        let gone = || io::Error::other("its old content is gone");
        let (bytes, metadata) = load(&goal.image, &goal.fingerprint)?.ok_or_else(gone)?;
        std::fs::create_dir_all(myclaw_files::parent_of(&self.path))?;
        let attributes = Attributes { like: Some(metadata.clone()), executable: None };
        replace_file(&self.path, &bytes, &attributes)?;
        give_mode(&self.path, &metadata, &goal.fingerprint)
    }
}

/// Removes the directories that the turn had made and that hold nothing now, the innermost first.
fn remove_empty(directories: &[PathBuf]) {
    let mut directories: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
    directories.sort_by_key(|directory| std::cmp::Reverse(directory.components().count()));
    for directory in directories {
        // What is not empty stays.
        let _ = std::fs::remove_dir(directory);
    }
}
