//! Jobs in files: a record of each next to its session, and a journal of the commands that this process runs, so that the
//! next MyClaw ends them if this one is killed.
//!
//! Each process that runs commands has a lock and a journal in one directory. The journal names every command that runs
//! for longer than a moment. A journal whose lock is free belongs to a process that was killed: the commands that are
//! still open in it are ended with everything they started.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use futures_util::future::{BoxFuture, join_all};
use myclaw_exec::{TreeTrace, end_traced};
use myclaw_files::portable::set_length;
use myclaw_files::{
    LockError, LockFile, LockWait, create_private_directory, private_options, read_regular,
    remove_if_there,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::record::{self, JobEnd, JobEnding, JobRecord, Killer, Trace, now_ms, read_all};
use super::store::JobStore;

/// Beyond this size a new journal is begun, as soon as all commands in it have ended.
const COMFORTABLE_BYTES: u64 = 64 * 1024;
/// Most bytes of a journal that are read: one process cannot run so many commands at a time that they fill it.
const MAX_JOURNAL_BYTES: u64 = 16 * 1024 * 1024;
/// Most journals that are read; the others are left to the next start.
const MAX_JOURNALS: usize = 1_000;

const LOCK_EXTENSION: &str = "lock";
const JOURNAL_EXTENSION: &str = "journal";

/// Gives the directory with the records of a session's jobs, which no command may write to. It is made when it is needed.
pub type RecordsOf = dyn Fn(&str) -> PathBuf + Send + Sync;

/// Jobs in files. Those of the journal are created with the first command.
pub struct FileJobs {
    /// Of the journals.
    directory: PathBuf,
    records_of: Box<RecordsOf>,
    journal: Mutex<Option<Journal>>,
}

impl fmt::Debug for FileJobs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FileJobs").field("directory", &self.directory).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Journal {
    path: PathBuf,
    file: File,
    lock_path: PathBuf,
    /// Held as long as the process lives.
    _lock: LockFile,
    open: usize,
    next: u64,
}

/// A line of a journal.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Begin {
        number: u64,
        trace: Trace,
        /// The record of the job, if it is one.
        record: Option<PathBuf>,
    },
    End {
        number: u64,
    },
}

impl FileJobs {
    /// Journals are kept in `directory`, and records where `records_of` says.
    pub fn new(
        directory: impl Into<PathBuf>,
        records_of: impl Fn(&str) -> PathBuf + Send + Sync + 'static,
    ) -> Self {
        let (directory, records_of) = (directory.into(), Box::new(records_of));
        Self { directory, records_of, journal: Mutex::new(None) }
    }

    fn of(&self, record: &JobRecord) -> PathBuf {
        (self.records_of)(&record.session)
    }

    fn with_journal<T>(&self, work: impl FnOnce(&mut Journal) -> io::Result<T>) -> io::Result<T> {
        let mut journal = self.journal.lock();
        let journal = match &mut *journal {
            Some(journal) => journal,
            empty => empty.insert(Journal::create(&self.directory)?),
        };
        work(journal)
    }
}

impl JobStore for FileJobs {
    fn all(&self, session: &str) -> Vec<JobRecord> {
        read_all(&(self.records_of)(session))
    }

    fn find(&self, session: &str, id: &str) -> Option<JobRecord> {
        record::read(&(self.records_of)(session), id)
    }

    fn insert(&self, record: &mut JobRecord, number: u64) -> io::Result<()> {
        record.owner = self.with_journal(|journal| Ok(journal.lock_path.clone()))?;
        record.save_new(&self.of(record), number)
    }

    fn save(&self, record: &JobRecord) -> io::Result<()> {
        record.save(&self.of(record))
    }

    fn remove(&self, record: &JobRecord) -> io::Result<()> {
        record.delete(&self.of(record))
    }

    fn begin(&self, trace: TreeTrace, job: Option<&JobRecord>) -> io::Result<u64> {
        let record = job.map(|job| job.path(&self.of(job)));
        self.with_journal(|journal| {
            let number = journal.next;
            journal.write(&Line::Begin { number, trace: trace.into(), record })?;
            journal.next += 1;
            journal.open += 1;
            Ok(number)
        })
    }

    fn end(&self, number: u64) {
        if let Some(journal) = &mut *self.journal.lock() {
            // If this line is missing, the next start searches for the processes of this command and finds none.
            let _ = journal.end(number);
        }
    }

    /// Does nothing while a command runs: others of this process may use the journal. The next command creates new files.
    fn close(&self) {
        let mut journal = self.journal.lock();
        if journal.as_ref().is_some_and(|journal| journal.open == 0) {
            *journal = None;
        }
    }

