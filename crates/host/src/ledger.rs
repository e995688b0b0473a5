//! The store, in the words of the host.

pub(crate) use myclaw_files::now_ms;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) use myclaw_store::Stored;
use myclaw_store::{Batch, Blob, Change, Commit, Place, Records, Store, Version, Write, sweep};

use crate::rows::{AcceptedMessage, GroupState, MessageState, OutgoingPart, Task, TaskState};
use crate::{Folder, HostError};

const MESSAGES: Records<AcceptedMessage> = Records::new("message");
const PARTS: Records<OutgoingPart> = Records::new("part");
const TASKS: Records<Task> = Records::new("task");
const STATES: Records<GroupState> = Records::new("state");
/// How often a group was asked to begin a new session.
const BEGINNINGS: Records<u64> = Records::new("beginnings");
/// Queue of the parts that are not delivered.
const UNSENT: &str = "unsent";
/// Queue of the groups with a run: a current one, or one that a killed host left.
const RUNNING: &str = "running";
/// The queries that have sent a message through a file.
const SPOKE: Records<()> = Records::new("spoke");
/// Queue of everything that is over, by the time of its end.
const OVER: &str = "over";
/// How long that is kept, so that a source which delivers a message again finds it.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Most parts or tasks that are read at once.
const AT_ONCE: usize = 200;

/// The store.
#[derive(Clone)]
pub(crate) struct HostLedger {
    store: Arc<dyn Store>,
    /// The latest time of [`HostLedger::next_ms`].
    last_ms: Arc<AtomicU64>,
}

/// The state of a group.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) folder: String,
    /// `None` for a new group.
    version: Option<Version>,
    pub(crate) row: GroupState,
}

fn open_queue(folder: &Folder) -> String {
    format!("open/{folder}")
}

fn overheard_queue(folder: &Folder) -> String {
    format!("overheard/{folder}")
}

fn due_queue(folder: &Folder) -> String {
    format!("due/{folder}")
}

fn paused_queue(folder: &Folder) -> String {
    format!("paused/{folder}")
}

