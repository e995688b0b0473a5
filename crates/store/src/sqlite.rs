//! The store of one machine: an SQLite database.
//!
//! One thread writes. It takes all writes that wait and makes them durable together: one transaction and one `fsync`,
//! however many there are. Another thread reads, so that no read waits for the disk. A lock file keeps a second process
//! out.

mod read;
mod schema;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use myclaw_files::{LockFile, LockWait, create_private_directory, is_locked, now_ms, parent_of};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Batch, BoxFuture, Claim, ClaimRequest, Commit, Cursor, MAX_SCAN, QueueId, QueueWatch, Record,
    RecordId, Store, StoreClock, StoreError, Watches,
};
use read::{Reader, Reading};
use write::{Task, Writer};

/// Calls that wait for one of the two threads. Further callers wait for a place.
const MOST_WAITING: usize = 256;

/// How often the watches of a shared database wake, because another process may have written.
const SHARED_POLL: Duration = Duration::from_millis(250);

/// A store in an SQLite file. Dropping it stores what was handed over, and waits for that.
#[derive(Debug)]
pub struct SqliteStore {
    writes: Option<mpsc::Sender<Task>>,
    reads: Option<mpsc::Sender<Reading>>,
    threads: Vec<JoinHandle<()>>,
    path: PathBuf,
    watches: Arc<Watches>,
    /// Released last, after both threads have ended. A shared database has none.
    _lock: Option<LockFile>,
}

/// Who may have a database open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One process at a time.
    Alone,
    /// Several, which is for tests: production has one process on one database file.
    Shared,
}

/// Changes the values of all records in the database at `path`, as a whole and for good: older values are overwritten. `change`
/// says whether it changed one. A missing database has none. Blocks.
///
/// # Errors
/// Another process has it open, it is damaged, or it cannot be written.
pub fn change_values(
    path: &Path,
    change: &mut dyn FnMut(&mut [u8]) -> bool,
) -> Result<(), StoreError> {
    if !path.exists() {
        return Ok(());
    }
    let lock_path = lock_path(path);
    let _lock = LockFile::acquire(&lock_path, LockWait::Fail)
        .map_err(|error| StoreError::lock(lock_path, error))?;
    schema::change_values(path, change)
}

/// Writes what the database at `path` holds at one moment into a new database at `copy`, also while another process has it
/// open. Any SQLite database can be copied. Blocks.
///
/// # Errors
/// The database is damaged or cannot be read, or something is at `copy` already.
pub fn copy_database(path: &Path, copy: &Path) -> Result<(), StoreError> {
    schema::copy_database(path, copy)
}

/// Passes the records of the database at `path` to `visit`, in the order in which they entered. Nothing if there is no
/// database. Other processes are kept out meanwhile.
///
/// # Errors
/// A process has it open, or it cannot be read; and those of `visit`.
pub fn visit_records(
    path: &Path,
    visit: &mut dyn FnMut(Record) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    if !path.exists() {
        return Ok(());
    }
    let _lock = SqliteStore::keep_closed(path)?;
    // Brings a database of an earlier version to the form of this one.
    drop(schema::open_for_writing(path)?);
    read::visit(path, visit)
}

