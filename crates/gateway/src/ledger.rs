//! The store, in the words of delivery.

mod missing;

pub(crate) use myclaw_files::now_ms;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use myclaw_store::{
    Batch, Commit, Cursor, Place, Record, RecordId, Refusal, Store, Version, Write,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::GatewayError;
use crate::rows::{Incoming, MessageId, MessageState, Origin, Outgoing, PartId, PartState};

/// Kind of the records of messages that came in.
const INCOMING: &str = "incoming";
/// Kind of the records of parts that go out.
const OUTGOING: &str = "outgoing";
/// Queue of the messages that have no answer yet, by [`Ledger::next_ms`].
const OPEN: &str = "open";
/// Queue of the parts that are not sent yet, by [`Ledger::next_ms`].
const UNSENT: &str = "unsent";
/// Queue of everything that is over, by that time. A source that delivers a message again finds it here.
pub(crate) const OVER: &str = "over";
/// Queue of the parts that were not delivered, or perhaps not, by that time.
const TROUBLE: &str = "trouble";
/// Kind of the records of files that came with messages.
const FILE: &str = "file";
/// How long that is kept. No channel delivers a message again after so long a time; Telegram gives up after a day.
pub(crate) const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Records that are read or removed at once.
const AT_ONCE: usize = 200;

pub(crate) use missing::Again;

/// The store.
#[derive(Clone)]
pub(crate) struct Ledger {
    store: Arc<dyn Store>,
    /// The latest time of [`Ledger::next_ms`].
    last_ms: Arc<AtomicU64>,
}

/// A row with the version under which it may be changed.
#[derive(Debug, Clone)]
pub(crate) struct Stored<K, R> {
    pub(crate) id: K,
    pub(crate) version: Version,
    pub(crate) row: R,
}

/// A message without an answer.
pub(crate) type OpenMessage = Stored<MessageId, Incoming>;
/// A part that is not sent.
pub(crate) type UnsentPart = Stored<PartId, Outgoing>;

/// Whether a message is new.
#[derive(Debug)]
pub(crate) enum Acceptance {
    New(OpenMessage),
    Known(Incoming),
}

impl Acceptance {
    /// The message as it is in the store.
    pub(crate) fn into_row(self) -> Incoming {
        match self {
            Self::New(message) => message.row,
            Self::Known(row) => row,
        }
    }
}

impl Ledger {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, last_ms: Arc::default() }
    }

    /// The present, in milliseconds since the Unix epoch, or a little later: each call gives a later time than those
    /// before, also if the clock was set back. So a queue in the order of these times has the order of the calls.
    pub(crate) fn next_ms(&self) -> u64 {
        let now = now_ms();
        let later = |last: u64| now.max(last.saturating_add(1));
        let last = self
            .last_ms
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(later(last)));
        later(last.unwrap_or_else(|last| last))
    }

    /// Step 1: stores a message. When this returns, it may be acknowledged.
    ///
    /// A message that is not open is over from the beginning. `files` and `parts` are stored with it.
    pub(crate) async fn store_message(
        &self,
        id: MessageId,
        row: Incoming,
        files: Vec<(String, Vec<u8>)>,
        parts: &[(PartId, Outgoing)],
    ) -> Result<Acceptance, GatewayError> {
        let stored = self.store_with(id, row, files, parts, Vec::new()).await?;
        stored.ok_or_else(|| GatewayError::Internal("a message has no conditions".to_owned()))
    }

    /// [`Ledger::store_message`] together with `more`. `None`, and nothing is stored, if a condition of `more` does not
    /// hold.
    pub(crate) async fn store_with(
        &self,
        id: MessageId,
        row: Incoming,
        files: Vec<(String, Vec<u8>)>,
        parts: &[(PartId, Outgoing)],
        more: Vec<Write>,
    ) -> Result<Option<Acceptance>, GatewayError> {
        let queue = if row.state == MessageState::Open { OPEN } else { OVER };
        let mut writes = vec![Write::Insert {
            id: RecordId::new(INCOMING, id.as_str()),
            value: encode(&row)?,
            place: Some(Place::new(queue, self.next_ms())),
        }];
        for (key, value) in files {
            let id = RecordId::new(FILE, key);
            writes.push(Write::Insert {
                id,
                value,
                place: Some(Place::new(OVER, row.accepted_at)),
            });
        }
        writes.extend(inserts(parts)?);
        let conditions: Vec<RecordId> = more.iter().map(|write| write.id().clone()).collect();
        writes.extend(more);
        match self.store.commit(writes.into()).await? {
            Commit::Done(version) => Ok(Some(Acceptance::New(Stored { id, version, row }))),
            Commit::Refused(Refusal::Exists(record)) if conditions.contains(&record.id) => Ok(None),
            Commit::Refused(Refusal::Changed { id, .. }) if conditions.contains(&id) => Ok(None),
            // The message comes first among the conditions.
            Commit::Refused(Refusal::Exists(record)) => {
                Ok(Some(Acceptance::Known(decode(&record)?)))
            }
            Commit::Refused(other) => Err(unexpected(&other)),
        }
    }

    /// Stores parts that answer no message. Those that are stored already are not stored again.
    pub(crate) async fn say(
        &self,
        parts: Vec<(PartId, Outgoing)>,
    ) -> Result<Vec<UnsentPart>, GatewayError> {
        match self.store.commit(inserts(&parts)?.into()).await? {
            Commit::Done(version) => Ok(stored(parts, version)),
            Commit::Refused(Refusal::Exists(_)) => Ok(Vec::new()),
            Commit::Refused(other) => Err(unexpected(&other)),
        }
    }

    /// [`Ledger::say`] together with `more`. `None`, and nothing is stored, if a condition of `more` does not hold.
    pub(crate) async fn say_with(
        &self,
        parts: Vec<(PartId, Outgoing)>,
        more: Vec<Write>,
    ) -> Result<Option<Vec<UnsentPart>>, GatewayError> {
        let writes: Vec<Write> = more.into_iter().chain(inserts(&parts)?).collect();
        match self.store.commit(writes.into()).await? {
            Commit::Done(version) => Ok(Some(stored(parts, version))),
            Commit::Refused(_) => Ok(None),
        }
    }

    /// The bytes of a file that came with a message.
    pub(crate) async fn file(&self, key: &str) -> Result<Option<Vec<u8>>, GatewayError> {
        Ok(self.store.get(RecordId::new(FILE, key)).await?.map(|record| record.value))
    }

    /// A record of another module's own kind.
    pub(crate) async fn record<R: DeserializeOwned>(
        &self,
        kind: &str,
        key: &str,
    ) -> Result<Option<(Version, R)>, GatewayError> {
        let record = self.store.get(RecordId::new(kind, key)).await?;
        record.map(|record| Ok((record.version, decode(&record)?))).transpose()
    }

    /// Stores a record of another module's own kind, in place of the version that the module knows.
    pub(crate) async fn put<R: Serialize>(
        &self,
        kind: &str,
        key: &str,
        row: &R,
        known: Option<Version>,
        place: Option<Place>,
    ) -> Result<Version, GatewayError> {
        match self.store.commit(Batch::of(write_of(kind, key, row, known, place)?)).await? {
            Commit::Done(version) => Ok(version),
            Commit::Refused(other) => Err(unexpected(&other)),
        }
    }

    /// Carries out the writes of another module.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<Commit, GatewayError> {
        Ok(self.store.commit(batch).await?)
    }

    /// Removes a record of another module's own kind.
    pub(crate) async fn remove(
        &self,
        kind: &str,
        key: &str,
        known: Version,
    ) -> Result<(), GatewayError> {
        let write = Write::Remove { id: RecordId::new(kind, key), expected: known };
        match self.store.commit(Batch::of(write)).await? {
            Commit::Done(_) => Ok(()),
            Commit::Refused(other) => Err(unexpected(&other)),
        }
    }

    /// All records of a queue of another module, the oldest first.
    pub(crate) async fn queue<R: DeserializeOwned>(
        &self,
        queue: &str,
    ) -> Result<Vec<Stored<String, R>>, GatewayError> {
        self.all(queue, str::to_owned).await
    }

    /// Step 1 for a message that nobody sent, together with `batch`. `None` if a condition of the batch does not hold.
    pub(crate) async fn accept_with(
        &self,
        mut batch: Batch,
        id: MessageId,
        row: Incoming,
    ) -> Result<Option<OpenMessage>, GatewayError> {
        batch.writes.push(self.insert_open(&id, &row)?);
        match self.store.commit(batch).await? {
            Commit::Done(version) => Ok(Some(Stored { id, version, row })),
            Commit::Refused(_) => Ok(None),
        }
    }

    /// Empties a message that is over and marks it as dropped for `reason`; its id stays known. Returns the message as it
    /// was; an open one is not changed.
    pub(crate) async fn forget(
        &self,
        id: &MessageId,
        reason: &str,
    ) -> Result<Option<Incoming>, GatewayError> {
        let Some((version, row)) = self.record::<Incoming>(INCOMING, id.as_str()).await? else {
            return Ok(None);
        };
        if row.state != MessageState::Open {
            let state = MessageState::Dropped { reason: reason.to_owned(), parts: Vec::new() };
            let (text, images) = (String::new(), Vec::new());
            let origin = Origin { files: Vec::new(), outside: Vec::new(), ..row.origin.clone() };
            let empty =
                Incoming { text, images, context: None, said: None, state, origin, ..row.clone() };
            let place = Some(Place::new(OVER, row.accepted_at));
            for key in row.origin.files.iter().map(|file| &file.key) {
                if let Some(record) = self.store.get(RecordId::new(FILE, key)).await? {
                    self.remove(FILE, key, record.version).await?;
                }
            }
            self.put(INCOMING, id.as_str(), &empty, Some(version), place).await?;
        }
        Ok(Some(row))
    }

    /// The write that adds a message without an answer.
    pub(crate) fn insert_open(
        &self,
        id: &MessageId,
        row: &Incoming,
    ) -> Result<Write, GatewayError> {
        Ok(Write::Insert {
            id: RecordId::new(INCOMING, id.as_str()),
            value: encode(row)?,
            place: Some(Place::new(OPEN, self.next_ms())),
        })
    }

    /// Step 5: stores the parts of an answer or a report, and marks the messages, in one transaction. Parts that are
    /// stored already are not stored again. Returns the new ones, and the version of everything that was written.
    pub(crate) async fn settle(
        &self,
        messages: &[OpenMessage],
        state: &(dyn Fn(&OpenMessage) -> MessageState + Sync),
        parts: Vec<(PartId, Outgoing)>,
        more: Vec<Write>,
    ) -> Result<(Vec<UnsentPart>, Version), GatewayError> {
        let now = now_ms();
        let mut marks = more;
        for message in messages {
            let row = Incoming { state: state(message), ..message.row.clone() };
            marks.push(Write::Replace {
                id: RecordId::new(INCOMING, message.id.as_str()),
                expected: message.version,
                value: encode(&row)?,
                place: Some(Place::new(OVER, now)),
            });
        }
        let mut writes = marks.clone();
        writes.extend(inserts(&parts)?);
        match self.store.commit(writes.into()).await? {
            Commit::Done(version) => Ok((stored(parts, version), version)),
            Commit::Refused(Refusal::Exists(_)) => match self.store.commit(marks.into()).await? {
                Commit::Done(version) => Ok((Vec::new(), version)),
                Commit::Refused(other) => Err(unexpected(&other)),
            },
            Commit::Refused(other) => Err(unexpected(&other)),
        }
    }

    /// Records how far a part is. Returns its next version.
    pub(crate) async fn mark(&self, part: &UnsentPart) -> Result<Version, GatewayError> {
        let write = missing::replacement(part, place_of(&part.row))?;
        match self.store.commit(Batch::of(write)).await? {
            Commit::Done(version) => Ok(version),
            Commit::Refused(other) => Err(unexpected(&other)),
        }
    }

    /// The message with this id.
    pub(crate) async fn message(&self, id: &MessageId) -> Result<Option<Incoming>, GatewayError> {
        Ok(self.record(INCOMING, id.as_str()).await?.map(|(_, row)| row))
    }

    /// The part with this id.
    pub(crate) async fn part(&self, id: &PartId) -> Result<Option<Outgoing>, GatewayError> {
        Ok(self.record(OUTGOING, id.as_str()).await?.map(|(_, row)| row))
    }

    /// All messages without an answer, the oldest first. New ones come after them.
    pub(crate) async fn open_messages(&self) -> Result<Vec<OpenMessage>, GatewayError> {
        let (rows, last_ms) = self.read_queue(OPEN, MessageId::from_text).await?;
        self.last_ms.fetch_max(last_ms, Ordering::Relaxed);
        Ok(rows)
    }

    /// All parts that are not sent, the oldest first. New ones come after them.
    pub(crate) async fn unsent_parts(&self) -> Result<Vec<UnsentPart>, GatewayError> {
        let (rows, last_ms) = self.read_queue(UNSENT, PartId::from_text).await?;
        self.last_ms.fetch_max(last_ms, Ordering::Relaxed);
        Ok(rows)
    }

    async fn all<K, R: DeserializeOwned>(
        &self,
        queue: &str,
        id: fn(&str) -> K,
    ) -> Result<Vec<Stored<K, R>>, GatewayError> {
        Ok(self.read_queue(queue, id).await?.0)
    }

    /// The rows of a queue, and the place of the last one.
    async fn read_queue<K, R: DeserializeOwned>(
        &self,
        queue: &str,
        id: fn(&str) -> K,
    ) -> Result<(Vec<Stored<K, R>>, u64), GatewayError> {
        let (mut rows, mut after, mut order): (Vec<_>, Option<Cursor>, _) = (Vec::new(), None, 0);
        loop {
            let records = self.store.scan(queue.to_owned(), after, AT_ONCE).await?;
            let Some(last) = records.last() else { return Ok((rows, order)) };
            after = last.cursor();
            order = last.place.as_ref().map_or(order, |place| place.order);
            for record in &records {
                rows.push(Stored {
                    id: id(&record.id.key),
                    version: record.version,
                    row: decode(record)?,
                });
            }
        }
    }

    /// Removes what has been over for a long time.
    pub(crate) async fn sweep(&self) -> Result<(), GatewayError> {
        let kept = u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX);
        let until = now_ms().saturating_sub(kept);
        for queue in [OVER, TROUBLE] {
            self.sweep_queue(queue, until).await?;
        }
        Ok(())
    }

    /// Removes what stands before `until` in a queue.
    pub(crate) async fn sweep_queue(&self, queue: &str, until: u64) -> Result<(), GatewayError> {
        loop {
            let records = self.store.scan(queue.to_owned(), None, AT_ONCE).await?;
            let is_old =
                |record: &&Record| record.place.as_ref().is_some_and(|place| place.order < until);
            let writes: Vec<Write> = records
                .iter()
                .take_while(is_old)
                .map(|record| Write::Remove { id: record.id.clone(), expected: record.version })
                .collect();
            if writes.is_empty() {
                return Ok(());
            }
            if let Commit::Refused(why) = self.store.commit(writes.into()).await? {
                return Err(unexpected(&why));
            }
        }
    }
}

