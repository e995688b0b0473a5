//! Records, and the writes that change them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use crate::{MAX_BATCH, MAX_KEY_BYTES, MAX_VALUE_BYTES, StoreError};

/// Whose a record is. Everything of one party is in one partition, so it can be on one machine: no batch and no queue spans
/// two.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(Cow<'static, str>);

impl Partition {
    /// The only one where a store serves one party.
    pub const MAIN: Self = Self(Cow::Borrowed("main"));

    /// The partition with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Cow::Owned(name.into()))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Names a record: whose it is, what kind of thing it is, and its key among those.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    /// The partition.
    pub partition: Partition,
    /// The kind, such as `incoming`.
    pub kind: String,
    /// The key, unique among the records of the kind.
    pub key: String,
}

/// Names a queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId {
    /// The partition.
    pub partition: Partition,
    /// The name.
    pub name: String,
}

/// A state of a record. Each write gives it a higher one. No number is used twice for a record, also after it was removed.
///
/// The number is the store's own: those who use a store compare versions and do not look into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// Where a record stands in a queue of its partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The queue.
    pub queue: String,
    /// Lower numbers come first; among equal ones, the record that entered the queue first, as the store decides. At most
    /// 2^63 - 1.
    pub order: u64,
}

/// A position in a queue, from which a scan continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The order of the record's place.
    pub order: u64,
    /// As in [`Record::entered`].
    pub entered: u64,
}

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub id: RecordId,
    /// Its state.
    pub version: Version,
    /// Its content, which the store does not look into.
    pub value: Vec<u8>,
    /// Its place in a queue, if it stands in one.
    pub place: Option<Place>,
    /// Orders the records of a queue that have the same place. The store gives it, in the order in which scans can see the
    /// records: none appears later with a lower number.
    pub entered: u64,
}

/// The right to work on a record until the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The record.
    pub id: RecordId,
    /// A later claim of the same record has a higher one.
    pub epoch: u64,
}

/// One change of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Adds a record, if there is none with this id.
    Insert {
        /// Its name.
        id: RecordId,
        /// Its content.
        value: Vec<u8>,
        /// Its place in a queue.
        place: Option<Place>,
    },
    /// Replaces a record, if its version is still `expected`. A claim on it stays, unless it leaves its queue.
    Replace {
        /// Its name.
        id: RecordId,
        /// The version that the caller has read.
        expected: Version,
        /// Its new content.
        value: Vec<u8>,
        /// Its new place. In the same queue with the same order it keeps its position.
        place: Option<Place>,
    },
    /// Removes a record, if its version is still `expected`.
    Remove {
        /// Its name.
        id: RecordId,
        /// The version that the caller has read.
        expected: Version,
    },
}

/// Changes that are made together or not at all. Each record occurs once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The changes.
    pub writes: Vec<Write>,
    /// Claims that must still be the newest ones of their records. An ended lease alone does not matter: nobody else has
    /// worked on the record since.
    pub under: Vec<Claim>,
}

/// The outcome of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Commit {
    /// Everything is stored. All records of the batch have this version.
    Done(Version),
    /// Nothing is stored, because a condition did not hold.
    Refused(Refusal),
}

/// The first condition that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is a record with the id of an insertion.
    Exists(Box<Record>),
    /// The record is gone, or has another version.
    Changed {
        /// Its name.
        id: RecordId,
        /// As it is now.
        now: Option<Box<Record>>,
    },
    /// Somebody else has claimed the record since, or it is gone.
    Fenced(RecordId),
}

impl Refusal {
    /// The record whose condition did not hold.
    pub fn id(&self) -> &RecordId {
        match self {
            Self::Exists(record) => &record.id,
            Self::Changed { id, .. } | Self::Fenced(id) => id,
        }
    }
}

impl RecordId {
    /// The record of this kind with this key, in the main partition.
    pub fn new(kind: impl Into<String>, key: impl Into<String>) -> Self {
        Self { partition: Partition::MAIN, kind: kind.into(), key: key.into() }
    }

    /// The same name in another partition.
    #[must_use]
    pub fn of(self, partition: Partition) -> Self {
        Self { partition, ..self }
    }

    /// The queue with this name in which the record can stand.
    pub fn queue(&self, name: &str) -> QueueId {
        QueueId { partition: self.partition.clone(), name: name.to_owned() }
    }

    /// Whether a store takes this name.
    ///
    /// # Errors
    /// It is empty or too long.
    pub fn check(&self) -> Result<(), StoreError> {
        check_name("the name of its partition", self.partition.as_str())?;
        check_name("the name of its kind", &self.kind)?;
        check_name("its key", &self.key)
    }
}

impl QueueId {
    /// The queue with this name, in the main partition.
    pub fn new(name: impl Into<String>) -> Self {
        Self { partition: Partition::MAIN, name: name.into() }
    }

    /// As [`RecordId::check`].
    ///
    /// # Errors
    /// It is empty or too long.
    pub fn check(&self) -> Result<(), StoreError> {
        check_name("the name of the partition", self.partition.as_str())?;
        check_name("the name of the queue", &self.name)
    }
}

