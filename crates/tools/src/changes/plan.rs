//! Computes what an undo would do, from the records and the present files.
//!
//! The records of a turn are reverted in memory, the newest first. A file's state on disk must be the state after its
//! newest change. Reverting that change gives the state before it, which must be the state after the previous change,
//! and so on. A file for which this does not hold was changed by something else, and stays as it is.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use myclaw_engine::{ToolContext, TurnId};
use myclaw_files::{PathUse, is_of_process};
use serde::Serialize;

use super::Fingerprint;
use super::fingerprint::{Found, look};
use super::image::load;
use super::journal::{Content, FileChange, Journal, Origin, Record, TurnState};
use crate::support::{real_root, shown_below};

/// The direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Undo: back to the state before the turn.
    Undo,
    /// Redo: to the state after the turn, after an undo.
    Redo,
}

/// The turn whose changes are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichTurn {
    /// For an undo, the latest turn that is not undone; for a redo, the one that was undone last.
    Next,
    /// Counted from the latest turn that changed files, which is 1.
    Number(usize),
}

/// The changes that were undone, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    /// Number of the turn, counted from the latest one that changed files, which is 1.
    pub turn: usize,
    /// When the turn made its first change, in milliseconds since the Unix epoch.
    pub ts: u64,
    /// The files, in the order of their names.
    pub files: Vec<UndoneFile>,
}

/// The outcome for a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoneFile {
    /// Relative to the working directory where it lies in there, else absolute.
    pub path: String,
    /// What was done.
    #[serde(flatten)]
    pub outcome: FileOutcome,
}

/// What was done to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub enum FileOutcome {
    /// It has its other content again.
    Restored,
    /// It was removed, because it did not exist before.
    Removed,
    /// It was in that state already.
    Unchanged,
    /// It was left as it is.
    LeftAlone {
        /// Why. The text follows "it".
        reason: String,
    },
}

/// A turn that changed files.
#[derive(Debug)]
pub(super) struct Turn {
    pub id: TurnId,
    pub ts: u64,
    pub is_undone: bool,
    /// The position of its last mark among all marks.
    marked_at: Option<usize>,
}

/// What is to be done.
#[derive(Debug)]
pub(super) struct Plan {
    pub turn: TurnId,
    pub direction: Direction,
    pub steps: Vec<Step>,
    /// Directories that the turn had made, the outermost first.
    pub directories: Vec<PathBuf>,
    /// The directories of all files of the turn. A killed tool or undo may have left temporary files there.
    pub parents: BTreeSet<PathBuf>,
    pub report: Undone,
    /// Whether an earlier attempt was not recorded as done.
    pub is_resumed: bool,
}

/// A file that is to be written or removed.
#[derive(Debug)]
pub(super) struct Step {
    pub path: PathBuf,
    /// The present file; `None` if there is none.
    pub now: Option<(Metadata, Fingerprint)>,
    pub goal: Option<Goal>,
}

/// The content that a file gets.
#[derive(Debug)]
pub(super) struct Goal {
    pub fingerprint: Fingerprint,
    /// The file that keeps it.
    pub image: PathBuf,
}

/// The turns that changed files, the latest first.
pub(super) fn turns(content: &Content) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for record in content.records.iter().filter(|record| record.origin == Origin::Tool) {
        if !turns.iter().any(|turn| turn.id == record.turn) {
            let id = record.turn.clone();
            turns.push(Turn { id, ts: record.ts, is_undone: false, marked_at: None });
        }
    }
    for (place, (_, id, state)) in content.marks.iter().enumerate() {
        if let Some(turn) = turns.iter_mut().find(|turn| turn.id == *id) {
            turn.is_undone = *state == TurnState::Undone;
            turn.marked_at = Some(place);
        }
    }
    turns.reverse();
    turns
}

