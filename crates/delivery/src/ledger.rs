//! The store, in the words of delivery.

mod missing;
mod pictures;

pub use myclaw_files::now_ms;
use std::sync::Arc;
use std::time::Duration;

use myclaw_store::{
    Batch, Blob, BoxFuture, Change, Claims, Commit, Place, QueueId, QueueWatch, RecordId, Records,
    Refusal, Store, Version, Write, sweep,
};

use crate::DeliveryError;
use crate::rows::{
    Incoming, MessageId, MessageState, Origin, Outgoing, PartId, PartState, ReceivedFile,
};
use crate::sharing::desk_of;

/// The messages that came in.
const INCOMING: Records<Incoming, MessageId> = Records::new("incoming");
/// The parts that go out.
const OUTGOING: Records<Outgoing, PartId> = Records::new("outgoing");
/// Queue of the messages that have no answer yet, in the order in which they were stored.
const OPEN: &str = "open";
/// Queue of the parts that are not sent yet, likewise.
const UNSENT: &str = "unsent";
/// Queue of everything that is over, by that time. A source that delivers a message again finds it here.
pub(crate) const OVER: &str = "over";
/// Queue of the parts that were not delivered, or perhaps not, by that time.
const TROUBLE: &str = "trouble";
/// Files that came with messages, in stores of earlier versions: bytes.
const FILES: Records<()> = Records::new("file");
/// How long that is kept. No channel delivers a message again after so long a time; Telegram gives up after a day.
pub(crate) const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub use missing::Again;
pub(crate) use myclaw_store::Stored;

/// Pause before a look at the store that failed is repeated.
pub(crate) const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// The store.
#[derive(Clone)]
pub struct Ledger {
    store: Arc<dyn Store>,
    claims: Arc<Claims>,
}

/// A message without an answer.
pub type OpenMessage = Stored<Incoming, MessageId>;
/// A part that is not sent.
pub(crate) type UnsentPart = Stored<Outgoing, PartId>;

