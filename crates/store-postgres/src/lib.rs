//! The stores of several machines: a PostgreSQL database behind the trait [`Store`] and, as [`PostgresSessions`], behind those
//! of sessions.
//!
//! Everything that must hold is a condition in one transaction. A transaction that writes first takes the lock of its
//! partition, a row with the counter that gives versions, epochs and positions. So the numbers of a partition are committed
//! in their order, no scan misses a record that a slower transaction commits later with a lower number, and no two
//! transactions can wait for each other. Calls that wait meanwhile in this process share the next transaction.
//!
//! A connection that breaks while `COMMIT` is on its way leaves open whether it happened. Each transaction therefore stores a
//! receipt; the next attempt, which waits for the lock of the partition and so for the end of the earlier transaction, looks
//! for it before it does anything.
//!
//! Only sessions of one transaction each are used, so a pooler in transaction mode may stand between, except for
//! notifications: without them watches notice changes by polling.
//!
//! This crate knows nothing of what the records mean, and nothing of the config file.
#![forbid(unsafe_code)]

mod address;
mod failure;
mod group;
mod hints;
mod pool;
mod read;
mod schema;
mod sessions;
mod tenant;
mod tls;
mod write;

use std::sync::Arc;
use std::time::Duration;

use myclaw_store::{
    Batch, BoxFuture, Claim, ClaimRequest, Commit, Cursor, MAX_SCAN, QueueId, QueueWatch, Record,
    RecordId, Store, StoreClock, StoreError, Watches,
};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

pub use address::Address;
use pool::Pool;
pub use sessions::{ImportedSession, PostgresSessions, wait_on};
use write::{Task, Writers};

/// How a store uses its database.
#[derive(Clone)]
pub struct Options {
    /// How long a call tries again while the database cannot be reached.
    pub patience: Duration,
    /// Most connections, without the one that waits for notifications.
    pub connections: usize,
    /// How often the watches of a queue wake in any case. A store promises a second.
    pub poll: Duration,
    /// How long a session stays with its owner after the owner's death. It is renewed three times in that time.
    pub lease: Duration,
    /// Whether the tables of another tenant than `main` are created if there are none. A name with a typing mistake would make
    /// an empty tenant otherwise.
    pub creates_tenant: bool,
    /// What is moved of the logs of sessions to the object storage, if there is one.
    pub sealing: Sealing,
    /// Another clock for the leases of records than that of the database, for tests: milliseconds since the Unix epoch.
    pub clock: Option<StoreClock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            connections: 8,
            poll: Duration::from_millis(750),
            lease: Duration::from_secs(15),
            creates_tenant: false,
            sealing: Sealing::default(),
            clock: None,
        }
    }
}

/// Which rows of a log are moved to the object storage. What a turn, the first pages of a history and the summary of a session
/// read stays in the database.
#[derive(Debug, Clone)]
pub struct Sealing {
    /// The newest rows, which stay.
    pub kept: u64,
    /// Fewer rows are not moved.
    pub least: u64,
    /// So many are moved in any case.
    pub most: u64,
    /// After this time without a new row, fewer are moved.
    pub quiet: Duration,
    /// After an attempt, nobody tries the session again for so long.
    pub again: Duration,
    /// Whether rows behind the last summary stay. Tests move them too.
    pub only_summarised: bool,
}

impl Default for Sealing {
    fn default() -> Self {
        Self {
            kept: 1_000,
            least: 200,
            most: 2_000,
            quiet: Duration::from_secs(7 * 24 * 60 * 60),
            again: Duration::from_secs(10 * 60),
            only_summarised: true,
        }
    }
}

/// A record that somebody has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The record.
    pub id: RecordId,
    /// Who has it.
    pub owner: String,
    /// How long, unless it is renewed.
    pub left: Duration,
}

/// A server that follows the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standby {
    /// Its name; empty if the user of the address may not see it.
    pub name: String,
    /// How a commit waits for it, as the server says it, such as `sync`; empty if the user may not see it.
    pub sync: String,
    /// How many bytes of changes it has not replayed yet.
    pub lag_bytes: Option<i64>,
    /// How long the newest changes took until they were replayed, in milliseconds. Unknown without changes.
    pub lag_ms: Option<i64>,
}

