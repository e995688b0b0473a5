//! The transactional store of the gateway: messages that came in, replies that go out, and everything else that is not
//! said in a session.
//!
//! The trait [`Store`] is narrow, so that a replicated database can implement it: insert if absent, compare and set by
//! version, the ordered scan of a queue, waiting for its changes, claims with a lease and an epoch, and one atomic batch
//! over a few keys. There are no joins and no long transactions. [`SqliteStore`] is the implementation for one machine,
//! [`MemoryStore`] the one for tests. With the feature `conformance`, the module of that name holds the tests that every
//! implementation passes.
//!
//! Those who use a store read and write rows with [`Records`], and share things with [`Claims`].
//!
//! This crate does not know what the records mean, and nothing about HTTP or channels.
#![forbid(unsafe_code)]

mod blob;
mod claims;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod memory;
mod races;
mod record;
mod records;
mod removal;
mod sqlite;
mod watch;

use std::sync::Arc;
use std::time::Duration;

pub use blob::{Blob, MAX_BLOB_BYTES};
pub use claims::{Claims, Held, SteadyClock};
pub use error::StoreError;
pub use futures_util::future::BoxFuture;
pub use memory::MemoryStore;
pub use record::{
    Batch, Claim, ClaimRequest, Commit, Cursor, Partition, Place, QueueId, Record, RecordId,
    Refusal, Version, Write,
};
pub use records::{Change, Records, Stored, scan};
pub use removal::sweep;
pub use sqlite::{SqliteStore, change_values, copy_database, visit_records};
pub use watch::{QueueWatch, Watches};

/// Longest key of a record, and longest name of a kind, a queue or an owner, in bytes.
pub const MAX_KEY_BYTES: usize = 1_024;
/// Largest value of a record, in bytes. What is larger is a [`Blob`].
pub const MAX_VALUE_BYTES: usize = 1024 * 1024;
/// Most writes in one batch.
pub const MAX_BATCH: usize = 1_024;
/// Most records that one scan or one claim returns.
pub const MAX_SCAN: usize = 1_000;
/// Bytes of values after which a scan may return what it has.
pub const MAX_SCAN_BYTES: usize = 64 * 1024 * 1024;

/// Milliseconds since the Unix epoch, for leases.
pub type StoreClock = Arc<dyn Fn() -> u64 + Send + Sync>;

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

    /// The records of a queue in their order, from the first after `after` on; at most `most`. Fewer mean that the queue
    /// has ended, unless `most` is more than [`MAX_SCAN`] or their values have more than [`MAX_SCAN_BYTES`].
    ///
    /// A scan that continues at the last record of the one before misses nothing that enters at the same or a later place:
    /// what a scan has passed is complete. A database that numbers records before they are committed has to hold back those
    /// behind which an unfinished transaction may still put one.
    ///
    /// # Errors
    /// The store cannot be read.
    fn scan(
        &self,
        queue: QueueId,
        after: Option<Cursor>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>>;

    /// Claims the first records of a queue that nobody has claimed. A record whose lease has ended can be claimed again; the
    /// new claim has a higher epoch, also if the record was removed and inserted between, and a write under the old one is
    /// refused.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn claim(
        &self,
        request: ClaimRequest,
    ) -> BoxFuture<'_, Result<Vec<(Record, Claim)>, StoreError>>;

    /// Waits for changes of a queue: records that enter it, leave it, or change in it, whoever writes them. It wakes at most a
    /// second after the change. That a lease ends is no change.
    fn watch(&self, queue: QueueId) -> QueueWatch;

    /// Makes a lease end `lease` from now; 0 ends it at once. False if somebody else has claimed the record since, or it is gone.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn renew(&self, claim: Claim, lease: Duration) -> BoxFuture<'_, Result<bool, StoreError>>;
}
