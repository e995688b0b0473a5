//! The end of a run: what becomes of the messages and the task that it was for.

use myclaw_exec::{Exit, Finished, end_traced};
use myclaw_store::Write;

use super::{Phase, Run, Stopped, clear_input, hard, input, part};
use crate::backend::BackendError;
use crate::desk::{RunnerFiles, write_snapshots};
use crate::host::Shared;
use crate::ledger::{State, now_ms};
use crate::rows::{MessageState, Query, RunState, RunTask};
use crate::shared_directory::has;
use crate::tasks::after_run;
use crate::{Folder, Group, HostError, OutboundKind};

/// Characters of a failure that the chat sees.
const SHOWN_ERROR: usize = 300;
/// Characters of a runner's standard error that stand for the reason of its failure.
const SHOWN_STDERR: usize = 200;
/// Bytes of a runner's standard error in the log of a failed run.
const LOGGED_STDERR: usize = 16 * 1024;
/// Most messages whose ends are stored in one batch with the rest.
const MAX_ENDS: usize = 900;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Done,
    /// It failed, and why.
    Failed(String),
    /// Somebody wanted it to stop.
    Stopped,
    /// The host was stopped during the run.
    Interrupted,
}

impl Run<'_> {
    /// Stores the outcome of the messages and the task of the run.
    pub(super) async fn end(
        mut self,
        finished: Result<Finished, BackendError>,
    ) -> Result<(), HostError> {
        self.rests();
        let outcome = self.outcome(&finished);
        if let (Outcome::Failed(_), Ok(finished)) = (&outcome, &finished) {
            let errors = &finished.errors.tail;
            let from = errors.floor_char_boundary(errors.len().saturating_sub(LOGGED_STDERR));
            self.log.line(&format!("standard error:\n{}", &errors[from..]));
        }
        self.log.line(&format!("ended: {outcome:?}"));
        if let Outcome::Failed(reason) = &outcome {
            self.shared.say(&format!("a run of the group {} failed: {reason}", self.group.folder));
        }
        close_books(self.shared, self.group, self.state, outcome, &self.last_text).await
    }

    fn outcome(&self, finished: &Result<Finished, BackendError>) -> Outcome {
        let finished = match finished {
            Ok(finished) => finished,
            Err(error) => return Outcome::Failed(format!("the runner was not started: {error}")),
        };
        let is_over = self.is_idle();
        let said = || self.error.as_deref().map_or_else(|| tail(&finished.errors.tail), shortened);
        match (self.phase, finished.exit) {
            (Phase::Stopped(_), _) if is_over => Outcome::Done,
            (Phase::Stopped(Stopped::ByOrder), _) => Outcome::Stopped,
            (Phase::Stopped(Stopped::WasSilent), _) => {
                let limit = hard(&self.shared.options.limits).as_millis();
                Outcome::Failed(format!("the runner said nothing for {limit} ms"))
            }
            (Phase::Stopped(Stopped::DidNotClose), _) => {
                Outcome::Failed("the runner did not end when it was told to".to_owned())
            }
            (_, Exit::Code(0)) if self.error.is_none() && self.has_answered => Outcome::Done,
            (_, Exit::Code(0)) if self.error.is_none() => {
                Outcome::Failed("the runner ended without an answer".to_owned())
            }
            (_, Exit::Code(0)) => Outcome::Failed(said()),
            (_, Exit::Code(code)) => Outcome::Failed(format!("exit code {code}: {}", said())),
            (_, Exit::Signal(signal)) => {
                Outcome::Failed(format!("the runner was ended by signal {signal}"))
            }
            (_, Exit::TimedOut | Exit::Aborted) => {
                Outcome::Failed("the runner was stopped".to_owned())
            }
        }
    }
}