impl SqliteStore {
    /// Opens the database at `path`, or creates it, private to the user. Blocks; the directory is created too.
    ///
    /// # Errors
    /// Another process has it open, a newer version has written it, it is damaged, or it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with_clock(path, Arc::new(now_ms))
    }

    /// Like [`SqliteStore::open`], with another clock for the leases: milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// As for [`SqliteStore::open`].
    pub fn open_with_clock(path: &Path, clock: StoreClock) -> Result<Self, StoreError> {
        Self::open_as(path, clock, Sharing::Alone)
    }

    /// Like [`SqliteStore::open_with_clock`], and others may have the database open in the same way. For tests of several
    /// writers.
    ///
    /// # Errors
    /// As for [`SqliteStore::open`], but for the other process.
    pub fn open_shared(path: &Path, clock: StoreClock) -> Result<Self, StoreError> {
        Self::open_as(path, clock, Sharing::Shared)
    }

    fn open_as(path: &Path, clock: StoreClock, sharing: Sharing) -> Result<Self, StoreError> {
        let lock = match sharing {
            Sharing::Alone => Some(Self::keep_closed(path)?),
            Sharing::Shared => {
                let directory = parent_of(path);
                create_private_directory(&directory)
                    .map_err(|error| StoreError::io("create the directory", &directory, &error))?;
                None
            }
        };
        let watches = Arc::new(match sharing {
            Sharing::Alone => Watches::default(),
            Sharing::Shared => Watches::polling(SHARED_POLL),
        });
        let writer = Writer::open(path, clock, sharing, Arc::clone(&watches))?;
        let reader = Reader::open(path)?;
        let (writes, write_tasks) = mpsc::channel(MOST_WAITING);
        let (reads, read_tasks) = mpsc::channel(MOST_WAITING);
        let threads = vec![
            spawn(path, "store-write", move || writer.serve(write_tasks))?,
            spawn(path, "store-read", move || reader.serve(read_tasks))?,
        ];
        let (writes, reads) = (Some(writes), Some(reads));
        Ok(Self { writes, reads, threads, path: path.to_owned(), watches, _lock: lock })
    }

    /// Keeps other processes from opening the database at `path`, which need not exist, until the value is dropped. For
    /// a program that has its records elsewhere.
    ///
    /// # Errors
    /// Another process has it open, or the lock cannot be taken.
    pub fn keep_closed(path: &Path) -> Result<LockFile, StoreError> {
        let directory = parent_of(path);
        create_private_directory(&directory)
            .map_err(|error| StoreError::io("create the directory", &directory, &error))?;
        let lock_path = lock_path(path);
        LockFile::acquire(&lock_path, LockWait::Fail)
            .map_err(|error| StoreError::lock(lock_path, error))
    }

    /// True if a process has the database at `path` open. Creates nothing.
    ///
    /// # Errors
    /// The lock file cannot be read.
    pub fn is_open(path: &Path) -> Result<bool, StoreError> {
        let lock_path = lock_path(path);
        is_locked(&lock_path).map_err(|error| StoreError::lock(lock_path, error))
    }

    /// Looks for damage in the database at `path`. Reads all of it, also while another process has it open, and changes
    /// nothing.
    ///
    /// # Errors
    /// It is damaged, or cannot be opened.
    pub fn examine(path: &Path) -> Result<(), StoreError> {
        read::examine(path)
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    async fn write<T>(&self, task: impl FnOnce(write::Reply<T>) -> Task) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let writes = self.writes.as_ref().ok_or(StoreError::Closed)?;
        writes.send(task(reply)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    async fn read<T>(&self, task: impl FnOnce(read::Reply<T>) -> Reading) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let reads = self.reads.as_ref().ok_or(StoreError::Closed)?;
        reads.send(task(reply)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

impl Store for SqliteStore {
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Commit, StoreError>> {
        Box::pin(async move {
            batch.check()?;
            self.write(|reply| Task::Commit(batch, reply)).await
        })
    }

    fn get(&self, id: RecordId) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            id.check()?;
            self.read(|reply| Reading::Get(id, reply)).await
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
            self.read(|reply| Reading::Scan { queue, after, most: most.min(MAX_SCAN), reply }).await
        })
    }

    fn claim(
        &self,
        request: ClaimRequest,
    ) -> BoxFuture<'_, Result<Vec<(Record, Claim)>, StoreError>> {
        Box::pin(async move {
            request.check()?;
            let request = ClaimRequest { most: request.most.min(MAX_SCAN), ..request };
            self.write(|reply| Task::Claim(request, reply)).await
        })
    }

    fn renew(&self, claim: Claim, lease: Duration) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move { self.write(|reply| Task::Renew(claim, lease, reply)).await })
    }

    fn watch(&self, queue: QueueId) -> QueueWatch {
        self.watches.watch(queue)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The threads end when nobody can send them work. The lock is given back after that.
        self.writes = None;
        self.reads = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has already closed its database.
            let _ = thread.join();
        }
    }
}

/// The lock file of the database at `path`.
fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn spawn(
    path: &Path,
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|error| StoreError::io("start a thread for", path, &error))
}

#[cfg(test)]
mod tests;