fn check_name(what: &str, name: &str) -> Result<(), StoreError> {
    match name.len() {
        0 => Err(StoreError::Unusable(format!("{what} is empty"))),
        length if length > MAX_KEY_BYTES => {
            let why = format!("{what} has {length} bytes, more than {MAX_KEY_BYTES}");
            Err(StoreError::Unusable(why))
        }
        // PostgreSQL has no text with it, and all stores refuse the same.
        _ if name.contains('\0') => {
            Err(StoreError::Unusable(format!("{what} holds the character NUL")))
        }
        _ => Ok(()),
    }
}

/// Which records a claim takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The queue.
    pub queue: QueueId,
    /// Only records whose place is at most this: with due times as places, those that are due.
    pub up_to: u64,
    /// Who claims them, for people who look into the store.
    pub owner: String,
    /// How long nobody else can claim them, by the store's clock.
    pub lease: Duration,
    /// Most records.
    pub most: usize,
}

impl ClaimRequest {
    /// As [`RecordId::check`].
    ///
    /// # Errors
    /// A name is empty or too long.
    pub fn check(&self) -> Result<(), StoreError> {
        self.queue.check()?;
        check_name("the name of the owner", &self.owner)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.kind, self.key)
    }
}

impl Place {
    /// The place of this order in this queue.
    pub fn new(queue: impl Into<String>, order: u64) -> Self {
        Self { queue: queue.into(), order }
    }

    /// The last place in this queue. Records that all enter at the last place are in the order in which the store took them,
    /// whatever the clocks of those who wrote them say.
    pub fn last(queue: impl Into<String>) -> Self {
        Self::new(queue, Self::LAST)
    }

    /// The order of the last place.
    pub const LAST: u64 = i64::MAX as u64;
}

impl Record {
    /// The position behind this record, from which a scan of its queue continues.
    pub fn cursor(&self) -> Option<Cursor> {
        self.place.as_ref().map(|place| Cursor { order: place.order, entered: self.entered })
    }
}

impl Write {
    /// The record that it changes.
    pub fn id(&self) -> &RecordId {
        match self {
            Self::Insert { id, .. } | Self::Replace { id, .. } | Self::Remove { id, .. } => id,
        }
    }

    /// Its new content, if it has one.
    pub fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Insert { value, .. } | Self::Replace { value, .. } => Some(value),
            Self::Remove { .. } => None,
        }
    }

    /// Its new place, if it has one.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::Insert { place, .. } | Self::Replace { place, .. } => place.as_ref(),
            Self::Remove { .. } => None,
        }
    }

    /// Why it cannot be made on the record as it is now.
    pub fn refusal(&self, now: Option<&Record>) -> Option<Refusal> {
        match (self, now) {
            (Self::Insert { .. }, None) => None,
            (Self::Insert { .. }, Some(now)) => Some(Refusal::Exists(Box::new(now.clone()))),
            (Self::Replace { expected, .. } | Self::Remove { expected, .. }, now) => {
                let holds = now.is_some_and(|now| now.version == *expected);
                let changed = || Refusal::Changed {
                    id: self.id().clone(),
                    now: now.map(|now| Box::new(now.clone())),
                };
                (!holds).then(changed)
            }
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        self.id().check()?;
        let size = self.value().map_or(0, <[u8]>::len);
        if size > MAX_VALUE_BYTES {
            let why = format!("the {size} bytes of {} are more than {MAX_VALUE_BYTES}", self.id());
            return Err(StoreError::Unusable(why));
        }
        let Some(place) = self.place() else { return Ok(()) };
        check_name("the name of the queue", &place.queue)?;
        if i64::try_from(place.order).is_err() {
            let why = format!("its place {} is above 2^63 - 1", place.order);
            return Err(StoreError::Unusable(why));
        }
        Ok(())
    }
}

impl Batch {
    /// Whether a store takes this batch: what every implementation refuses in the same way.
    ///
    /// # Errors
    /// It is too large, has a record twice, spans two partitions, or has a name or a value outside the limits.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.writes.len() > MAX_BATCH || self.under.len() > MAX_BATCH {
            return Err(StoreError::Unusable(format!("a batch holds at most {MAX_BATCH} writes")));
        }
        let mut seen = HashSet::new();
        for write in &self.writes {
            write.check()?;
            if !seen.insert(write.id()) {
                let why = format!("the batch writes {} twice", write.id());
                return Err(StoreError::Unusable(why));
            }
        }
        let claimed = self.under.iter().map(|claim| &claim.id);
        let mut partitions =
            self.writes.iter().map(Write::id).chain(claimed).map(|id| &id.partition);
        let first = partitions.next();
        if partitions.any(|other| Some(other) != first) {
            let why = "a batch is of one partition".to_owned();
            return Err(StoreError::Unusable(why));
        }
        Ok(())
    }

    /// The queues that it puts records into.
    pub fn queues(&self) -> impl Iterator<Item = QueueId> {
        self.writes.iter().filter_map(|write| Some(write.id().queue(&write.place()?.queue)))
    }

    /// A batch of one write.
    pub fn of(write: Write) -> Self {
        Self { writes: vec![write], under: Vec::new() }
    }

    /// The batch, only if `claim` is still the newest one of its record.
    #[must_use]
    pub fn under(mut self, claim: Claim) -> Self {
        self.under.push(claim);
        self
    }
}

impl From<Vec<Write>> for Batch {
    fn from(writes: Vec<Write>) -> Self {
        Self { writes, under: Vec::new() }
    }
}