/// Finds the turn and works out what to do; `None` if there is no such turn.
pub(super) fn plan(
    context: &ToolContext,
    journal: &Journal,
    direction: Direction,
    which: WhichTurn,
) -> io::Result<Option<Plan>> {
    let content = journal.read()?;
    let turns = turns(&content);
    match (which, direction) {
        (WhichTurn::Number(number), _) => {
            match number.checked_sub(1).and_then(|at| turns.get(at)) {
                Some(turn) => {
                    plan_turn(context, journal, &content, direction, (number, turn)).map(Some)
                }
                None => Ok(None),
            }
        }
        (WhichTurn::Next, Direction::Redo) => {
            let undone = (1..).zip(&turns).filter(|(_, turn)| turn.is_undone);
            match undone.max_by_key(|(_, turn)| turn.marked_at) {
                Some(turn) => plan_turn(context, journal, &content, direction, turn).map(Some),
                None => Ok(None),
            }
        }
        (WhichTurn::Next, Direction::Undo) => {
            let mut passed_over = BTreeSet::new();
            for turn in (1..).zip(&turns).filter(|(_, turn)| !turn.is_undone) {
                let mut plan = plan_turn(context, journal, &content, direction, turn)?;
                plan.parents.append(&mut passed_over);
                // Calls that failed while they wrote, or were killed before they did, leave nothing to undo.
                if !plan.is_empty() {
                    return Ok(Some(plan));
                }
                passed_over = plan.parents;
            }
            Ok(None)
        }
    }
}

fn plan_turn(
    context: &ToolContext,
    journal: &Journal,
    content: &Content,
    direction: Direction,
    (number, turn): (usize, &Turn),
) -> io::Result<Plan> {
    let mut marks = content.marks.iter().rev().filter(|(_, id, _)| *id == turn.id);
    let last_mark = marks.clone().next().map_or(0, |(before, ..)| *before);
    let last_made = marks.find(|(.., state)| *state == TurnState::Made);
    let last_made = last_made.map_or(0, |(before, ..)| *before);
    let is_meant = |(at, record): &(usize, &Record)| {
        record.turn == turn.id
            && match direction {
                // An earlier undo and redo are changes like others.
                Direction::Undo => true,
                Direction::Redo => record.origin == Origin::Undo && *at >= last_made,
            }
    };
    let records: Vec<&Record> =
        content.records.iter().enumerate().filter(is_meant).map(|(_, record)| record).collect();
    let mut states: HashMap<&Path, Walk> = HashMap::new();
    for change in records.iter().rev().flat_map(|record| record.files.iter().rev()) {
        let walk = match states.entry(&change.path) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(Walk::begin(context, &change.path)?),
        };
        walk.take_back(journal, change)?;
    }
    let root = real_root(context);
    let mut walks: Vec<(&Path, Walk)> = states.into_iter().collect();
    walks.sort_by_key(|(path, _)| *path);
    let mut plan = Plan {
        turn: turn.id.clone(),
        direction,
        steps: Vec::new(),
        directories: records
            .iter()
            .flat_map(|record| record.directories.clone())
            .filter(|directory| is_allowed(context, directory))
            .collect(),
        parents: walks
            .iter()
            .filter(|(path, _)| is_allowed(context, path))
            .map(|(path, _)| myclaw_files::parent_of(path))
            .collect(),
        report: Undone { turn: number, ts: turn.ts, files: Vec::new() },
        is_resumed: content
            .records
            .iter()
            .skip(last_mark)
            .any(|record| record.turn == turn.id && record.origin == direction.origin()),
    };
    for (path, walk) in walks {
        let (outcome, step) = walk.end(path);
        plan.steps.extend(step);
        plan.report.files.push(UndoneFile { path: shown_below(path, &root), outcome });
    }
    Ok(plan)
}

impl Plan {
    /// Whether the turn made no changes, so that there is nothing to undo or report.
    fn is_empty(&self) -> bool {
        let is_unchanged = |file: &UndoneFile| file.outcome == FileOutcome::Unchanged;
        !self.is_resumed && self.report.files.iter().all(is_unchanged)
    }
}