/// Whether a message is new.
#[derive(Debug)]
pub enum Acceptance {
    /// It is stored now.
    New(OpenMessage),
    /// It was stored before.
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
    /// For a process that has the store for itself.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::of(Claims::alone(store))
    }

    /// The ledger in the store of these claims.
    pub fn of(claims: Arc<Claims>) -> Self {
        Self { store: Arc::clone(claims.store()), claims }
    }

    /// What this process holds.
    pub fn claims(&self) -> &Arc<Claims> {
        &self.claims
    }

    /// The store, for the rows of other modules.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Calls `look` now and after each change of a queue, whoever made it, for ever.
    pub async fn follow<'a, E: std::fmt::Display>(
        &self,
        queue: &str,
        look: impl Fn() -> BoxFuture<'a, Result<(), E>>,
    ) {
        let mut changes = self.store.watch(QueueId::new(queue));
        loop {
            while let Err(error) = look().await {
                tracing::warn!(queue, %error, "changes in the store are not seen; trying again");
                tokio::time::sleep(LOOK_PAUSE).await;
            }
            changes.changed().await;
        }
    }

    /// Step 1: stores a message. When this returns, it may be acknowledged.
    ///
    /// A message that is not open is over from the beginning. `files` and `parts` are stored with it.
    pub async fn store_message(
        &self,
        id: MessageId,
        row: Incoming,
        files: Vec<Write>,
        parts: &[(PartId, Outgoing)],
    ) -> Result<Acceptance, DeliveryError> {
        let stored = self.store_with(id, row, files, parts, Vec::new()).await?;
        stored.ok_or_else(|| DeliveryError::Internal("a message has no conditions".to_owned()))
    }

    /// [`Ledger::store_message`] together with `more`. `None`, and nothing is stored, if a condition of `more` does not
    /// hold.
    pub(crate) async fn store_with(
        &self,
        id: MessageId,
        mut row: Incoming,
        files: Vec<Write>,
        parts: &[(PartId, Outgoing)],
        more: Vec<Write>,
    ) -> Result<Option<Acceptance>, DeliveryError> {
        let pictures = pictures::set_apart(&mut row)?;
        let place = match row.state {
            MessageState::Open => Place::last(OPEN),
            _ => Place::new(OVER, row.accepted_at),
        };
        // The message comes first among the conditions.
        let mut writes = pictures::put(&id, None, &row, place)?;
        writes.extend(pictures.into_iter().chain(files).chain(more));
        match self.commit_with(writes, inserts(parts)?, None).await?.0 {
            Commit::Done(version) => Ok(Some(Acceptance::New(Stored::new(id, version, row)))),
            Commit::Refused(Refusal::Exists(record)) if record.id == INCOMING.id(id.as_str()) => {
                let known = INCOMING.read(self.store(), *record).await?;
                Ok(Some(Acceptance::Known(self.with_pictures(known).await?.row)))
            }
            Commit::Refused(_) => Ok(None),
        }
    }

    /// The batch, under the claim of a thing, if it needs one.
    fn under(&self, claim: Option<&RecordId>, batch: Batch) -> Batch {
        match claim {
            Some(id) => self.claims.under(id, batch),
            None => batch,
        }
    }

    /// Carries out `writes` with those of `parts`, or alone if the parts, which are always stored together, are stored
    /// already; under the claim of `claim`. Also says whether the parts were.
    async fn commit_with(
        &self,
        writes: Vec<Write>,
        parts: Vec<Write>,
        claim: Option<&RecordId>,
    ) -> Result<(Commit, bool), DeliveryError> {
        let all: Vec<Write> = writes.iter().chain(&parts).cloned().collect();
        let commit = self.store.commit(self.under(claim, all.into())).await?;
        let are_there = match &commit {
            Commit::Refused(Refusal::Exists(record)) => {
                parts.iter().any(|part| *part.id() == record.id)
            }
            _ => false,
        };
        match are_there {
            true => Ok((self.store.commit(self.under(claim, writes.into())).await?, true)),
            false => Ok((commit, false)),
        }
    }

    /// Stores parts that answer no message. Those that are stored already are not stored again.
    pub async fn say(
        &self,
        parts: Vec<(PartId, Outgoing)>,
    ) -> Result<Vec<UnsentPart>, DeliveryError> {
        match self.store.commit(inserts(&parts)?.into()).await? {
            Commit::Done(version) => Ok(stored(parts, version)),
            // They are stored together, so the others are stored too.
            Commit::Refused(_) => Ok(Vec::new()),
        }
    }

    /// [`Ledger::say`] together with `more`. `None`, and nothing is stored, if a condition of `more` does not hold.
    pub(crate) async fn say_with(
        &self,
        parts: Vec<(PartId, Outgoing)>,
        more: Vec<Write>,
    ) -> Result<Option<Vec<UnsentPart>>, DeliveryError> {
        let writes: Vec<Write> = more.into_iter().chain(inserts(&parts)?).collect();
        match self.store.commit(writes.into()).await? {
            Commit::Done(version) => Ok(Some(stored(parts, version))),
            Commit::Refused(_) => Ok(None),
        }
    }

    /// The bytes of a file that came with a message.
    pub async fn file(&self, file: &ReceivedFile) -> Result<Option<Vec<u8>>, DeliveryError> {
        match &file.blob {
            Some(blob) => Ok(blob.read(self.store()).await?),
            None => Ok(self.store.get(FILES.id(&file.key)).await?.map(|record| record.value)),
        }
    }

    /// Step 1 for a message that nobody sent, together with `batch`. `None` if a condition of the batch does not hold.
    pub(crate) async fn accept_with(
        &self,
        mut batch: Batch,
        id: MessageId,
        row: Incoming,
    ) -> Result<Option<OpenMessage>, DeliveryError> {
        batch.writes.extend(self.insert_open(&id, &row)?);
        match self.store.commit(batch).await? {
            Commit::Done(version) => Ok(Some(Stored::new(id, version, row))),
            Commit::Refused(_) => Ok(None),
        }
    }

    /// Empties a message that is over and marks it as dropped for `reason`; its id stays known. Returns the message as it
    /// was; an open one is not changed.
    pub async fn forget(
        &self,
        id: &MessageId,
        reason: &str,
    ) -> Result<Option<Incoming>, DeliveryError> {
        let (mut before, mut files, mut pictures) = (None, Vec::new(), None);
        let forget = |row: Option<Incoming>| {
            before.clone_from(&row);
            files.clear();
            let Some(row) = row.filter(|row| row.state != MessageState::Open) else {
                return Change::Keep;
            };
            files.clone_from(&row.origin.files);
            pictures.clone_from(&row.pictures);
            let state = MessageState::Dropped { reason: reason.to_owned(), parts: Vec::new() };
            let (text, images) = (String::new(), Vec::new());
            let origin = Origin { files: Vec::new(), outside: Vec::new(), ..row.origin };
            let place = Place::new(OVER, row.accepted_at);
            let (context, said, pictures) = (None, None, None);
            let empty = Incoming { text, images, pictures, context, said, state, origin, ..row };
            Change::put(empty, place)
        };
        INCOMING.update(self.store(), id.as_str(), forget).await?;
        for file in files.iter().filter(|file| file.blob.is_none()) {
            FILES.delete(self.store(), &file.key).await?;
        }
        for blob in files.iter().filter_map(|file| file.blob.as_ref()).chain(&pictures) {
            blob.delete(self.store()).await?;
        }
        Ok(before)
    }

    /// The writes that add a message without an answer.
    pub(crate) fn insert_open(
        &self,
        id: &MessageId,
        row: &Incoming,
    ) -> Result<Vec<Write>, DeliveryError> {
        Ok(INCOMING.put_any_size(id.as_str(), None, row, Place::last(OPEN))?)
    }

    /// Step 5: stores the parts of an answer or a report, and marks the messages, in one transaction. Parts that are
    /// stored already are not stored again. Returns the new ones, and the version of everything that was written. `None`,
    /// and nothing is stored, if somebody else has changed a message or what `more` changes: read all of it again. The
    /// messages are of one session, which this process holds.
    pub async fn settle(
        &self,
        messages: &[OpenMessage],
        state: &(dyn Fn(&OpenMessage) -> MessageState + Sync),
        parts: Vec<(PartId, Outgoing)>,
        more: Vec<Write>,
    ) -> Result<Option<(Vec<UnsentPart>, Version)>, DeliveryError> {
        let now = now_ms();
        let mut marks = more;
        for message in messages {
            let row = Incoming { state: state(message), ..message.row.clone() };
            let place = Place::new(OVER, now);
            marks.extend(pictures::put(&message.id, Some(message.version), &row, place)?);
        }
        let desk = messages.first().map(|message| desk_of(&message.row.session));
        Ok(match self.commit_with(marks, inserts(&parts)?, desk.as_ref()).await? {
            (Commit::Done(version), false) => Some((stored(parts, version), version)),
            (Commit::Done(version), true) => Some((Vec::new(), version)),
            (Commit::Refused(Refusal::Fenced(_)), _) => return Err(self.lost(messages).await),
            (Commit::Refused(_), _) => None,
        })
    }

    /// The failure of a write for a session that another process has. The claim is marked as lost.
    async fn lost(&self, messages: &[OpenMessage]) -> DeliveryError {
        self.claims.renew().await;
        let session = messages.first().map(|message| message.row.session.clone());
        DeliveryError::Lost(session.unwrap_or_default())
    }

    /// Records how far a part is, under the claim of its account. Returns its next version; `None` if somebody else has changed
    /// it, or has the account.
    pub async fn mark(
        &self,
        part: &UnsentPart,
        account: Option<&RecordId>,
    ) -> Result<Option<Version>, DeliveryError> {
        let writes = missing::replacement(part, place_of(&part.row))?;
        Ok(match self.store.commit(self.under(account, writes.into())).await? {
            Commit::Done(version) => Some(version),
            Commit::Refused(_) => None,
        })
    }

    /// The message with this id.
    pub async fn message(&self, id: &MessageId) -> Result<Option<Incoming>, DeliveryError> {
        let Some(stored) = INCOMING.get(self.store(), id.as_str()).await? else { return Ok(None) };
        Ok(Some(self.with_pictures(stored).await?.row))
    }

    /// The part with this id.
    pub async fn part(&self, id: &PartId) -> Result<Option<Outgoing>, DeliveryError> {
        Ok(OUTGOING.get(self.store(), id.as_str()).await?.map(|stored| stored.row))
    }

    /// All messages without an answer, the oldest first. Pictures that are not in the rows are left out.
    pub async fn open_messages(&self) -> Result<Vec<OpenMessage>, DeliveryError> {
        Ok(INCOMING.all(self.store(), OPEN).await?)
    }

    /// Those of these messages that are still open, with their versions of now, and the rows of the others.
    pub(crate) async fn still_open(
        &self,
        messages: Vec<OpenMessage>,
    ) -> Result<(Vec<OpenMessage>, Vec<OpenMessage>), DeliveryError> {
        let (mut open, mut over) = (Vec::with_capacity(messages.len()), Vec::new());
        for message in messages {
            match INCOMING.get(self.store(), message.id.as_str()).await? {
                Some(now) if now.row.state == MessageState::Open => {
                    open.push(Stored { version: now.version, ..message });
                }
                Some(now) => over.push(now),
                None => over.push(message),
            }
        }
        Ok((open, over))
    }

    /// A part as it is now, if it is not sent.
    pub(crate) async fn unsent(&self, id: &PartId) -> Result<Option<UnsentPart>, DeliveryError> {
        let part = OUTGOING.get(self.store(), id.as_str()).await?;
        let is_unsent = |part: &UnsentPart| {
            matches!(part.row.state, PartState::Queued | PartState::Sending { .. })
        };
        Ok(part.filter(is_unsent))
    }

    /// Waits for changes of the messages without an answer.
    pub(crate) fn watch_open(&self) -> QueueWatch {
        self.store.watch(QueueId::new(OPEN))
    }

    /// Waits for changes of the parts that are not sent.
    pub(crate) fn watch_unsent(&self) -> QueueWatch {
        self.store.watch(QueueId::new(UNSENT))
    }

    /// All parts that are not sent, the oldest first.
    pub async fn unsent_parts(&self) -> Result<Vec<UnsentPart>, DeliveryError> {
        Ok(OUTGOING.all(self.store(), UNSENT).await?)
    }

    /// Removes what has been over for a long time.
    pub async fn sweep(&self) -> Result<(), DeliveryError> {
        let kept = u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX);
        let until = now_ms().saturating_sub(kept);
        for queue in [OVER, TROUBLE] {
            sweep(self.store(), queue, until).await?;
        }
        Ok(Blob::sweep(self.store()).await?)
    }
}

