//! Opens the files that a run needs: the workspace, the session, the key store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_auth::AuthFile;
use myclaw_config::ContextPruning;
use myclaw_session::{
    EntryId, Inbox, LockWait, OpenSession, QueuedKind, QueuedMessage, SessionError, Sessions,
    SwitchedOff,
};

use super::SILENT_WAIT;
use crate::failover::Roster;
use crate::open_log::{OpenLog, Opening};
use crate::skills::skills_left_out;
use crate::turn::{input_budget, interrupts};
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
    pub(super) auth_file: AuthFile,
    pub(super) log: OpenLog,
    pub(super) opening: Opening,
    /// Messages that interrupted an earlier run. This run answers them.
    pub(super) interrupts: Vec<EntryId>,
    /// Notices from opening.
    pub(super) notices: Vec<Notice>,
}

/// Prepares the workspace and opens the session, off the async thread.
pub(super) async fn open(params: &RunParams, roster: &Roster) -> Result<Opened, RunError> {
    let store = &params.stores.sessions;
    let workspace = params.workspace.clone();
    let working_directory = params.working_directory.clone();
    let has_own_prompt = params.system_prompt.is_some();
    let bootstrap = blocking(move || {
        check_directory(working_directory)?;
        if has_own_prompt { Ok(Bootstrap::default()) } else { prepare_workspace(&workspace) }
    })
    .await?;
    let log = open_log(params, store).await?;
    let inbox = store.inbox(&params.session_key);
    let roster = roster.clone();
    let budget = input_budget(&roster.first().model, &params.rules.compaction);
    let switched_off = SwitchedOff {
        // What is left out after a refusal looks like what a limit leaves out.
        history_limit: params.rules.history_limit.is_none()
            && params.rules.refusals == RefusalRule::Ladder,
        pruning: params.rules.context_pruning == ContextPruning::Off,
    };
    // A run without its own message answers the waiting ones.
    let is_for_others = params.user_message.is_empty();
    let mut notices = bootstrap.notices;
    notices.extend(skills_left_out(&params.skills));
    blocking(move || {
        let (log, opening, waiting) = load(log, &inbox, budget, switched_off)?;
        let interrupts = interrupts(&waiting).map(|message| message.id).collect();
        let (auth_file, notice) = roster.read_store();
        notices.extend(notice);
        if !is_for_others && !waiting.is_empty() {
            notices.push(Notice::MessagesWaiting { count: waiting.len() });
        }
        Ok(Opened {
            identity: bootstrap.identity,
            bootstrap_files: bootstrap.files,
            auth_file,
            log,
            opening,
            interrupts,
            notices,
        })
    })
    .await
}

/// Loads the end of the log, removes from the inbox what the log has already taken, and returns what waits there.
fn load(
    log: Box<dyn OpenSession>,
    inbox: &Inbox,
    budget: u64,
    switched_off: SwitchedOff,
) -> Result<(OpenLog, Opening, Vec<QueuedMessage>), RunError> {
    // Held while the log is read: a dropped run may still be removing the messages it took.
    let mut held = if inbox.may_hold_messages() { inbox.open()? } else { None };
    let (log, opening) = OpenLog::load(log, budget, switched_off)?;
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
    Ok((log, opening, waiting))
}

/// Opens the session's log, and waits while another process has it open.
async fn open_log(
    params: &RunParams,
    store: &Arc<dyn Sessions>,
) -> Result<Box<dyn OpenSession>, RunError> {
    let began = Instant::now();
    let mut has_notified = false;
    loop {
        let (at, key) = (Arc::clone(store), params.session_key.clone());
        let opened = blocking(move || Ok(at.open(&key, LockWait::Fail))).await?;
        let waited = began.elapsed();
        let (path, process_id) = match opened {
            Ok(log) => return Ok(log),
            Err(SessionError::Locked { path, process_id, .. }) if waited < params.session_wait => {
                (path, process_id)
            }
            Err(error @ SessionError::Locked { .. }) => {
                return Err(leave_message(params, error).await);
            }
            Err(error) => return Err(error.into()),
        };
        if waited >= SILENT_WAIT && !std::mem::replace(&mut has_notified, true) {
            params.events().notice(Notice::WaitingForSession { process_id, path });
        }
        tokio::select! {
            () = tokio::time::sleep(LOCK_PAUSE) => {}
            () = params.cancel.cancelled() => return Err(RunError::Aborted),
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