/// Ends what a killed host has left of a group's run, and stores what has become of it.
pub(crate) async fn recover(
    shared: &Shared,
    folder: &Folder,
    state: &mut State,
) -> Result<(), HostError> {
    let Some(run) = state.row.run.clone() else { return Ok(()) };
    end_processes(shared, &run).await;
    shared.queries.lock().insert(folder.clone(), run.query_key());
    let groups = shared.groups();
    let Some(group) = groups.of_folder(folder) else { return Ok(()) };
    close_books(shared, group, state, Outcome::Interrupted, "").await
}

/// Ends what is left of a group's run. What it was for is settled at the next start.
pub(crate) async fn end_leftovers(shared: &Shared, folder: &Folder) -> Result<(), HostError> {
    if let Some(run) = shared.ledger.state(folder).await?.row.run {
        end_processes(shared, &run).await;
    }
    Ok(())
}

/// Ends what a killed host has left of runs of groups that were removed from the list meanwhile. Their messages stay, for
/// the case that the group comes back.
pub(crate) async fn end_removed(shared: &Shared) -> Result<(), HostError> {
    for mut state in shared.ledger.running().await? {
        let is_there = shared.groups().iter().any(|group| group.folder.as_str() == state.folder);
        let Some(run) = state.row.run.take_if(|_| !is_there) else { continue };
        end_processes(shared, &run).await;
        shared.ledger.save_state(&mut state, Vec::new()).await?;
    }
    Ok(())
}

async fn end_processes(shared: &Shared, run: &RunState) {
    shared.options.backend.clean_up(&run.traces.name).await;
    end_traced(&run.traces.tree()).await;
}

async fn close_books(
    shared: &Shared,
    group: &Group,
    state: &mut State,
    outcome: Outcome,
    last_text: &str,
) -> Result<(), HostError> {
    // What the runner has written last counts too.
    RunnerFiles::new(shared).attend(&group.folder).await?;
    shared.queries.lock().remove(&group.folder);
    shared.questions.lock().remove(&group.folder);
    let Some(mut run) = state.row.run.take() else { return Ok(()) };
    if run.query == Query::Silent && shared.ledger.has_spoken(&run.query_key()).await? {
        run.query = Query::Spoke;
    }
    let input = input(shared, group);
    let is_there = |file: &str| input.as_ref().is_ok_and(|input| has(input, file));
    let taken = run.passed.iter().filter(|(_, file)| !is_there(file)).map(|(id, _)| id.clone());
    let mut in_hand: Vec<String> = taken.collect();
    // A guard for the rest of this function: the desk may change the same task.
    let guard = shared.tasks.lock().await;
    let mut writes = Vec::new();
    let mut is_task = false;
    match run.work {
        RunTask::Messages { ids } => in_hand.splice(0..0, ids).for_each(drop),
        RunTask::Task { id, due } => {
            is_task = true;
            writes
                .extend(end_task(shared, group, &id, due, (&outcome, run.query, last_text)).await?);
        }
    }
    match outcome {
        // A reply that a task took is answered with it; otherwise it waits for the next run.
        Outcome::Done if is_task => {
            writes.extend(ends(shared, &in_hand, MessageState::Answered).await?);
        }
        _ if is_task => {}
        Outcome::Done => {
            state.row.failures = 0;
            writes.extend(ends(shared, &in_hand, MessageState::Answered).await?);
        }
        _ if in_hand.is_empty() => {}
        Outcome::Stopped => {
            state.row.failures = 0;
            let text = "The answer was stopped.".to_owned();
            writes.extend(report(shared, group, &in_hand, text).await?);
        }
        Outcome::Interrupted if run.query != Query::Spoke => {}
        Outcome::Interrupted => {
            let text = "The answer was interrupted and may be incomplete. Write again to go on.";
            writes.extend(report(shared, group, &in_hand, text.to_owned()).await?);
        }
        Outcome::Failed(reason) if run.query == Query::Spoke => {
            let reason = shortened(&reason);
            let text = format!("The answer may be incomplete, because of a failure: {reason}");
            state.row.failures = 0;
            writes.extend(report(shared, group, &in_hand, text).await?);
        }
        Outcome::Failed(reason) => {
            writes.extend(again(shared, group, state, (&reason, &in_hand)).await?);
        }
    }
    if state.row.failures == 0 {
        state.row.retry_at = 0;
    }
    shared.ledger.save_state(state, writes).await?;
    shared.has_parts();
    drop(guard);
    // What stays is cleared before the next run.
    drop(clear_input(shared, group));
    write_snapshots(shared, &group.folder).await
}

