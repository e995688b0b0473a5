//! Undo and redo of the file changes of a session's turns.

use std::time::Duration;

use myclaw_engine::{SystemClock, ToolContext, TurnId, tell_model};
use myclaw_llm::TextContent;
use myclaw_policy::SandboxScope;
use myclaw_session::LockWait;
use myclaw_tools::{
    ChangedTurn, Direction, FileDifference, FileOutcome, Undo, UndoError, Undone, UndoneFile,
    WhichTurn, changed_turns, differences, inherit_changes,
};

use crate::{AgentError, FailureClass, SessionConfig, permissions};

/// Longest wait for a turn that is running in the session.
pub(crate) const WAIT: LockWait = LockWait::Until(Duration::from_secs(5));

/// Most files that the message to the model names.
const MOST_NAMES: usize = 100;

/// Whether an undo changes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoMode {
    /// Files are changed.
    Apply,
    /// Nothing is changed; the result says what would be done.
    DryRun,
}

/// How the message for the model begins.
pub(crate) const UNDID: &str = "[The user has undone file changes of an earlier turn.";
/// The same after `redo`.
pub(crate) const REDID: &str =
    "[The user has made file changes of an earlier turn again, which were undone.";

impl SessionConfig {
    /// Undoes or redoes the file changes of a turn. The model reads about it with the next message of the
    /// user. Blocks.
    ///
    /// # Errors
    /// There is nothing to undo, a turn is running in the session, or a file cannot be read or written.
    pub fn undo(
        &self,
        direction: Direction,
        which: WhichTurn,
        mode: UndoMode,
    ) -> Result<Undone, AgentError> {
        let log = self.home.sessions().open(&self.session_key, WAIT)?;
        let context = self.change_context();
        let undo = self
            .as_its_tools(|| Undo::plan(&context, direction, which))??
            .ok_or_else(|| Self::nothing(direction, which))?;
        let undone = undo.report().clone();
        if mode == UndoMode::DryRun {
            return Ok(undone);
        }
        self.as_its_tools(|| undo.apply())??;
        if undo.concerns_model() {
            tell_model(log, remark(direction, &undone), &SystemClock)?;
        }
        self.as_its_tools(|| undo.finish())??;
        self.share_side_files();
        Ok(undone)
    }

    /// Undoes the file changes of all turns that made their first one at `since` or later, in milliseconds since the Unix epoch:
    /// the latest first. Blocks.
    ///
    /// # Errors
    /// As [`SessionConfig::undo`]. The turns before the one that failed are undone.
    pub fn undo_since(&self, since: u64) -> Result<Vec<Undone>, AgentError> {
        let turns = self.changed_turns()?.into_iter();
        let meant = turns.filter(|turn| !turn.undone && turn.ts >= since);
        let undo = |turn: ChangedTurn| {
            self.undo(Direction::Undo, WhichTurn::Number(turn.turn), UndoMode::Apply)
        };
        meant.map(undo).collect()
    }

    /// Lets this session, a copy of that of `from`, undo what the turns that both have in common changed. Blocks.
    ///
    /// # Errors
    /// The list of changes cannot be copied.
    pub fn inherit_changes(&self, from: &Self) -> Result<(), AgentError> {
        // The tools of a sandboxed session may have put links there, which this process would follow; and they may not read what
        // another session has kept of files that are closed to them.
        if self.is_sandboxed() || from.is_sandboxed() {
            return Ok(());
        }
        from.share_side_files();
        inherit_changes(&from.change_context(), &self.change_context())?;
        self.share_side_files();
        Ok(())
    }

    /// The turns of the session that changed files, the latest first. Blocks.
    ///
    /// # Errors
    /// The list of changes cannot be read.
    pub fn changed_turns(&self) -> Result<Vec<ChangedTurn>, AgentError> {
        self.share_side_files();
        let context = self.change_context();
        Ok(self.as_its_tools(|| changed_turns(&context))??)
    }

    /// The files that the tools have changed in the session, each with its difference. Blocks.
    ///
    /// # Errors
    /// The list of changes cannot be read.
    pub fn differences(&self) -> Result<Vec<FileDifference>, AgentError> {
        self.share_side_files();
        let context = self.change_context();
        Ok(self.as_its_tools(|| differences(&context))??)
    }

    pub(crate) fn change_context(&self) -> ToolContext {
        // Confined tools could have written anything into the list of changes, and this process is not confined. So
        // undo changes only files that the tools themselves may change.
        let is_confined = permissions::scope(self) == SandboxScope::Sandboxed;
        ToolContext {
            working_directory: self.working_directory().to_owned(),
            artifact_directory: self.home.side_files().artifact_directory(&self.session_key),
            max_result_chars: self.agent.max_tool_result_chars,
            workspace_only: self.config.tools.fs.workspace_only || is_confined,
            closed: self.closed_paths(),
            turn: TurnId::generate(),
        }
    }

    fn nothing(direction: Direction, which: WhichTurn) -> AgentError {
        let message = match (which, direction) {
            (WhichTurn::Number(number), _) => format!(
                "the session has no turn {number} that changed files; `myclaw sessions undo NAME --list` lists those it has"
            ),
            (WhichTurn::Next, Direction::Undo) => {
                "there is nothing to undo: no turn of the session changed files, or all of them are undone"
                    .to_owned()
            }
            (WhichTurn::Next, Direction::Redo) => {
                "there is nothing to redo: nothing is undone".to_owned()
            }
        };
        AgentError::new(FailureClass::NothingToDo, message)
    }
}

impl From<UndoError> for AgentError {
    fn from(error: UndoError) -> Self {
        Self::new(FailureClass::Session, error.to_string())
    }
}

/// What the model reads.
fn remark(direction: Direction, undone: &Undone) -> TextContent {
    let begin = match direction {
        Direction::Undo => UNDID,
        Direction::Redo => REDID,
    };
    // The names of files are text from outside.
    let mut text = String::new();
    let mut names_left = MOST_NAMES;
    for group in [Group::OtherContent, Group::Removed, Group::LeftAlone] {
        let files: Vec<&UndoneFile> =
            undone.files.iter().filter(|file| Group::of(&file.outcome) == group).collect();
        if files.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{}:", group.heading()));
        let shown = files.len().min(names_left);
        names_left -= shown;
        for file in &files[..shown] {
            text.push_str(&format!("\n- {}", file.path));
        }
        if shown < files.len() {
            text.push_str(&format!("\n- and {} more", files.len() - shown));
        }
    }
    text.push_str("\nRead a file again before you change it.]");
    TextContent::followed_by_outside(begin, &text)
}

/// Files that are listed together for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    OtherContent,
    Removed,
    LeftAlone,
}

impl Group {
    fn of(outcome: &FileOutcome) -> Self {
        match outcome {
            // An earlier undo did this, but was killed before it wrote the message to the model.
            FileOutcome::Unchanged | FileOutcome::Restored => Self::OtherContent,
            FileOutcome::Removed => Self::Removed,
            FileOutcome::LeftAlone { .. } => Self::LeftAlone,
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::OtherContent => "These have their other content again",
            Self::Removed => "These are removed",
            Self::LeftAlone => {
                "These are left as they are, because something else changed them or their old content was not kept"
            }
        }
    }
}