impl Direction {
    /// Who makes the changes of this direction.
    pub(super) fn origin(self) -> Origin {
        match self {
            Self::Undo => Origin::Undo,
            Self::Redo => Origin::Redo,
        }
    }

    /// The mark of the turn afterwards.
    pub(super) fn state(self) -> TurnState {
        match self {
            Self::Undo => TurnState::Undone,
            Self::Redo => TurnState::Made,
        }
    }
}

/// Whether the config lets tools change this path. The list of changes may have been written before it did not.
pub(super) fn is_allowed(context: &ToolContext, path: &Path) -> bool {
    context.closed.refusing(path, PathUse::Change).is_none()
        && !path.ancestors().any(is_of_process)
        && (!context.workspace_only || path.starts_with(real_root(context)))
}

/// A file whose changes are being reverted, in memory.
struct Walk {
    now: Found,
    /// The state reached so far, if it differs from the disk.
    reached: Option<Option<Goal>>,
    /// Why no further change can be reverted.
    blocked: Option<String>,
}

impl Walk {
    fn begin(context: &ToolContext, path: &Path) -> io::Result<Self> {
        let now = match is_allowed(context, path) {
            true => look(path)?,
            false => Found::Other(
                "is outside the workspace, where the tools of this session may not change files"
                    .to_owned(),
            ),
        };
        let blocked = match &now {
            Found::Other(reason) => Some(reason.clone()),
            _ => None,
        };
        Ok(Self { now, reached: None, blocked })
    }

    fn take_back(&mut self, journal: &Journal, change: &FileChange) -> io::Result<()> {
        if self.blocked.is_some() {
            return Ok(());
        }
        if !self.is_at(change.after.as_ref()) {
            // A change that was never made, or was taken back by an attempt that was killed.
            if !self.is_at(change.before.as_ref()) {
                let reason = match self.reached {
                    None => "changed since",
                    Some(_) => "was changed by something else during the turn",
                };
                self.blocked = Some(reason.to_owned());
            }
            return Ok(());
        }
        let Some(before) = &change.before else {
            self.reached = Some(None);
            return Ok(());
        };
        let image = change.image.as_ref().map(|name| journal.images().join(name));
        match image {
            Some(image) if load(&image, before)?.is_some() => {
                self.reached = Some(Some(Goal { fingerprint: before.clone(), image }));
            }
            Some(_) => {
                self.blocked = Some("cannot be restored: its old content is gone".to_owned())
            }
            None => self.blocked.clone_from(&change.not_kept),
        }
        Ok(())
    }

    fn is_at(&self, state: Option<&Fingerprint>) -> bool {
        match (&self.reached, state) {
            (None, state) => self.now.is(state),
            (Some(None), None) => true,
            (Some(Some(goal)), Some(state)) => goal.fingerprint.matches(state),
            _ => false,
        }
    }

    fn end(self, path: &Path) -> (FileOutcome, Option<Step>) {
        let goal =
            self.reached.filter(|goal| !self.now.is(goal.as_ref().map(|goal| &goal.fingerprint)));
        let outcome = match (self.blocked, &goal) {
            // If an older change cannot be reverted, none is: a file with only some of them reverted would be in a
            // state that never existed.
            (Some(reason), _) => return (FileOutcome::LeftAlone { reason }, None),
            (None, None) => FileOutcome::Unchanged,
            (None, Some(None)) => FileOutcome::Removed,
            (None, Some(Some(_))) => FileOutcome::Restored,
        };
        let now = match self.now {
            Found::File { fingerprint, metadata } => Some((metadata, fingerprint)),
            _ => None,
        };
        let step = goal.map(|goal| Step { path: path.to_owned(), now, goal });
        (outcome, step)
    }
}
