//! The connections of the sessions, and the thread that serves them.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use futures_util::future::{join3, try_join};
use myclaw_files::now_ms;
use myclaw_session::{
    Blobs, InboxCallback, MetaPatch, SessionEntry, SessionError, SessionKey, UpdatedAt, rows,
};
use myclaw_store::{Partition, StoreError};
use parking_lot::Mutex;
use tokio::runtime::{Handle, Runtime, RuntimeFlavor};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::kept::KeptMessages;
use super::sql;
use crate::failure::Failure;
use crate::pool::{Parameter, Pool, answer};
use crate::write::{BEGIN, UNLIMITED};
use crate::{Address, Options, Sealing, schema};

/// How often inboxes that somebody watches are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Between two looks for what is left of deleted sessions.
const CLEAN: Duration = Duration::from_secs(60 * 60);
/// How often a lease is renewed before it ends.
const RENEWALS: u32 = 3;
/// How many leases pass between two looks for old parts of logs.
const LEASES_PER_SEAL: u32 = 6;

/// What all sessions of a database share.
pub(super) struct Core {
    pub(super) pool: Arc<Pool>,
    /// For those who hold an inbox: their connections are busy until they let it go, and they need another one meanwhile.
    pub(super) holders: Arc<Pool>,
    pub(super) scratch: PathBuf,
    /// The number of the partition.
    pub(super) partition: i64,
    /// How long a lease is, in milliseconds.
    pub(super) lease_ms: i64,
    /// The sessions that are open here, by their keys.
    pub(super) opened: Mutex<HashMap<String, OpenHere>>,
    /// The messages that their senders keep.
    pub(super) kept: KeptMessages,
    /// The messages that the logs of open sessions have taken out of their inboxes, until a run settles them.
    pub(super) taken: Mutex<HashMap<String, HashSet<String>>>,
    pub(super) watchers: Mutex<Watchers>,
    /// The object storage, if there is one.
    pub(super) elsewhere: OnceLock<Arc<dyn Blobs>>,
    /// What is moved there of logs.
    pub(super) sealing: Sealing,
    /// Whether rows are moved now, and whether texts are changed, which must not move meanwhile.
    is_sealing: AtomicBool,
    pub(super) is_changing: AtomicBool,
    /// Whether they stay because of other programs.
    pub(super) keeps_old_parts: AtomicBool,
    /// When it was last looked for what is left of deleted sessions.
    cleaned: Mutex<Option<Instant>>,
    handle: Handle,
    /// Shut down when this goes.
    runtime: Option<Runtime>,
}

/// A session that is open in this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenHere {
    pub(super) id: i64,
    pub(super) epoch: i64,
    /// Whether the next append says that a turn has begun.
    pub(super) begins_turn: bool,
    /// Whether the end of the turn has given it back.
    pub(super) is_given_back: bool,
}

/// Those who watch inboxes.
#[derive(Default)]
pub(super) struct Watchers {
    pub(super) last: u64,
    pub(super) all: HashMap<u64, Watcher>,
}

pub(super) struct Watcher {
    pub(super) key: String,
    pub(super) notify: InboxCallback,
    /// The newest message that was there at the last look; `None` if nobody looks for those of other processes.
    pub(super) seen: Option<i64>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Core").field(&self.pool.server()).finish()
    }
}

