//! Records, and the writes that change them.

use std::fmt;

/// Names a record: what kind of thing it is, and its key among those.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    /// The kind, such as `incoming`.
    pub kind: String,
    /// The key, unique among the records of the kind.
    pub key: String,
}

/// A state of a record. Each write gives it a higher one. No number is used twice, also after a record was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub(crate) u64);

/// Where a record stands in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The queue.
    pub queue: String,
    /// Lower numbers come first; among equal ones, the record that entered the queue first. At most 2^63 - 1.
    pub order: u64,
}

/// A position in a queue, from which a scan continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) order: u64,
    pub(crate) entered: u64,
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
    pub(crate) entered: u64,
}

/// The right to work on a record until the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The record.
    pub id: RecordId,
    pub(crate) epoch: u64,
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
    /// The record of this kind with this key.
    pub fn new(kind: impl Into<String>, key: impl Into<String>) -> Self {
        Self { kind: kind.into(), key: key.into() }
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

impl Claim {
    /// The epoch: a later claim of the same record has a higher one.
    pub fn epoch(&self) -> u64 {
        self.epoch
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
    pub(crate) fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Insert { value, .. } | Self::Replace { value, .. } => Some(value),
            Self::Remove { .. } => None,
        }
    }

    /// Its new place, if it has one.
    pub(crate) fn place(&self) -> Option<&Place> {
        match self {
            Self::Insert { place, .. } | Self::Replace { place, .. } => place.as_ref(),
            Self::Remove { .. } => None,
        }
    }
}

impl Batch {
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