/// The writes that add parts.
fn inserts(parts: &[(PartId, Outgoing)]) -> Result<Vec<Write>, DeliveryError> {
    let mut writes = Vec::with_capacity(parts.len());
    for (id, part) in parts {
        writes.extend(OUTGOING.put_any_size(id.as_str(), None, part, place_of(part))?);
    }
    Ok(writes)
}

/// The queue of a part.
fn place_of(part: &Outgoing) -> Place {
    match part.state {
        PartState::Queued | PartState::Sending { .. } => Place::last(UNSENT),
        PartState::Sent { .. } => Place::new(OVER, now_ms()),
        // The next message to its chat carries a notice of what is missing.
        PartState::Uncertain if part.refers.tells_of.is_some() => Place::new(OVER, now_ms()),
        PartState::Failed { .. } | PartState::Uncertain => Place::new(TROUBLE, now_ms()),
    }
}

fn stored(parts: Vec<(PartId, Outgoing)>, version: Version) -> Vec<UnsentPart> {
    parts.into_iter().map(|(id, row)| Stored::new(id, version, row)).collect()
}

/// The messages without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// How many.
    pub count: usize,
    /// How long the oldest waits, in milliseconds, by the clock of this machine.
    pub oldest_ms: Option<u64>,
}

/// How many messages in this store have no answer.
///
/// # Errors
/// The store cannot be read.
pub async fn waiting(store: Arc<dyn Store>) -> Result<Waiting, DeliveryError> {
    let open = Ledger::new(store).open_messages().await?;
    let since = open.iter().map(|message| message.row.accepted_at).min();
    let oldest_ms = since.map(|since| now_ms().saturating_sub(since));
    Ok(Waiting { count: open.len(), oldest_ms })
}
