//! The store, in the words of the host.

pub(crate) use myclaw_files::now_ms;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use myclaw_store::{
    Batch, Commit, Cursor, Place, Record, RecordId, Refusal, Store, Version, Write,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::rows::{GroupState, Message, MessageState, Part, Task, TaskState};
use crate::{Folder, HostError};

const MESSAGE: &str = "message";
const PART: &str = "part";
const TASK: &str = "task";
const STATE: &str = "state";
/// Kind of the records of how often a group was asked to begin a new session.
const BEGINNINGS: &str = "beginnings";
/// Queue of the parts that are not delivered.
const UNSENT: &str = "unsent";
/// Queue of the groups with a run: a current one, or one that a killed host left.
const RUNNING: &str = "running";
/// Kind of the records of queries that have sent a message through a file.
const SPOKE: &str = "spoke";
/// Queue of everything that is over, by the time of its end.
const OVER: &str = "over";
/// How long that is kept, so that a source which delivers a message again finds it.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Records that are read or removed at once.
const AT_ONCE: usize = 200;

/// The store.
#[derive(Clone)]
pub(crate) struct Ledger {
    store: Arc<dyn Store>,
    /// The latest time of [`Ledger::next_ms`].
    last_ms: Arc<AtomicU64>,
}

/// A row with the version under which it may be changed.
#[derive(Debug, Clone)]
pub(crate) struct Stored<R> {
    pub(crate) key: String,
    pub(crate) version: Option<Version>,
    pub(crate) row: R,
    /// Its place in its queue.
    pub(crate) order: u64,
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

impl Ledger {
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
    pub(crate) async fn insert_message(&self, key: &str, row: &Message) -> Result<bool, HostError> {
        let queue = match row.state {
            MessageState::Overheard => overheard_queue(&row.folder),
            _ => open_queue(&row.folder),
        };
        let place = Some(Place::new(queue, self.next_ms()));
        self.insert(RecordId::new(MESSAGE, key), row, place).await
    }

    /// The messages of a group that wait for an answer, the oldest first, at most `most`.
    pub(crate) async fn open_messages(
        &self,
        folder: &Folder,
        most: usize,
    ) -> Result<Vec<Stored<Message>>, HostError> {
        self.scan(open_queue(folder), most).await
    }

    /// The messages that the agent has only overheard.
    pub(crate) async fn overheard(
        &self,
        folder: &Folder,
        most: usize,
    ) -> Result<Vec<Stored<Message>>, HostError> {
        self.scan(overheard_queue(folder), most).await
    }

    /// The end of a message, for a batch. `None` if it has ended already.
    pub(crate) async fn end_message(
        &self,
        key: &str,
        state: MessageState,
    ) -> Result<Option<Write>, HostError> {
        let Some(stored) = self.get::<Message>(RecordId::new(MESSAGE, key)).await? else {
            return Ok(None);
        };
        if matches!(stored.row.state, MessageState::Answered | MessageState::Reported) {
            return Ok(None);
        }
        let row = Message { state, ..stored.row.clone() };
        Ok(Some(self.ended(RecordId::new(MESSAGE, key), &stored, &row)?))
    }

    /// A change of a message that keeps its place, for a batch.
    pub(crate) fn changed_message(
        &self,
        stored: &Stored<Message>,
        row: &Message,
    ) -> Result<Write, HostError> {
        let place = Some(Place::new(open_queue(&row.folder), stored.order));
        let (id, expected) = (RecordId::new(MESSAGE, stored.key.clone()), version_of(stored)?);
        Ok(Write::Replace { id, expected, value: encode(row)?, place })
    }

    /// A message by its key.
    pub(crate) async fn message(&self, key: &str) -> Result<Option<Message>, HostError> {
        Ok(self.get::<Message>(RecordId::new(MESSAGE, key)).await?.map(|stored| stored.row))
    }

    /// A part for a batch.
    pub(crate) fn new_part(&self, part: &Part) -> Result<Write, HostError> {
        Ok(Write::Insert {
            id: RecordId::new(PART, part.outbound.id.clone()),
            value: encode(part)?,
            place: Some(Place::new(UNSENT, self.next_ms())),
        })
    }

    /// Stores a part alone. False if one with this id is there already.
    pub(crate) async fn insert_part(&self, part: &Part) -> Result<bool, HostError> {
        let place = Some(Place::new(UNSENT, self.next_ms()));
        self.insert(RecordId::new(PART, part.outbound.id.clone()), part, place).await
    }

    /// The parts that are not delivered, the oldest first.
    pub(crate) async fn unsent(&self) -> Result<Vec<Stored<Part>>, HostError> {
        self.scan(UNSENT.to_owned(), AT_ONCE).await
    }

    /// Notes that a part was delivered.
    pub(crate) async fn sent(&self, part: &Stored<Part>) -> Result<(), HostError> {
        let id = RecordId::new(PART, part.key.clone());
        let write = self.ended(id, part, &part.row)?;
        self.commit(vec![write]).await
    }

    /// The state of a group; that of a new one if nothing is stored.
    pub(crate) async fn state(&self, folder: &Folder) -> Result<Stored<GroupState>, HostError> {
        let key = folder.to_string();
        let stored = self.get(RecordId::new(STATE, key.clone())).await?;
        let new = Stored { key, version: None, row: GroupState::default(), order: 0 };
        Ok(stored.unwrap_or(new))
    }

    /// Stores the state of a group together with `more`.
    pub(crate) async fn save_state(
        &self,
        state: &mut Stored<GroupState>,
        more: Vec<Write>,
    ) -> Result<(), HostError> {
        let id = RecordId::new(STATE, state.key.clone());
        let value = encode(&state.row)?;
        let place = state.row.run.is_some().then(|| Place::new(RUNNING, 0));
        let write = match state.version {
            None => Write::Insert { id, value, place },
            Some(expected) => Write::Replace { id, expected, value, place },
        };
        let mut writes = vec![write];
        writes.extend(more);
        state.version = Some(self.commit_all(writes).await?);
        Ok(())
    }

    /// How often a group was asked to begin a new session.
    pub(crate) async fn beginnings(&self, folder: &Folder) -> Result<u64, HostError> {
        let stored = self.get::<u64>(RecordId::new(BEGINNINGS, folder.as_str())).await?;
        Ok(stored.map_or(0, |stored| stored.row))
    }

    /// Notes that a group is to begin a new session.
    pub(crate) async fn begin_anew(&self, folder: &Folder) -> Result<(), HostError> {
        let id = RecordId::new(BEGINNINGS, folder.as_str());
        let stored = self.get::<u64>(id.clone()).await?;
        let value = encode(&stored.as_ref().map_or(1, |stored| stored.row + 1))?;
        let write = match stored.and_then(|stored| stored.version) {
            Some(expected) => Write::Replace { id, expected, value, place: None },
            None => Write::Insert { id, value, place: None },
        };
        match self.commit(vec![write]).await {
            // Somebody else has just asked for it.
            Err(HostError::Conflict(_)) => Ok(()),
            other => other,
        }
    }

    /// The states of the groups with a run: a current one, or one that a killed host left.
    pub(crate) async fn running(&self) -> Result<Vec<Stored<GroupState>>, HostError> {
        self.scan(RUNNING.to_owned(), usize::MAX).await
    }

    /// Notes that a query has sent a message through a file.
    pub(crate) async fn note_spoke(&self, query: &str) -> Result<(), HostError> {
        let place = Some(Place::new(OVER, self.next_ms()));
        self.insert(RecordId::new(SPOKE, query), &(), place).await.map(|_| ())
    }

    /// Whether a query has sent a message through a file.
    pub(crate) async fn has_spoken(&self, query: &str) -> Result<bool, HostError> {
        Ok(self.get::<()>(RecordId::new(SPOKE, query)).await?.is_some())
    }

    /// Stores a new task. False if it is there already.
    pub(crate) async fn insert_task(&self, id: &str, task: &Task) -> Result<bool, HostError> {
        self.insert(RecordId::new(TASK, id), task, Some(self.place_of(task))).await
    }

    /// A task that is not over.
    pub(crate) async fn task(&self, id: &str) -> Result<Option<Stored<Task>>, HostError> {
        let stored = self.get::<Task>(RecordId::new(TASK, id)).await?;
        Ok(stored.filter(|task| task.row.state != TaskState::Completed))
    }

    /// A change of a task, for a batch.
    pub(crate) fn changed_task(
        &self,
        stored: &Stored<Task>,
        row: &Task,
    ) -> Result<Write, HostError> {
        let (id, place) = (RecordId::new(TASK, stored.key.clone()), Some(self.place_of(row)));
        let expected = version_of(stored)?;
        Ok(Write::Replace { id, expected, value: encode(row)?, place })
    }

    /// The tasks of a group that are not over: first the active ones, by the time at which they are due.
    pub(crate) async fn tasks(&self, folder: &Folder) -> Result<Vec<Stored<Task>>, HostError> {
        let mut tasks = self.scan(due_queue(folder), AT_ONCE).await?;
        tasks.extend(self.scan(paused_queue(folder), AT_ONCE).await?);
        Ok(tasks)
    }

    /// The active task of a group that is due first.
    pub(crate) async fn first_due(
        &self,
        folder: &Folder,
    ) -> Result<Option<Stored<Task>>, HostError> {
        Ok(self.scan(due_queue(folder), 1).await?.pop())
    }

    fn place_of(&self, task: &Task) -> Place {
        match (task.state, task.next_run) {
            (TaskState::Active, Some(due)) => Place::new(due_queue(&task.folder), due),
            (TaskState::Paused, _) => Place::new(paused_queue(&task.folder), 0),
            _ => Place::new(OVER, self.next_ms()),
        }
    }

    /// Removes what was over long ago.
    pub(crate) async fn prune(&self) -> Result<(), HostError> {
        let kept = u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX);
        let before = now_ms().saturating_sub(kept);
        loop {
            let old = self.store.scan(OVER.to_owned(), None, AT_ONCE).await?;
            let is_old =
                |record: &Record| record.place.as_ref().is_some_and(|at| at.order < before);
            let writes: Vec<Write> = old
                .into_iter()
                .filter(is_old)
                .map(|record| Write::Remove { id: record.id, expected: record.version })
                .collect();
            if writes.is_empty() {
                return Ok(());
            }
            self.commit(writes).await?;
        }
    }

    /// Carries out a batch that nothing else can be in the way of.
    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<(), HostError> {
        self.commit_all(writes).await.map(|_| ())
    }

    async fn commit_all(&self, writes: Vec<Write>) -> Result<Version, HostError> {
        match self.store.commit(Batch::from(writes)).await? {
            Commit::Done(version) => Ok(version),
            Commit::Refused(refusal) => Err(HostError::Conflict(refused(&refusal))),
        }
    }

    async fn insert(
        &self,
        id: RecordId,
        row: &impl Serialize,
        place: Option<Place>,
    ) -> Result<bool, HostError> {
        let write = Write::Insert { id, value: encode(row)?, place };
        match self.store.commit(Batch::of(write)).await? {
            Commit::Done(_) => Ok(true),
            Commit::Refused(Refusal::Exists(_)) => Ok(false),
            Commit::Refused(other) => Err(HostError::Conflict(refused(&other))),
        }
    }

    fn ended<R: Serialize>(
        &self,
        id: RecordId,
        stored: &Stored<R>,
        row: &R,
    ) -> Result<Write, HostError> {
        let place = Some(Place::new(OVER, self.next_ms()));
        Ok(Write::Replace { id, expected: version_of(stored)?, value: encode(row)?, place })
    }

    async fn get<R: DeserializeOwned>(&self, id: RecordId) -> Result<Option<Stored<R>>, HostError> {
        self.store.get(id).await?.map(|record| decode(&record)).transpose()
    }

    async fn scan<R: DeserializeOwned>(
        &self,
        queue: String,
        most: usize,
    ) -> Result<Vec<Stored<R>>, HostError> {
        let mut rows = Vec::new();
        let mut after: Option<Cursor> = None;
        while rows.len() < most {
            let wanted = AT_ONCE.min(most - rows.len());
            let records = self.store.scan(queue.clone(), after, wanted).await?;
            after = records.last().and_then(Record::cursor);
            let count = records.len();
            for record in &records {
                rows.push(decode(record)?);
            }
            if count < wanted {
                break;
            }
        }
        Ok(rows)
    }
}

fn version_of<R>(stored: &Stored<R>) -> Result<Version, HostError> {
    stored.version.ok_or_else(|| HostError::Conflict(stored.key.clone()))
}

fn encode(row: &impl Serialize) -> Result<Vec<u8>, HostError> {
    let problem = |error: serde_json::Error| HostError::Record {
        id: "to be written".to_owned(),
        problem: error.to_string(),
    };
    serde_json::to_vec(row).map_err(problem)
}

fn decode<R: DeserializeOwned>(record: &Record) -> Result<Stored<R>, HostError> {
    let row = serde_json::from_slice(&record.value).map_err(|error| HostError::Record {
        id: record.id.to_string(),
        problem: error.to_string(),
    })?;
    let order = record.place.as_ref().map(|place| place.order).unwrap_or_default();
    Ok(Stored { key: record.id.key.clone(), version: Some(record.version), row, order })
}

fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Exists(record) => record.id.to_string(),
        Refusal::Changed { id, .. } | Refusal::Fenced(id) => id.to_string(),
    }
}
