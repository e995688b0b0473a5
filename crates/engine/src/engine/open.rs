//! Opens the files that a run needs: the workspace, the session, the key store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_auth::AuthFile;
use myclaw_config::ContextPruning;
use myclaw_session::{
    EntryId, Inbox, LockWait, QueuedKind, QueuedMessage, SessionError, SessionKey, Sessions,
    SwitchedOff,
};

use super::SILENT_WAIT;
use crate::failover::Roster;
use crate::open_log::{OpenLog, Opening};
use crate::skills::skills_left_out;
use crate::turn::{Watch, input_budget, interrupts};
use crate::workspace::{Bootstrap, BootstrapFile, prepare_workspace};
use crate::{Notice, RefusalRule, RunError, RunParams, SessionInbox, WhenIdle};

/// Pause between two checks of a lock that another process holds: too short to be noticed, and long enough to cost next
/// to nothing.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The opened files.
pub(super) struct Opened {
    /// Replaces the prompt's identity text.
    pub(super) identity: Option<BootstrapFile>,
    pub(super) bootstrap_files: Vec<BootstrapFile>,
    /// The notes of a session with a workspace of its own.
    pub(super) notes: Option<BootstrapFile>,
    pub(super) auth_file: AuthFile,
    pub(super) log: OpenLog,
    pub(super) opening: Opening,
    /// Messages that interrupted an earlier run. This run answers them.
    pub(super) interrupts: Vec<EntryId>,
    /// Began before the inbox was read.
    pub(super) watch: Watch,
    /// Notices from opening.
    pub(super) notices: Vec<Notice>,
}

/// Prepares the workspace and opens the session, off the async thread. Usually that is one piece of work: each costs the
/// change to another thread and back.
pub(super) async fn open(params: &RunParams, roster: &Roster) -> Result<Opened, RunError> {
    let inbox = params.stores.sessions.inbox(&params.session_key);
    let watch = Watch::begin(&*inbox);
    let loader = Loader {
        store: Arc::clone(&params.stores.sessions),
        key: params.session_key.clone(),
        inbox,
        roster: roster.clone(),
        budget: input_budget(&roster.first().model, &params.rules.compaction),
        switched_off: SwitchedOff {
            // What is left out after a refusal looks like what a limit leaves out.
            history_limit: params.rules.history_limit.is_none()
                && params.rules.refusals == RefusalRule::Ladder,
            pruning: params.rules.context_pruning == ContextPruning::Off,
        },
    };
    let (workspace, directory) = (params.workspace.clone(), params.working_directory.clone());
    let files = params.prompt_files.clone();
    let has_own_prompt = params.system_prompt.is_some();
    let first = loader.clone();
    let (bootstrap, tried) = blocking(move || {
        check_directory(directory)?;
        let bootstrap = match has_own_prompt {
            true => Bootstrap::default(),
            false => prepare_workspace(&workspace, &files)?,
        };
        Ok((bootstrap, first.load()?))
    })
    .await?;
    let loaded = match tried {
        Ok(loaded) => loaded,
        Err(held) => wait_and_load(params, loader, held).await?,
    };
    let mut notices = bootstrap.notices;
    notices.extend(skills_left_out(&params.skills));
    notices.extend(loaded.notice);
    // A run without its own message answers the waiting ones.
    if !params.user_message.is_empty() && !loaded.waiting.is_empty() {
        notices.push(Notice::MessagesWaiting { count: loaded.waiting.len() });
    }
    Ok(Opened {
        identity: bootstrap.identity,
        bootstrap_files: bootstrap.files,
        notes: bootstrap.notes,
        auth_file: loaded.auth_file,
        log: loaded.log,
        opening: loaded.opening,
        interrupts: interrupts(&loaded.waiting).map(|message| message.id).collect(),
        watch,
        notices,
    })
}

/// Opens and loads a session.
#[derive(Clone)]
struct Loader {
    store: Arc<dyn Sessions>,
    key: SessionKey,
    inbox: Arc<dyn Inbox>,
    roster: Roster,
    budget: u64,
    switched_off: SwitchedOff,
}

/// A loaded session, and the keys.
struct Loaded {
    log: OpenLog,
    opening: Opening,
    /// What waits in the inbox, without what the log has already taken.
    waiting: Vec<QueuedMessage>,
    auth_file: AuthFile,
    notice: Option<Notice>,
}

impl Loader {
    /// Loads the end of the log, and removes from the inbox what the log has already taken. The inner error says who has
    /// the session open.
    fn load(&self) -> Result<Result<Loaded, SessionError>, RunError> {
        let session = match self.store.open(&self.key, LockWait::Fail) {
            Ok(session) => session,
            Err(held @ SessionError::Locked { .. }) => return Ok(Err(held)),
            Err(error) => return Err(error.into()),
        };
        // Held while the log is read: a dropped run may still be removing the messages it took.
        let mut held = if self.inbox.may_hold_messages() { self.inbox.hold()? } else { None };
        let (log, opening) = OpenLog::load(session, self.budget, self.switched_off)?;
        let mut waiting = Vec::new();
        if let Some(held) = &mut held {
            waiting = held.pending()?;
            let is_taken = |message: &mut QueuedMessage| opening.taken.contains(&message.id);
            let taken: Vec<EntryId> =
                waiting.extract_if(.., is_taken).map(|message| message.id).collect();
            if !taken.is_empty() {
                held.change(&[], &taken)?;
            }
        }
        let (auth_file, notice) = self.roster.read_store();
        Ok(Ok(Loaded { log, opening, waiting, auth_file, notice }))
    }
}

/// Loads the session as soon as the other process that has it open, or the other run, is done.
async fn wait_and_load(
    params: &RunParams,
    loader: Loader,
    mut held: SessionError,
) -> Result<Loaded, RunError> {
    let began = Instant::now();
    let mut has_notified = false;
    loop {
        let waited = began.elapsed();
        let SessionError::Locked { path, process_id, .. } = &held else { return Err(held.into()) };
        if waited >= params.session_wait {
            return Err(leave_message(params, held).await);
        }
        if waited >= SILENT_WAIT && !std::mem::replace(&mut has_notified, true) {
            let notice = Notice::WaitingForSession { process_id: *process_id, path: path.clone() };
            params.events().notice(notice);
        }
        tokio::select! {
            () = tokio::time::sleep(LOCK_PAUSE) => {}
            () = params.cancel.cancelled() => return Err(RunError::Aborted),
        }
        let next = loader.clone();
        match blocking(move || next.load()).await? {
            Ok(loaded) => return Ok(loaded),
            Err(still) => held = still,
        }
    }
}

/// Leaves the message of a run that cannot open its session in the inbox, for the next run.
async fn leave_message(params: &RunParams, error: SessionError) -> RunError {
    let inbox = SessionInbox::of_run(params);
    let content = params.user_message.clone();
    match inbox.send(QueuedKind::FollowUp, content, WhenIdle::Keep).await {
        Ok(_) => RunError::MessageWaits(error),
        // The message is empty or cannot be stored.
        Err(_) => error.into(),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
) -> Result<T, RunError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| RunError::Internal(error.to_string()))?
}

/// Checks that a directory named by the user exists. It is never created, so that a misspelt name is noticed.
fn check_directory(directory: Option<PathBuf>) -> Result<(), RunError> {
    match directory {
        Some(path) if !path.is_dir() => {
            Err(RunError::Workspace { path, source: std::io::ErrorKind::NotADirectory.into() })
        }
        _ => Ok(()),
    }
}