/// Plans the next attempt at messages of which nothing was answered, or reports them after the last one.
async fn again(
    shared: &Shared,
    group: &Group,
    state: &mut State,
    (reason, ids): (&str, &[String]),
) -> Result<Vec<Write>, HostError> {
    let row = &mut state.row;
    row.failures += 1;
    row.last_error = shortened(reason);
    let limits = &shared.options.limits;
    if row.failures > limits.retries {
        let text = format!(
            "I could not answer after {} attempts. The last failure: {}. Write again to try again.",
            row.failures, row.last_error
        );
        row.failures = 0;
        return report(shared, group, ids, text).await;
    }
    let wait = limits.retry_base * 2_u32.saturating_pow(row.failures - 1);
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    row.retry_at = now_ms().saturating_add(wait);
    Ok(Vec::new())
}

/// The end of a task's occurrence. One that said nothing before the host was ended is still due.
async fn end_task(
    shared: &Shared,
    group: &Group,
    id: &str,
    due: u64,
    (outcome, query, last_text): (&Outcome, Query, &str),
) -> Result<Vec<Write>, HostError> {
    let problem = match outcome {
        Outcome::Done => None,
        Outcome::Interrupted if query == Query::Silent => return Ok(Vec::new()),
        Outcome::Interrupted if query == Query::Over => None,
        Outcome::Interrupted => Some("it was interrupted".to_owned()),
        Outcome::Stopped => Some("it was stopped".to_owned()),
        Outcome::Failed(reason) => Some(shortened(reason)),
    };
    // A task that was cancelled meanwhile needs no end.
    let Some(task) = shared.ledger.task(id).await? else { return Ok(Vec::new()) };
    let result = match &problem {
        Some(problem) => format!("Error: {problem}"),
        None => last_text.to_owned(),
    };
    let ended = after_run(&task.row, due, &result);
    let mut writes = vec![shared.ledger.changed_task(&task, &ended)?];
    if let Some(problem) = problem {
        let text = format!("A scheduled task failed: {problem}");
        let notice = part(&group.jid, OutboundKind::Notice, text, vec![id.to_owned()]);
        writes.extend(shared.ledger.new_part(&notice)?);
    }
    Ok(writes)
}

/// The ends of messages.
pub(super) async fn ends(
    shared: &Shared,
    ids: &[String],
    state: MessageState,
) -> Result<Vec<Write>, HostError> {
    let mut writes = Vec::new();
    for id in ids.iter().take(MAX_ENDS) {
        writes.extend(shared.ledger.end_message(id, state).await?);
    }
    Ok(writes)
}

/// The ends of messages that are not answered, with one notice to the chat.
async fn report(
    shared: &Shared,
    group: &Group,
    ids: &[String],
    text: String,
) -> Result<Vec<Write>, HostError> {
    let mut about = Vec::new();
    for id in ids {
        let message = shared.ledger.message(id).await?;
        about.extend(message.filter(|it| it.state == MessageState::Open).map(|it| it.source_id));
    }
    let notice = part(&group.jid, OutboundKind::Notice, text, about);
    let mut writes = ends(shared, ids, MessageState::Reported).await?;
    writes.extend(shared.ledger.new_part(&notice)?);
    Ok(writes)
}

fn shortened(text: &str) -> String {
    text.chars().take(SHOWN_ERROR).collect()
}

/// The last characters of a text.
fn tail(text: &str) -> String {
    let text = text.trim_end();
    let count = text.chars().count();
    text.chars().skip(count.saturating_sub(SHOWN_STDERR)).collect()
}