    fn end_leftovers(&self) -> BoxFuture<'_, Vec<JobRecord>> {
        Box::pin(async {
            // Without journals there is nothing to do on another thread.
            match self.directory.is_dir() {
                true => end_leftovers(self.directory.clone()).await,
                false => Vec::new(),
            }
        })
    }
}

impl Journal {
    fn create(directory: &Path) -> io::Result<Self> {
        create_private_directory(directory)?;
        // Other processes may have this id in other containers that share the directory.
        let base = directory.join(format!("{}-{}", std::process::id(), now_ms()));
        let lock_path = base.with_extension(LOCK_EXTENSION);
        // The lock is taken first, because a journal whose lock is free belongs to a killed process.
        let lock = LockFile::acquire(&lock_path, LockWait::Fail).map_err(lock_failure)?;
        let path = base.with_extension(JOURNAL_EXTENSION);
        let file = private_options().append(true).create_new(true).open(&path)?;
        Ok(Self { path, file, lock_path, _lock: lock, open: 0, next: 0 })
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.file.write_all(&bytes)
    }

    fn end(&mut self, number: u64) -> io::Result<()> {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 && self.file.metadata()?.len() > COMFORTABLE_BYTES {
            return set_length(&self.file, &self.path, 0);
        }
        self.write(&Line::End { number })
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.open == 0 {
            let _ = remove_if_there(&self.path);
        }
    }
}

/// Those whose journals are in `directory`.
async fn end_leftovers(directory: PathBuf) -> Vec<JobRecord> {
    let blocking = tokio::task::spawn_blocking(move || abandoned(&directory));
    let abandoned = blocking.await.unwrap_or_default();
    let mut lost = Vec::new();
    for Abandoned { lock, journal, open } in abandoned {
        join_all(open.iter().map(|(trace, _)| end_traced(trace))).await;
        let blocking = tokio::task::spawn_blocking(move || {
            let records = open.iter().filter_map(|(_, record)| mark_lost(record.as_deref()?));
            let records: Vec<JobRecord> = records.collect();
            // A journal that cannot be removed is read again at the next start; its processes have ended by then.
            let _ = remove_if_there(&journal);
            drop(lock);
            records
        });
        lost.extend(blocking.await.unwrap_or_default());
    }
    lost
}

/// The journal of a process that was killed. Nobody else works on it while the lock is held.
struct Abandoned {
    lock: LockFile,
    journal: PathBuf,
    open: Vec<(TreeTrace, Option<PathBuf>)>,
}

fn abandoned(directory: &Path) -> Vec<Abandoned> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let journals = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == JOURNAL_EXTENSION));
    let found = journals.take(MAX_JOURNALS).filter_map(|journal| {
        let lock = journal.with_extension(LOCK_EXTENSION);
        let lock = LockFile::acquire(&lock, LockWait::Fail).ok()?;
        let open = still_open(&read_regular(&journal, MAX_JOURNAL_BYTES).ok()?);
        Some(Abandoned { lock, journal, open })
    });
    found.collect()
}

/// The commands that have not ended. A line that the kill cut short is skipped.
fn still_open(journal: &[u8]) -> Vec<(TreeTrace, Option<PathBuf>)> {
    let mut open: Vec<(u64, TreeTrace, Option<PathBuf>)> = Vec::new();
    for line in journal.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Line::Begin { number, trace, record }) => open.push((number, trace.into(), record)),
            Ok(Line::End { number }) => open.retain(|(other, ..)| *other != number),
            Err(_) => {}
        }
    }
    open.into_iter().map(|(_, trace, record)| (trace, record)).collect()
}

/// The record, with an end. A job that had ended keeps its end, but its session may not have the message yet. `None`
/// for a job that ended with its session: that needs no message.
fn mark_lost(path: &Path) -> Option<JobRecord> {
    let mut record = JobRecord::read(path).ok()?;
    let lost = || JobEnd { at: now_ms(), how: JobEnding::Lost };
    let end = record.end.get_or_insert_with(lost);
    if matches!(end.how, JobEnding::Killed { by: Killer::Closing }) {
        return None;
    }
    // If it cannot be written, every reader still treats the job as lost.
    let _ = record.save(path.parent()?);
    Some(record)
}

fn lock_failure(error: LockError) -> io::Error {
    match error {
        LockError::Io { source, .. } => source,
        LockError::Held { .. } => io::ErrorKind::ResourceBusy.into(),
    }
}
