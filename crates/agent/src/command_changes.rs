//! Commands of a session are undone as the changes of file tools are: what they changed is recorded when they end.
//!
//! A call that runs commands, or sub-agents, is between two looks at the files. What is different is recorded in the turn of the
//! call; a command that policy knows to change no file needs no look. While a background job of the session runs, the looks of a turn follow each other without a gap. What a killed process
//! has not recorded is noted next to the session, and recorded before the next command or undo.
//!
//! In sandboxed sessions nothing is recorded: git would read for this process what others can change at every moment.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallEffect, Hook, HookError, PreparedCall, RunError, RunResult, ToolContext, ToolKind,
    ToolOutput, TurnId,
};
use myclaw_files::now_ms;
use myclaw_policy::{SandboxScope, changes_no_file};
use myclaw_tools::{forget_command, note_command, noted_command, record_command};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Mutex;

use crate::SessionConfig;
use crate::blocking::blocking;
use crate::permissions;
use crate::snapshots::{Snapshots, Tree};
use crate::subagents::declared::SPAWN;
use crate::undo::WAIT;

/// Compares the files before and after commands.
struct CommandChanges {
    session: SessionConfig,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    files: Files,
    begun: Option<Begun>,
    /// Why what a command changed could not be recorded.
    why: Option<String>,
}

/// The files that are looked at.
#[derive(Default)]
enum Files {
    /// Nothing is known about them yet.
    #[default]
    Unknown,
    Known(Box<Snapshots>),
    /// Why they are not.
    Refused(String),
}

/// Calls that are under way.
struct Begun {
    note: Note,
    context: ToolContext,
    calls: usize,
}

/// What the files held before, kept for the case that this process is killed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Note {
    turn: TurnId,
    /// When the first call began, in milliseconds since the Unix epoch.
    ts: u64,
    tree: Tree,
}

impl SessionConfig {
    /// The hook, where the session records changes.
    pub(crate) fn command_changes_hook(&self) -> Option<Arc<dyn Hook>> {
        let is_unsandboxed = permissions::scope(self) == SandboxScope::Unsandboxed;
        (is_unsandboxed && self.home.stores().snapshots.is_some()).then(|| {
            let state = Arc::default();
            Arc::new(CommandChanges { session: self.clone(), state }) as Arc<dyn Hook>
        })
    }

    /// Records what a command changed whose process was killed, before an undo: a process that works in the session, or is
    /// about to end, is waited for as an undo waits.
    pub async fn take_up_commands(&self) {
        if !self.has_left_command().await {
            return;
        }
        let (sessions, key) = (Arc::clone(self.home.sessions()), self.session_key.clone());
        let opened = blocking(move || sessions.open(&key, WAIT).map(drop)).await;
        // The undo says why the session cannot be opened.
        if matches!(opened, Ok(Ok(()))) {
            self.record_left_command().await;
        }
    }

    /// The same before a run, which may have to wait for another process itself.
    pub(crate) async fn take_up_commands_if_free(&self) {
        let is_free = |is_used: bool| !is_used;
        if self.has_left_command().await
            && self.home.sessions().is_in_use(&self.session_key).is_ok_and(is_free)
        {
            self.record_left_command().await;
        }
    }

    async fn has_left_command(&self) -> bool {
        let artifacts = self.home.side_files().artifact_directory(&self.session_key);
        blocking(move || noted_command(&artifacts)).await.is_ok_and(|note| note.is_some())
    }

    /// Records what is different since the note that a killed process left. The caller knows that no process works in the
    /// session, or works in it.
    async fn record_left_command(&self) {
        let is_sandboxed = permissions::scope(self) == SandboxScope::Sandboxed;
        let place = self.home.stores().snapshots.as_ref().filter(|_| !is_sandboxed);
        let Some(place) = place else { return };
        let context = self.change_context();
        let artifacts = context.artifact_directory.clone();
        let Ok(Some(note)) = blocking(move || noted_command(&artifacts)).await else { return };
        let outcome = async {
            let note: Note = serde_json::from_str(&note).map_err(|error| error.to_string())?;
            let mut files = Snapshots::of(&note.tree.root, place).await?;
            let now = files.take().await?;
            record(&files, &note, &now, &context).await
        };
        if let Err(why) = outcome.await {
            let session = self.session_key.as_str();
            tracing::warn!(session, "what a command changed is not known: {why}");
        }
        let _ = blocking(move || forget_command(&context)).await;
    }
}

impl CommandChanges {
    /// Whether a call may change files. One that runs nothing but commands that are known to read needs no look.
    fn is_meant(call: &PreparedCall) -> bool {
        let reads = |effect: &CallEffect| {
            let line = match effect {
                CallEffect::Run(line) => line,
                _ => return false,
            };
            // A variable can change what a name starts.
            line.environment.is_empty() && changes_no_file(&line.command)
        };
        let effects = &call.subject.effects;
        let only_reads = !effects.is_empty() && effects.iter().all(reads);
        let may_run = matches!(call.declaration.kind, ToolKind::Run | ToolKind::Attend);
        (may_run && !only_reads) || call.tool_name == SPAWN
    }

