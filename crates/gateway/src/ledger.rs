//! The store, in the words of delivery.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use myclaw_store::{
    Batch, Commit, Cursor, Place, Record, RecordId, Refusal, Store, Version, Write,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::GatewayError;
use crate::rows::{Incoming, MessageId, MessageState, Outgoing, PartId};

/// Kind of the records of messages that came in.
const INCOMING: &str = "incoming";
/// Kind of the records of parts that go out.
const OUTGOING: &str = "outgoing";
/// Queue of the messages that have no answer yet, by the time at which they came.
const OPEN: &str = "open";
/// Queue of the parts that are not sent yet, by the time at which they were made.
const UNSENT: &str = "unsent";
/// Queue of everything that is over, by that time. A source that delivers a message again finds it here.
pub(crate) const OVER: &str = "over";
/// How long that is kept. No channel delivers a message again after so long a time; Telegram gives up after a day.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Records that are read or removed at once.
const AT_ONCE: usize = 200;

/// The store.
#[derive(Clone)]
pub(crate) struct Ledger {
    store: Arc<dyn Store>,
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

impl Ledger {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Step 1: stores a message. When this returns, it may be acknowledged.
    pub(crate) async fn accept(
        &self,
        id: MessageId,
        row: Incoming,
    ) -> Result<Acceptance, GatewayError> {
        let write = Write::Insert {
            id: RecordId::new(INCOMING, id.as_str()),
            value: encode(&row)?,
            place: Some(Place::new(OPEN, row.accepted_at)),
        };
        match self.store.commit(Batch::of(write)).await? {
            Commit::Done(version) => Ok(Acceptance::New(Stored { id, version, row })),
            Commit::Refused(Refusal::Exists(record)) => Ok(Acceptance::Known(decode(&record)?)),
            Commit::Refused(other) => Err(unexpected(&other)),
        }
    }

    /// Step 1 for a message that nobody sent, together with `batch`. `None` if a condition of the batch does not hold.
    pub(crate) async fn accept_with(
        &self,
        mut batch: Batch,
        id: MessageId,
        row: Incoming,
    ) -> Result<Option<OpenMessage>, GatewayError> {
        batch.writes.push(Write::Insert {
            id: RecordId::new(INCOMING, id.as_str()),
            value: encode(&row)?,
            place: Some(Place::new(OPEN, row.accepted_at)),
        });
        match self.store.commit(batch).await? {
            Commit::Done(version) => Ok(Some(Stored { id, version, row })),
            Commit::Refused(_) => Ok(None),
        }
    }

    /// Step 5: stores the parts of an answer or a report, and marks the messages, in one transaction. Parts that are
    /// stored already are not stored again. Returns the new ones.
    pub(crate) async fn settle(
        &self,
        messages: &[OpenMessage],
        state: &(dyn Fn(&OpenMessage) -> MessageState + Sync),
        parts: Vec<(PartId, Outgoing)>,
    ) -> Result<Vec<UnsentPart>, GatewayError> {
        let now = now_ms();
        let mut marks = Vec::with_capacity(messages.len());
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
        for (id, part) in &parts {
            writes.push(Write::Insert {
                id: RecordId::new(OUTGOING, id.as_str()),
                value: encode(part)?,
                place: Some(Place::new(UNSENT, part.created_at)),
            });
        }
        match self.store.commit(writes.into()).await? {
            Commit::Done(version) => {
                let stored = |(id, row)| Stored { id, version, row };
                Ok(parts.into_iter().map(stored).collect())
            }
            Commit::Refused(Refusal::Exists(_)) => match self.store.commit(marks.into()).await? {
                Commit::Done(_) => Ok(Vec::new()),
                Commit::Refused(other) => Err(unexpected(&other)),
            },
            Commit::Refused(other) => Err(unexpected(&other)),
        }
    }

    /// Records how far a part is. Returns its next version.
    pub(crate) async fn mark(&self, part: &UnsentPart) -> Result<Version, GatewayError> {
        use crate::rows::PartState;
        let place = match part.row.state {
            PartState::Queued | PartState::Sending { .. } => {
                Place::new(UNSENT, part.row.created_at)
            }
            PartState::Sent { .. } | PartState::Failed { .. } | PartState::Uncertain => {
                Place::new(OVER, now_ms())
            }
        };
        let write = Write::Replace {
            id: RecordId::new(OUTGOING, part.id.as_str()),
            expected: part.version,
            value: encode(&part.row)?,
            place: Some(place),
        };
        match self.store.commit(Batch::of(write)).await? {
            Commit::Done(version) => Ok(version),
            Commit::Refused(other) => Err(unexpected(&other)),
        }
    }

    /// The message with this id.
    pub(crate) async fn message(&self, id: &MessageId) -> Result<Option<Incoming>, GatewayError> {
        let record = self.store.get(RecordId::new(INCOMING, id.as_str())).await?;
        record.as_ref().map(decode).transpose()
    }

    /// The part with this id.
    pub(crate) async fn part(&self, id: &PartId) -> Result<Option<Outgoing>, GatewayError> {
        let record = self.store.get(RecordId::new(OUTGOING, id.as_str())).await?;
        record.as_ref().map(decode).transpose()
    }

    /// All messages without an answer, the oldest first.
    pub(crate) async fn open_messages(&self) -> Result<Vec<OpenMessage>, GatewayError> {
        self.all(OPEN, MessageId::from_text).await
    }

    /// All parts that are not sent, the oldest first.
    pub(crate) async fn unsent_parts(&self) -> Result<Vec<UnsentPart>, GatewayError> {
        self.all(UNSENT, PartId::from_text).await
    }

    async fn all<K, R: DeserializeOwned>(
        &self,
        queue: &str,
        id: fn(&str) -> K,
    ) -> Result<Vec<Stored<K, R>>, GatewayError> {
        let (mut rows, mut after): (Vec<_>, Option<Cursor>) = (Vec::new(), None);
        loop {
            let records = self.store.scan(queue.to_owned(), after, AT_ONCE).await?;
            let Some(last) = records.last() else { return Ok(rows) };
            after = last.cursor();
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
        loop {
            let records = self.store.scan(OVER.to_owned(), None, AT_ONCE).await?;
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

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
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
