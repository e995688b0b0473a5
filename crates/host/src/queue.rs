//! What a group does next: tasks that are due, then messages. One container at a time.

use std::sync::Arc;
use std::time::Duration;

use crate::host::Shared;
use crate::ledger::{Stored, now_ms};
use crate::rows::{GroupState, MessageState, Task};
use crate::run::{self, Due};
use crate::{Folder, HostError, speech};

/// Longest sleep: a clock that is set forward is noticed after it.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// Most overheard messages that are kept until the agent sees them, and how many go when there are more.
const MAX_OVERHEARD: usize = 200;
const REMOVED_AT_ONCE: usize = 100;

/// What is to be done.
enum Next {
    Task(Box<Stored<Task>>),
    Messages,
    /// Nothing, for this long.
    Wait(Duration),
}

/// Attends to a group until it is removed from the list.
pub(crate) async fn attend(shared: Arc<Shared>, folder: Folder) -> Result<(), HostError> {
    tokio::select! {
        ended = serve(&shared, &folder) => ended,
        Err(error) = speech::listen(&shared, &folder) => Err(error),
    }
}

async fn serve(shared: &Shared, folder: &Folder) -> Result<(), HostError> {
    let wake = shared.wake_of(folder);
    let mut state = shared.ledger.state(folder).await?;
    run::recover(shared, folder, &mut state).await?;
    while shared.groups().of_folder(folder).is_some() {
        prune_overheard(shared, folder).await?;
        if let Next::Wait(pause) = next(shared, folder, &state.row).await? {
            tokio::select! {
                () = wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
                () = shared.stopping.cancelled() => break,
            }
            continue;
        }
        let _place = shared.place().await?;
        if shared.stopping.is_cancelled() {
            break;
        }
        // Meanwhile a task may have become due or have been cancelled, or the group may have gone.
        let groups = shared.groups();
        let Some(group) = groups.of_folder(folder) else { break };
        let due = match next(shared, folder, &state.row).await? {
            Next::Task(task) => Due::Task(task),
            Next::Messages => Due::Messages,
            Next::Wait(_) => continue,
        };
        run::run(shared, group, &mut state, due).await?;
    }
    Ok(())
}

async fn next(shared: &Shared, folder: &Folder, state: &GroupState) -> Result<Next, HostError> {
    let now = now_ms();
    let mut until = now.saturating_add(u64::try_from(LONGEST_SLEEP.as_millis()).unwrap_or(now));
    if let Some(task) = shared.ledger.first_due(folder).await? {
        match task.row.next_run {
            Some(due) if due > now => until = until.min(due),
            _ => return Ok(Next::Task(Box::new(task))),
        }
    }
    let first = shared.ledger.open_messages(folder, 1).await?.pop();
    if first.is_some_and(|message| speech::is_heard(shared, &message.row)) {
        if state.retry_at <= now {
            return Ok(Next::Messages);
        }
        until = until.min(state.retry_at);
    }
    Ok(Next::Wait(Duration::from_millis(until.saturating_sub(now).max(1))))
}

/// Forgets the oldest overheard messages of a group in which nobody talks to the agent.
async fn prune_overheard(shared: &Shared, folder: &Folder) -> Result<(), HostError> {
    let overheard = shared.ledger.overheard(folder, MAX_OVERHEARD + 1).await?;
    if overheard.len() <= MAX_OVERHEARD {
        return Ok(());
    }
    let mut writes = Vec::new();
    for message in overheard.iter().take(REMOVED_AT_ONCE) {
        writes.extend(shared.ledger.end_message(&message.id, MessageState::Answered).await?);
    }
    shared.ledger.commit(writes).await
}