impl Core {
    pub(super) fn open(
        address: Address,
        options: &Options,
        partition: &Partition,
        scratch: PathBuf,
    ) -> Result<Arc<Self>, StoreError> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("sessions").enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Database {
            server: address.server().to_owned(),
            problem: format!("cannot be used, because a thread cannot be started ({error})"),
        })?;
        let lease = options.lease;
        let holders = Arc::new(Pool::new(address.clone(), options));
        let pool = Arc::new(Pool::new(address, options));
        let name = partition.as_str();
        let partition = run(runtime.handle(), async {
            schema::prepare(&pool).await?;
            let named: [Parameter<'_>; 1] = [(&name, Type::TEXT)];
            pool.query(crate::write::ADD_PARTITION, &named).await?;
            let rows = pool.query(crate::write::PARTITION_ID, &named).await?;
            let id = rows.first().map(|row| row.try_get(0)).transpose();
            let id: Option<i64> =
                id.map_err(|error| Failure::from(error).into_error(pool.server()))?;
            id.ok_or(StoreError::Closed)
        })?;
        let core = Arc::new(Self {
            pool,
            holders,
            scratch,
            partition,
            lease_ms: i64::try_from(lease.as_millis()).unwrap_or(i64::MAX),
            opened: Mutex::default(),
            kept: KeptMessages::default(),
            taken: Mutex::default(),
            watchers: Mutex::default(),
            elsewhere: OnceLock::new(),
            sealing: options.sealing.clone(),
            is_sealing: AtomicBool::default(),
            is_changing: AtomicBool::default(),
            keeps_old_parts: AtomicBool::default(),
            cleaned: Mutex::default(),
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        });
        core.handle.spawn(attend(Arc::downgrade(&core), lease));
        Ok(core)
    }

    /// Waits for `work`, which the thread of the connections does not have to carry out.
    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        run(&self.handle, work)
    }

    /// Whether nobody has cleaned for a while. Then the next while begins.
    pub(super) fn is_time_to_clean(&self) -> bool {
        let mut cleaned = self.cleaned.lock();
        let is_time = cleaned.is_none_or(|at| at.elapsed() > CLEAN);
        if is_time {
            *cleaned = Some(Instant::now());
        }
        is_time
    }

    /// Where the connections are served.
    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Where a session is, for people.
    pub(super) fn place(&self, key: &SessionKey) -> PathBuf {
        PathBuf::from(format!("postgresql://{}/{}", self.pool.server(), key.slug()))
    }

    /// The rows of a statement that can be carried out twice.
    pub(super) fn rows(
        &self,
        action: &'static str,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, SessionError> {
        let rows = self.run(self.pool.query(sql, parameters));
        rows.map_err(|error| failed(action, error))
    }

    /// The same about one session, with the partition and the key in front of the parameters.
    pub(super) fn rows_of(
        &self,
        key: &SessionKey,
        action: &'static str,
        sql: &str,
        more: &[Parameter<'_>],
    ) -> Result<Vec<Row>, SessionError> {
        let key = key.as_str();
        let mut parameters: Vec<Parameter<'_>> =
            vec![(&self.partition, Type::INT8), (&key, Type::TEXT)];
        parameters.extend_from_slice(more);
        self.rows(action, sql, &parameters)
    }

    /// Changes the session's entry in the list, or makes one.
    pub(super) fn record(
        &self,
        key: &SessionKey,
        patch: &MetaPatch,
    ) -> Result<SessionEntry, SessionError> {
        let changed = self.run(async {
            let attempts = self.pool.attempts();
            loop {
                match attempts.within(self.change_listed(key, patch.clone())).await {
                    Err(failure) => attempts.after(failure, self.pool.server()).await?,
                    Ok(entry) => return Ok(entry),
                }
            }
        });
        let changed = changed.map_err(|error| failed("list", error))?;
        changed.ok_or_else(|| SessionError::NoSuchSession { key: key.clone() })
    }

    async fn change_listed(
        &self,
        key: &SessionKey,
        patch: MetaPatch,
    ) -> Result<Option<SessionEntry>, Failure> {
        let client = self.pool.get().await?;
        let name = key.as_str();
        let named: [Parameter<'_>; 2] = [(&self.partition, Type::INT8), (&name, Type::TEXT)];
        let listed = || client.query_typed(sql::LOCK_LISTED, &named);
        let ((), mut rows) = answer(try_join(client.batch_execute(BEGIN), listed())).await?;
        if rows.is_empty() {
            rows = answer(try_join(client.execute_typed(sql::ADD, &named), listed())).await?.1;
        }
        let Some(row) = rows.first() else { return Ok(None) };
        let (id, listed): (i64, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
        let header: Option<String> = row.try_get(2)?;
        let header = header.and_then(|header| rows::read_header(header.as_bytes()));
        let in_turn: bool = row.try_get(4)?;
        let before: Option<SessionEntry> = listed.and_then(|it| serde_json::from_str(&it).ok());
        let before = before.map(|entry| SessionEntry { in_turn, ..entry });
        // What ends a turn also gives the session back.
        let is_end = patch.in_turn == Some(false);
        let owned = self.open_here(key).filter(|here| is_end && !here.is_given_back);
        let directory = header.as_ref().and_then(|header| header.directory.clone());
        let session = header.and_then(|header| header.session_id);
        let session = session.unwrap_or_else(|| new_id(key));
        let Some(mut entry) = rows::changed_entry(patch, before, key, session) else {
            return Ok(None);
        };
        entry.directory = directory;
        let text = serde_json::to_string(&entry).map_err(|error| {
            Failure::lasting(format!("cannot hold the entry of a session ({error})"))
        })?;
        let written: i64 = row.try_get(3)?;
        let written = if entry.in_turn { written } else { 0 };
        let at = crate::read::stored(entry.updated_at).max(written);
        let epoch = owned.map(|here| here.epoch);
        let set: [Parameter<'_>; 5] = [
            (&id, Type::INT8),
            (&text, Type::TEXT),
            (&at, Type::INT8),
            (&entry.in_turn, Type::BOOL),
            (&epoch, Type::INT8),
        ];
        let (changed, unlimited, committed) = join3(
            client.execute_typed(sql::SET_LISTED, &set),
            client.batch_execute(UNLIMITED),
            client.batch_execute("COMMIT"),
        )
        .await;
        // The server's own answer to it: then there is nothing to commit.
        let is_refused = changed.is_err();
        if let Err(error) = changed.map(drop).and(unlimited).and(committed) {
            // A change adds to sums, so one that may have been made is not made again.
            let is_undone = is_refused && error.code().is_some();
            let failure = Failure::from(error);
            return Err(if is_undone { failure } else { Failure::lasting(failure.problem) });
        }
        client.give_back();
        if let Some(epoch) = epoch {
            self.change_open(key.as_str(), epoch, |here| here.is_given_back = true);
        }
        entry.updated_at = crate::read::number(at);
        Ok(Some(entry))
    }
}

impl Core {
    pub(super) fn open_here(&self, key: &SessionKey) -> Option<OpenHere> {
        self.opened.lock().get(key.as_str()).copied()
    }

    /// Changes what is known of a session, if its owner in this process still has this epoch. Returns whether it has.
    pub(super) fn change_open(
        &self,
        key: &str,
        epoch: i64,
        change: impl FnOnce(&mut OpenHere),
    ) -> bool {
        let mut opened = self.opened.lock();
        let mine = opened.get_mut(key).filter(|here| here.epoch == epoch);
        mine.map(change).is_some()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // It may be dropped where nothing may block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A new UUID of version 4.
fn new_id(key: &SessionKey) -> String {
    rows::new_header(key, 0).session_id.unwrap_or_default()
}

/// The failure of a call about sessions.
pub(super) fn failed(action: &'static str, error: StoreError) -> SessionError {
    SessionError::Io { action, path: PathBuf::from("a session"), source: io::Error::other(error) }
}

/// The same, for what is wrong with what the database gave.
pub(super) fn failed_io(action: &'static str, why: &str) -> SessionError {
    SessionError::Io { action, path: PathBuf::from("a session"), source: io::Error::other(why) }
}

/// The column of a row.
pub(super) fn column<'r, T: FromSql<'r>>(row: &'r Row, at: usize) -> Result<T, SessionError> {
    row.try_get(at).map_err(|error| {
        let source = io::Error::other(error);
        SessionError::Io { action: "read", path: PathBuf::from("a session"), source }
    })
}

/// The time, as the database stores it.
pub(super) fn now() -> i64 {
    crate::read::stored(now_ms())
}

/// A patch that changes the time of no session.
pub(super) fn quiet_patch() -> MetaPatch {
    MetaPatch { updated_at: UpdatedAt::Keep, ..MetaPatch::default() }
}

/// Renews leases and looks into inboxes, as long as the sessions are there.
async fn attend(core: Weak<Core>, lease: Duration) {
    let renewed_every = lease / RENEWALS;
    let (mut renewed, mut sealed) = (Instant::now(), Instant::now());
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(core) = core.upgrade() else { return };
        if renewed.elapsed() + LOOK > renewed_every {
            renewed = Instant::now();
            let (ids, epochs): (Vec<i64>, Vec<i64>) = {
                let opened = core.opened.lock();
                let owned = opened.values().filter(|here| !here.is_given_back);
                owned.map(|here| (here.id, here.epoch)).unzip()
            };
            if !ids.is_empty() {
                let mine: [Parameter<'_>; 3] = [
                    (&ids, Type::INT8_ARRAY),
                    (&epochs, Type::INT8_ARRAY),
                    (&core.lease_ms, Type::INT8),
                ];
                // What is not renewed is found out by the next append.
                drop(core.pool.query(sql::RENEW, &mine).await);
            }
        }
        if sealed.elapsed() > lease * LEASES_PER_SEAL {
            sealed = Instant::now();
            core.begin_to_seal();
        }
        core.look_for_messages().await;
    }
}

impl Core {
    /// Lets another thread seal old parts of logs, unless one does.
    fn begin_to_seal(self: &Arc<Self>) {
        if self.elsewhere.get().is_none() || self.is_sealing.swap(true, Ordering::SeqCst) {
            return;
        }
        let core = Arc::clone(self);
        drop(self.handle.spawn_blocking(move || {
            if let Err(error) = core.seal_old_parts() {
                tracing::warn!(%error, "old parts of logs cannot be moved to the object storage; it is tried again");
            }
            core.is_sealing.store(false, Ordering::SeqCst);
        }));
    }

    async fn look_for_messages(&self) {
        let keys: Vec<String> = {
            let watchers = self.watchers.lock();
            let looked = watchers.all.values().filter(|watcher| watcher.seen.is_some());
            looked.map(|watcher| watcher.key.clone()).collect()
        };
        if keys.is_empty() {
            return;
        }
        let Ok(newest) = self.newest_messages(&keys).await else { return };
        let mut notified: Vec<InboxCallback> = Vec::new();
        for watcher in self.watchers.lock().all.values_mut() {
            if let (Some(seen), Some(newest)) = (watcher.seen, newest.get(&watcher.key))
                && *newest > seen
            {
                watcher.seen = Some(*newest);
                notified.push(Arc::clone(&watcher.notify));
            }
        }
        notified.iter().for_each(|notify| notify());
    }

    /// The numbers of the newest messages of these inboxes.
    pub(super) async fn newest_messages(
        &self,
        keys: &[String],
    ) -> Result<HashMap<String, i64>, StoreError> {
        let named: [Parameter<'_>; 2] = [(&self.partition, Type::INT8), (&keys, Type::TEXT_ARRAY)];
        let rows = self.pool.query(sql::NEWEST, &named).await?;
        Ok(rows
            .iter()
            .filter_map(|row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?)))
            .collect())
    }
}

/// Wakes a thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for `work` on this thread. One that serves tasks hands them to another thread first: the database may be away for a
/// while, and what these tasks do, such as giving up a lease in time, must not wait for it.
pub(super) fn run<T>(handle: &Handle, work: impl Future<Output = T>) -> T {
    match Handle::try_current().map(|current| current.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(|| wait(handle, work)),
        _ => wait(handle, work),
    }
}

fn wait<T>(handle: &Handle, work: impl Future<Output = T>) -> T {
    let _entered = handle.enter();
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
