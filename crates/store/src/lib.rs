//! The transactional store of the gateway: messages that came in, replies that go out, and everything else that is not
//! said in a session.
//!
//! The trait [`Store`] is narrow, so that a replicated database can implement it: insert if absent, compare and set by
//! version, the ordered scan of a queue, claims with a lease and an epoch, and one atomic batch over a few keys. There
//! are no joins and no long transactions. [`SqliteStore`] is the implementation for one machine. With the feature
//! `conformance`, the module of that name holds the tests that every implementation passes.
//!
//! This crate does not know what the records mean, and nothing about HTTP or channels.
#![forbid(unsafe_code)]

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod record;
mod records;
mod sqlite;

use std::time::Duration;

pub use error::StoreError;
pub use futures_util::future::BoxFuture;
pub use record::{Batch, Claim, Commit, Cursor, Place, Record, RecordId, Refusal, Version, Write};
pub use records::{Change, Records, Stored, scan, sweep};
pub use sqlite::{SqliteStore, change_values};

/// Longest key of a record, and longest name of a kind, a queue or an owner, in bytes.
pub const MAX_KEY_BYTES: usize = 1_024;
/// Largest value of a record, in bytes. Room for a message with several pictures.
pub const MAX_VALUE_BYTES: usize = 32 * 1024 * 1024;
/// Most writes in one batch.
pub const MAX_BATCH: usize = 1_024;
/// Most records that one scan or one claim returns.
pub const MAX_SCAN: usize = 1_000;

/// Which records a claim takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The queue.
    pub queue: String,
    /// Only records whose place is at most this: with due times as places, those that are due.
    pub up_to: u64,
    /// Who claims them, for people who look into the store.
    pub owner: String,
    /// How long nobody else can claim them, by the store's clock.
    pub lease: Duration,
    /// Most records.
    pub most: usize,
}

/// A store of records.
///
/// A value that was written is durable when the future of the write is ready: it survives a crash of the program and of
/// the machine. Dropping that future does not withdraw the write.
pub trait Store: Send + Sync + 'static {
    /// Carries out all writes of `batch`, or none. Conditions are checked against the state before the batch.
    ///
    /// # Errors
    /// The batch cannot be stored. Nothing of it is in the store then, unless the error says that this is unknown. A
    /// condition that does not hold is no error but [`Commit::Refused`].
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Commit, StoreError>>;

    /// The record with this id, if there is one.
    ///
    /// # Errors
    /// The store cannot be read.
    fn get(&self, id: RecordId) -> BoxFuture<'_, Result<Option<Record>, StoreError>>;

    /// The records of a queue in their order, from the first after `after` on; at most `most`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan(
        &self,
        queue: String,
        after: Option<Cursor>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>>;

    /// Claims the first records of a queue that nobody else has claimed. A record whose lease has ended can be claimed
    /// again; the new claim has a higher epoch, and a write under the old one is refused.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn claim(
        &self,
        request: ClaimRequest,
    ) -> BoxFuture<'_, Result<Vec<(Record, Claim)>, StoreError>>;

    /// Makes a lease end `lease` from now. False if somebody else has claimed the record since, or it is gone.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn renew(&self, claim: Claim, lease: Duration) -> BoxFuture<'_, Result<bool, StoreError>>;
}