/// A store in a PostgreSQL database. Several processes may have it open.
pub struct PostgresStore {
    pool: Arc<Pool>,
    writers: Arc<Writers>,
    watches: Arc<Watches>,
    /// What waits for notifications and sends them.
    background: [AbortHandle; 2],
}

impl PostgresStore {
    /// Connects to the database, and creates or updates its tables. The store works as long as the runtime in which this is
    /// called.
    ///
    /// # Errors
    /// The database cannot be reached or used, or a newer version of this program has been there.
    pub async fn open(address: Address, options: Options) -> Result<Self, StoreError> {
        let pool = Arc::new(Pool::new(address, &options));
        schema::prepare(&pool).await?;
        let watches = Arc::new(Watches::polling(options.poll));
        let (hints, background) = hints::start(&pool, &watches);
        let writers =
            Arc::new(Writers::new(Arc::clone(&pool), Arc::clone(&watches), hints, options.clock));
        Ok(Self { pool, writers, watches, background })
    }

    /// The time of the database, by which leases end: milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn now_ms(&self) -> Result<u64, StoreError> {
        read::now_ms(&self.pool).await
    }

    /// The names of the tenants whose tables the user of the address may use.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn tenants(&self) -> Result<Vec<String>, StoreError> {
        let tenants = schema::tenants(&self.pool).await;
        tenants.map_err(|failure| failure.into_error(self.pool.server()))
    }

    /// The servers that follow the database. `None` where that cannot be asked.
    pub async fn standbys(&self) -> Option<Vec<Standby>> {
        read::standbys(&self.pool).await.ok()
    }

    /// The names of the records of a partition, in the order in which they entered.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn ids(
        &self,
        partition: &myclaw_store::Partition,
    ) -> Result<Vec<RecordId>, StoreError> {
        read::ids(&self.pool, partition).await
    }

    /// What is claimed now.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        read::leases(&self.pool).await
    }

    async fn write<T>(
        &self,
        partition: &myclaw_store::Partition,
        task: impl FnOnce(write::Reply<T>) -> Task,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.writers.submit(partition, task(reply));
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

impl Store for PostgresStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Commit, StoreError>> {
        Box::pin(async move {
            batch.check()?;
            let first = batch.writes.first().map(myclaw_store::Write::id);
            let claimed = batch.under.first().map(|claim| &claim.id);
            let partition = first.or(claimed).map(|id| id.partition.clone());
            let partition = partition.unwrap_or(myclaw_store::Partition::MAIN);
            self.write(&partition, |reply| Task::Commit(batch, reply)).await
        })
    }

    fn get(&self, id: RecordId) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            id.check()?;
            read::get(&self.pool, &id).await
        })
    }

    fn scan(
        &self,
        queue: QueueId,
        after: Option<Cursor>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        Box::pin(async move {
            queue.check()?;
            read::scan(&self.pool, &queue, after, most.min(MAX_SCAN)).await
        })
    }

    fn claim(
        &self,
        request: ClaimRequest,
    ) -> BoxFuture<'_, Result<Vec<(Record, Claim)>, StoreError>> {
        Box::pin(async move {
            request.check()?;
            let request = ClaimRequest { most: request.most.min(MAX_SCAN), ..request };
            let partition = request.queue.partition.clone();
            self.write(&partition, |reply| Task::Claim(request, reply)).await
        })
    }

    fn watch(&self, queue: QueueId) -> QueueWatch {
        self.watches.watch(queue)
    }

    fn renew(&self, claim: Claim, lease: Duration) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            claim.id.check()?;
            let partition = claim.id.partition.clone();
            self.write(&partition, |reply| Task::Renew(claim, lease, reply)).await
        })
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("PostgresStore").field(&self.pool.server()).finish()
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.background.iter().for_each(AbortHandle::abort);
    }
}