/// The writes that add parts.
fn inserts(parts: &[(PartId, Outgoing)]) -> Result<Vec<Write>, GatewayError> {
    let write = |(id, part): &(PartId, Outgoing)| {
        Ok(Write::Insert {
            id: RecordId::new(OUTGOING, id.as_str()),
            value: encode(part)?,
            place: Some(place_of(part)),
        })
    };
    parts.iter().map(write).collect()
}

/// The queue of a part.
fn place_of(part: &Outgoing) -> Place {
    match part.state {
        PartState::Queued | PartState::Sending { .. } => Place::new(UNSENT, part.created_at),
        PartState::Sent { .. } => Place::new(OVER, now_ms()),
        // The next message to its chat carries a notice of what is missing.
        PartState::Uncertain if part.refers.tells_of.is_some() => Place::new(OVER, now_ms()),
        PartState::Failed { .. } | PartState::Uncertain => Place::new(TROUBLE, now_ms()),
    }
}

fn stored(parts: Vec<(PartId, Outgoing)>, version: Version) -> Vec<UnsentPart> {
    parts.into_iter().map(|(id, row)| Stored { id, version, row }).collect()
}

/// The write that stores a record in place of a known version, or as a new one.
pub(crate) fn write_of<R: Serialize>(
    kind: &str,
    key: &str,
    row: &R,
    known: Option<Version>,
    place: Option<Place>,
) -> Result<Write, GatewayError> {
    let (id, value) = (RecordId::new(kind, key), encode(row)?);
    Ok(match known {
        Some(expected) => Write::Replace { id, expected, value, place },
        None => Write::Insert { id, value, place },
    })
}

pub(crate) fn encode(row: &impl Serialize) -> Result<Vec<u8>, GatewayError> {
    serde_json::to_vec(row).map_err(|error| GatewayError::Internal(error.to_string()))
}

pub(crate) fn decode<R: DeserializeOwned>(record: &Record) -> Result<R, GatewayError> {
    serde_json::from_slice(&record.value)
        .map_err(|error| GatewayError::Internal(format!("{} in the store: {error}", record.id)))
}

/// Nobody else writes into the store, so a condition that does not hold is a defect.
pub(crate) fn unexpected(refusal: &Refusal) -> GatewayError {
    let what = match refusal {
        Refusal::Exists(record) => format!("{} exists", record.id),
        Refusal::Changed { id, .. } => format!("{id} has changed"),
        Refusal::Fenced(id) => format!("{id} was claimed"),
    };
    GatewayError::Internal(format!("{what} in the store"))
}