    async fn begin(&self, state: &mut State, context: &ToolContext) -> Result<(), String> {
        if let Some(begun) = &mut state.begun {
            begun.calls += 1;
            return Ok(());
        }
        if let Files::Unknown = state.files {
            // The run has the session now.
            self.session.record_left_command().await;
            let Some(place) = &self.session.home.stores().snapshots else { return Ok(()) };
            state.files = match Snapshots::of(&context.working_directory, place).await {
                Ok(files) => Files::Known(Box::new(files)),
                Err(why) => Files::Refused(why),
            };
        }
        let Files::Known(files) = &mut state.files else { return Ok(()) };
        let tree = match files.take().await {
            Ok(tree) => tree,
            Err(why) => {
                state.files = Files::Refused(why);
                return Ok(());
            }
        };
        let note = Note { turn: context.turn.clone(), ts: now_ms(), tree };
        // A name that JSON cannot have leaves the changes of a killed process unknown.
        if let Ok(text) = serde_json::to_string(&note) {
            let context = context.clone();
            let noted = blocking(move || note_command(&context, &text)).await;
            noted.map_err(|error| error.message)?.map_err(|error| error.to_string())?;
        }
        state.begun = Some(Begun { note, context: context.clone(), calls: 1 });
        Ok(())
    }

    /// Records what is different since the last look.
    async fn look(state: &mut State) -> Result<(), String> {
        let (Files::Known(files), Some(begun)) = (&mut state.files, &mut state.begun) else {
            return Ok(());
        };
        let now = files.take().await?;
        let recorded = record(files, &begun.note, &now, &begun.context).await;
        begun.note.tree = now;
        recorded
    }

    /// The same, for the last time in the turn, or until the next call.
    async fn look_last(state: &mut State) -> Result<(), String> {
        Self::look(state).await?;
        if let Some(begun) = state.begun.take() {
            let forgotten = blocking(move || forget_command(&begun.context)).await;
            forgotten.map_err(|error| error.message)?.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Looks while the model is asked: the next command and the end of the run wait for it. Gives why nothing is recorded.
    async fn end(&self) -> Option<String> {
        let mut state = Arc::clone(&self.state).lock_owned().await;
        if let Files::Refused(why) = &state.files {
            return Some(why.clone());
        }
        let begun = state.begun.as_mut()?;
        begun.calls = begun.calls.saturating_sub(1);
        let is_last = begun.calls == 0;
        let works = self.session.jobs().await.list().await.iter().any(|job| job.is_running());
        tokio::spawn(async move {
            let looked = match is_last && !works {
                true => Self::look_last(&mut state).await,
                false => Self::look(&mut state).await,
            };
            if let Err(why) = looked {
                state.why = Some(why);
            }
        });
        None
    }
}

/// Records what is different now from what a note says.
async fn record(
    files: &Snapshots,
    note: &Note,
    now: &Tree,
    context: &ToolContext,
) -> Result<(), String> {
    if note.tree.root != now.root {
        return Err("the directory is another one now".to_owned());
    }
    let difference = files.difference(&note.tree, now).await?;
    if difference.changes.is_empty() {
        return Ok(());
    }
    let (context, turn) = (context.clone(), (note.turn.clone(), note.ts));
    let recorded =
        blocking(move || record_command(&context, turn, difference.changes, difference.made));
    let recorded = recorded.await.map_err(|error| error.message)?;
    recorded.map(drop).map_err(|error| error.to_string())
}

impl Hook for CommandChanges {
    fn name(&self) -> &str {
        "changes of commands"
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn call_begins<'a>(
        &'a self,
        call: &'a PreparedCall,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            if !Self::is_meant(call) {
                return Ok(());
            }
            let mut state = self.state.lock().await;
            self.begin(&mut state, context).await.map_err(HookError)
        })
    }

    fn tool_result<'a>(
        &'a self,
        call: &'a PreparedCall,
        output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            if !Self::is_meant(call) {
                return Ok(());
            }
            // As file tools say it of their changes.
            if let Some(why) = self.end().await {
                let details = output.details.get_or_insert_with(|| json!({}));
                if let Some(details) = details.as_object_mut() {
                    details.insert("notUndoable".to_owned(), json!(why));
                }
            }
            Ok(())
        })
    }

    fn agent_end<'a>(
        &'a self,
        _outcome: &'a Result<RunResult, RunError>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            let mut state = self.state.lock().await;
            Self::look_last(&mut state).await.map_err(HookError)?;
            if matches!(state.files, Files::Known(_)) {
                // The session was released before, so what the last command changed is on this machine alone.
                let session = self.session.clone();
                let shared = blocking(move || session.share_side_files()).await;
                shared.map_err(|error| HookError(error.message))?;
            }
            state.why.take().map_or(Ok(()), |why| Err(HookError(why)))
        })
    }
}