impl HostLedger {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, last_ms: Arc::default() }
    }

    /// The present, or a little later: each call gives a later time than those before.
    pub(crate) fn next_ms(&self) -> u64 {
        let now = now_ms();
        let later = |last: u64| now.max(last.saturating_add(1));
        let last = self
            .last_ms
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(later(last)));
        later(last.unwrap_or_else(|last| last))
    }

    /// Stores a message. False if one with this key is there already.
    pub(crate) async fn insert_message(
        &self,
        key: &str,
        row: &AcceptedMessage,
    ) -> Result<bool, HostError> {
        let queue = match row.state {
            MessageState::Overheard => overheard_queue(&row.folder),
            _ => open_queue(&row.folder),
        };
        let place = Some(Place::new(queue, self.next_ms()));
        Ok(MESSAGES.insert(&*self.store, key, row, place).await?.is_some())
    }

    /// The messages of a group that wait for an answer, the oldest first, at most `most`.
    pub(crate) async fn open_messages(
        &self,
        folder: &Folder,
        most: usize,
    ) -> Result<Vec<Stored<AcceptedMessage>>, HostError> {
        Ok(MESSAGES.first(&*self.store, &open_queue(folder), most).await?)
    }

    /// The messages that the agent has only overheard.
    pub(crate) async fn overheard(
        &self,
        folder: &Folder,
        most: usize,
    ) -> Result<Vec<Stored<AcceptedMessage>>, HostError> {
        Ok(MESSAGES.first(&*self.store, &overheard_queue(folder), most).await?)
    }

    /// The end of a message, for a batch. Nothing if it has ended already.
    pub(crate) async fn end_message(
        &self,
        key: &str,
        state: MessageState,
    ) -> Result<Vec<Write>, HostError> {
        let is_over = |row: &AcceptedMessage| {
            matches!(row.state, MessageState::Answered | MessageState::Reported)
        };
        let stored = MESSAGES.get(&*self.store, key).await?;
        let Some(stored) = stored.filter(|stored| !is_over(&stored.row)) else {
            return Ok(Vec::new());
        };
        let row = AcceptedMessage { state, ..stored.row };
        Ok(MESSAGES.put_any_size(key, Some(stored.version), &row, self.over())?)
    }

    /// A change of a message that keeps its place, for a batch.
    pub(crate) fn changed_message(
        &self,
        stored: &Stored<AcceptedMessage>,
        row: &AcceptedMessage,
    ) -> Result<Vec<Write>, HostError> {
        Ok(MESSAGES.put_any_size(&stored.id, Some(stored.version), row, stored.place.clone())?)
    }

    /// A message by its key.
    pub(crate) async fn message(&self, key: &str) -> Result<Option<AcceptedMessage>, HostError> {
        Ok(MESSAGES.get(&*self.store, key).await?.map(|stored| stored.row))
    }

    /// A part for a batch.
    pub(crate) fn new_part(&self, part: &OutgoingPart) -> Result<Vec<Write>, HostError> {
        Ok(PARTS.put_any_size(&part.outbound.id, None, part, Place::last(UNSENT))?)
    }

    /// Stores a part alone. False if one with this id is there already.
    pub(crate) async fn insert_part(&self, part: &OutgoingPart) -> Result<bool, HostError> {
        let (id, place) = (&part.outbound.id, Place::last(UNSENT));
        Ok(PARTS.insert(&*self.store, id, part, place).await?.is_some())
    }

    /// The parts that are not delivered, the oldest first.
    pub(crate) async fn unsent(&self) -> Result<Vec<Stored<OutgoingPart>>, HostError> {
        Ok(PARTS.first(&*self.store, UNSENT, AT_ONCE).await?)
    }

    /// Notes that a part was delivered.
    pub(crate) async fn sent(&self, part: &Stored<OutgoingPart>) -> Result<(), HostError> {
        let place = self.over();
        self.commit(PARTS.put_any_size(&part.id, Some(part.version), &part.row, place)?).await
    }

    /// The state of a group; that of a new one if nothing is stored.
    pub(crate) async fn state(&self, folder: &Folder) -> Result<State, HostError> {
        let stored = STATES.get(&*self.store, folder.as_str()).await?;
        let new = State { folder: folder.to_string(), version: None, row: GroupState::default() };
        Ok(stored.map_or(new, State::from))
    }

    /// Stores the state of a group together with `more`.
    pub(crate) async fn save_state(
        &self,
        state: &mut State,
        more: Vec<Write>,
    ) -> Result<(), HostError> {
        let place = state.row.run.is_some().then(|| Place::new(RUNNING, 0));
        let mut writes = vec![STATES.put(&state.folder, state.version, &state.row, place)?];
        writes.extend(more);
        state.version = Some(self.commit_all(writes).await?);
        Ok(())
    }

    /// How often a group was asked to begin a new session.
    pub(crate) async fn beginnings(&self, folder: &Folder) -> Result<u64, HostError> {
        let stored = BEGINNINGS.get(&*self.store, folder.as_str()).await?;
        Ok(stored.map_or(0, |stored| stored.row))
    }

    /// Notes that a group is to begin a new session.
    pub(crate) async fn begin_anew(&self, folder: &Folder) -> Result<(), HostError> {
        let more = |count: Option<u64>| Change::put(count.map_or(1, |count| count + 1), None);
        BEGINNINGS.update(&*self.store, folder.as_str(), more).await?;
        Ok(())
    }

    /// The states of the groups with a run: a current one, or one that a killed host left.
    pub(crate) async fn running(&self) -> Result<Vec<State>, HostError> {
        let running = STATES.all(&*self.store, RUNNING).await?;
        Ok(running.into_iter().map(State::from).collect())
    }

    /// Notes that a query has sent a message through a file.
    pub(crate) async fn note_spoke(&self, query: &str) -> Result<(), HostError> {
        SPOKE.insert(&*self.store, query, &(), self.over()).await?;
        Ok(())
    }

    /// Whether a query has sent a message through a file.
    pub(crate) async fn has_spoken(&self, query: &str) -> Result<bool, HostError> {
        Ok(SPOKE.get(&*self.store, query).await?.is_some())
    }

    /// Stores a new task. False if it is there already.
    pub(crate) async fn insert_task(&self, id: &str, task: &Task) -> Result<bool, HostError> {
        Ok(TASKS.insert(&*self.store, id, task, self.place_of(task)).await?.is_some())
    }

    /// A task that is not over.
    pub(crate) async fn task(&self, id: &str) -> Result<Option<Stored<Task>>, HostError> {
        let stored = TASKS.get(&*self.store, id).await?;
        Ok(stored.filter(|task| task.row.state != TaskState::Completed))
    }

    /// A change of a task, for a batch.
    pub(crate) fn changed_task(
        &self,
        stored: &Stored<Task>,
        row: &Task,
    ) -> Result<Write, HostError> {
        Ok(TASKS.put(&stored.id, Some(stored.version), row, self.place_of(row))?)
    }

    /// The tasks of a group that are not over: first the active ones, by the time at which they are due.
    pub(crate) async fn tasks(&self, folder: &Folder) -> Result<Vec<Stored<Task>>, HostError> {
        let mut tasks = TASKS.first(&*self.store, &due_queue(folder), AT_ONCE).await?;
        tasks.extend(TASKS.first(&*self.store, &paused_queue(folder), AT_ONCE).await?);
        Ok(tasks)
    }

    /// The active task of a group that is due first.
    pub(crate) async fn first_due(
        &self,
        folder: &Folder,
    ) -> Result<Option<Stored<Task>>, HostError> {
        Ok(TASKS.first(&*self.store, &due_queue(folder), 1).await?.pop())
    }

    fn place_of(&self, task: &Task) -> Place {
        match (task.state, task.next_run) {
            (TaskState::Active, Some(due)) => Place::new(due_queue(&task.folder), due),
            (TaskState::Paused, _) => Place::new(paused_queue(&task.folder), 0),
            _ => self.over(),
        }
    }

    /// The place of what has just ended.
    fn over(&self) -> Place {
        Place::new(OVER, self.next_ms())
    }

    /// Removes what was over long ago.
    pub(crate) async fn prune(&self) -> Result<(), HostError> {
        let kept = u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX);
        let before = now_ms().saturating_sub(kept);
        sweep(&*self.store, OVER, before).await?;
        Ok(Blob::sweep(&*self.store).await?)
    }

    /// Carries out a batch that nothing else can be in the way of.
    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<(), HostError> {
        self.commit_all(writes).await.map(|_| ())
    }

    async fn commit_all(&self, writes: Vec<Write>) -> Result<Version, HostError> {
        match self.store.commit(Batch::from(writes)).await? {
            Commit::Done(version) => Ok(version),
            Commit::Refused(refusal) => Err(HostError::Conflict(refusal.id().to_string())),
        }
    }
}

impl From<Stored<GroupState>> for State {
    fn from(Stored { id, version, row, .. }: Stored<GroupState>) -> Self {
        Self { folder: id, version: Some(version), row }
    }
}
