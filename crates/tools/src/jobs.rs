//! Background jobs: commands that go on after the call that started them.
//!
//! A [`Jobs`] holds the jobs of one session, so that no other session can see or touch them. A job ends with everything
//! it started: when it is killed, when its time is up, and when the session is closed. Each has a record and an output
//! file. If MyClaw is killed, [`JobStore::end_leftovers`] ends what it left running at the next start, and the records say
//! that the jobs are dead.
//!
//! The caller that makes the tools provides a [`JobListener`], which passes on the message about the end of a job. If
//! the result of a call has already told the agent about the end, there is no message.

mod files;
mod job;
mod live;
mod memory;
mod message;
mod record;
mod store;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use myclaw_engine::JobCommand;
use myclaw_exec::Handle;
use parking_lot::Mutex;

pub use files::{FileJobs, RecordsOf};
pub(crate) use job::{BackgroundJob, Candidate, Running};
pub(crate) use live::{Excerpt, LiveOutput, TerminalModes, count_lines};
pub use memory::MemoryJobs;
pub use message::FROM_PROGRAM;
pub(crate) use message::one_line;
pub use record::{JobEnd, JobEnding, JobRecord, Killer};
use record::{kept_command, now_ms, read_all};
pub use store::JobStore;
pub(crate) use store::Noted;

/// Most jobs of a session that run at a time.
const MAX_RUNNING: usize = 16;
/// Most jobs of a session that have ended and are still known. Older ones are forgotten when a job starts.
const MAX_ENDED: usize = 32;
/// Bytes at the end of a lost job's output file that are read for its message.
const MESSAGE_BYTES: u64 = 16 * 1024;

/// Learns that jobs have ended.
pub trait JobListener: Send + Sync {
    /// A job has ended, and no result of a call has told the agent or will. When the future is ready, the message must
    /// be where it cannot get lost: until then the job counts as open if the process is killed.
    fn ended(&self, job: JobEnded) -> BoxFuture<'_, ()>;
}

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnded {
    /// The job.
    pub record: JobRecord,
    /// The message for the agent.
    pub text: String,
}

/// Where the jobs of a session are kept, and the listener for their ends.
pub struct JobsOptions {
    /// Names the session in the records.
    pub session: String,
    /// Where jobs are written down. All sessions of a process share it.
    pub store: Arc<dyn JobStore>,
    /// After this time a command becomes a job, unless the call says otherwise. `None` means never.
    pub yield_after: Option<Duration>,
    /// Learns that jobs have ended.
    pub listener: Arc<dyn JobListener>,
}

/// The jobs of one session.
pub struct Jobs {
    options: JobsOptions,
    /// Those that this process started and that were not removed.
    jobs: Mutex<Vec<Arc<BackgroundJob>>>,
    is_closed: AtomicBool,
}

/// A command that is about to become a job.
pub(crate) struct NewJob<'a> {
    pub(crate) command: &'a str,
    pub(crate) directory: PathBuf,
    pub(crate) output: PathBuf,
}

/// Why there is no job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobRefused {
    #[error(
        "{MAX_RUNNING} background jobs run already in this session; wait for one, or end one with the tool process \
         (action kill)"
    )]
    TooMany,
    #[error("the session is being closed, so no background job can be started")]
    Closed,
    #[error("cannot write down a background job: {0}. Run the command without background")]
    Record(#[from] io::Error),
}

/// A job that was found by its id.
pub(crate) enum Found {
    /// One that this process started.
    Own(Arc<BackgroundJob>),
    /// A job of which only the record is left, or that another process runs.
    Record(Box<JobRecord>),
}

impl Jobs {
    /// The jobs of a session. Nothing is read or written before it is needed.
    pub fn new(options: JobsOptions) -> Arc<Self> {
        Arc::new(Self { options, jobs: Mutex::default(), is_closed: AtomicBool::new(false) })
    }

    pub(crate) fn yield_after(&self) -> Option<Duration> {
        self.options.yield_after
    }

    /// Writes a command that runs for longer than a moment to the journal, so that the next MyClaw ends it if this one
    /// is killed. `None` if the journal cannot be written: the command runs on regardless.
    pub(crate) fn note(&self, handle: &Handle) -> Option<Noted> {
        Noted::begin(&self.options.store, handle.trace(), None).ok()
    }

    /// Makes a command a job, which runs concurrently with the caller.
    ///
    /// # Errors
    /// [`JobRefused`], with the unchanged command.
    pub(crate) async fn adopt(
        self: &Arc<Self>,
        new: NewJob<'_>,
        candidate: Candidate,
        running: Running,
    ) -> Result<Arc<BackgroundJob>, (JobRefused, Running, Candidate)> {
        match self.write_down(new, &candidate).await {
            Err(refused) => Err((refused, running, candidate)),
            Ok((record, noted)) => {
                let job = BackgroundJob::new(candidate, record);
                self.jobs.lock().push(Arc::clone(&job));
                let aftermath = job::Aftermath {
                    store: Arc::clone(&self.options.store),
                    listener: Arc::clone(&self.options.listener),
                    noted,
                };
                tokio::spawn(Arc::clone(&job).attend(running, aftermath));
                Ok(job)
            }
        }
    }

    async fn write_down(
        self: &Arc<Self>,
        new: NewJob<'_>,
        candidate: &Candidate,
    ) -> Result<(JobRecord, Noted), JobRefused> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(JobRefused::Closed);
        }
        if self.running_count() >= MAX_RUNNING {
            return Err(JobRefused::TooMany);
        }
        let mut record = JobRecord {
            id: String::new(),
            session: self.options.session.clone(),
            command_is_whole: kept_command(new.command) == new.command,
            command: kept_command(new.command),
            directory: new.directory,
            terminal: candidate.handle.is_terminal(),
            started_at: now_ms(),
            output: new.output,
            end: None,
            owner: PathBuf::new(),
            trace: candidate.handle.trace().into(),
        };
        let (this, trace) = (Arc::clone(self), candidate.handle.trace());
        let writing = tokio::task::spawn_blocking(move || {
            let store = &this.options.store;
            let known = this.forget_old();
            store.insert(&mut record, known.last().map_or(0, JobRecord::number) + 1)?;
            match Noted::begin(store, trace, Some(&record)) {
                Ok(noted) => Ok((record, noted)),
                Err(error) => {
                    let _ = store.remove(&record);
                    Err(error)
                }
            }
        });
        Ok(writing.await.map_err(io::Error::other)??)
    }

    /// Removes the oldest jobs that have ended, beyond [`MAX_ENDED`]. Returns the records that there were.
    fn forget_old(&self) -> Vec<JobRecord> {
        let records = self.options.store.all(&self.options.session);
        let ended: Vec<&JobRecord> = records.iter().filter(|record| !record.is_running()).collect();
        for record in ended.iter().take(ended.len().saturating_sub(MAX_ENDED)) {
            // One that cannot be removed is tried again with the next job.
            let _ = self.options.store.remove(record);
            self.jobs.lock().retain(|job| job.record().id != record.id);
        }
        records
    }

    fn own(&self) -> Vec<Arc<BackgroundJob>> {
        self.jobs.lock().clone()
    }

    fn running(&self) -> Vec<Arc<BackgroundJob>> {
        self.own().into_iter().filter(|job| job.is_running()).collect()
    }

    /// How many jobs run.
    pub fn running_count(&self) -> usize {
        self.running().len()
    }

    /// All known jobs of the session, the oldest first: those of this process, and those of earlier ones.
    pub async fn list(self: &Arc<Self>) -> Vec<JobRecord> {
        let this = Arc::clone(self);
        let reading =
            tokio::task::spawn_blocking(move || this.options.store.all(&this.options.session));
        let own = self.own();
        let mut records = reading.await.unwrap_or_default();
        records.retain(|record| own.iter().all(|job| job.record().id != record.id));
        records.extend(own.iter().map(|job| job.record()));
        records.sort_by_key(JobRecord::number);
        records
    }

    /// The job with this id.
    ///
    /// # Errors
    /// There is none in this session; the message lists those that there are.
    pub(crate) async fn find(self: &Arc<Self>, id: &str) -> Result<Found, String> {
        if let Some(job) = self.own().into_iter().find(|job| job.record().id == id) {
            return Ok(Found::Own(job));
        }
        let known = self.list().await;
        match known.iter().find(|record| record.id == id) {
            Some(record) => Ok(Found::Record(Box::new(record.clone()))),
            None => Err(unknown(id, &known)),
        }
    }

    /// The command of a job; `None` if there is no such job. Blocks.
    pub(crate) fn command_of(&self, id: &str) -> Option<JobCommand> {
        let own = self.own().into_iter().map(|job| job.record()).find(|record| record.id == id);
        let record = own.or_else(|| self.options.store.find(&self.options.session, id))?;
        Some(JobCommand {
            is_whole: record.command_is_whole,
            command: record.command,
            directory: record.directory,
        })
    }

    /// Ends a job with everything it started, and waits until it has ended.
    ///
    /// # Errors
    /// There is no such job, or it does not run here. The message says what to do.
    pub async fn kill(self: &Arc<Self>, id: &str, by: Killer) -> Result<JobRecord, String> {
        match self.find(id).await? {
            Found::Record(record) if record.is_running() => Err(elsewhere(&record)),
            Found::Record(record) => Err(over(&record)),
            Found::Own(job) if !job.is_running() => Err(over(&job.record())),
            Found::Own(job) => {
                job.kill(by);
                job.ended().await;
                Ok(job.record())
            }
        }
    }

    /// Forgets a job that has ended, with its output.
    ///
    /// # Errors
    /// It runs, or its files cannot be removed.
    pub(crate) async fn forget(self: &Arc<Self>, record: JobRecord) -> Result<(), String> {
        if record.is_running() {
            return Err(format!(
                "job {} is {}; end it with action kill or remove",
                record.id,
                record.state()
            ));
        }
        self.jobs.lock().retain(|job| job.record().id != record.id);
        let (store, id) = (Arc::clone(&self.options.store), record.id.clone());
        let removing = tokio::task::spawn_blocking(move || store.remove(&record)).await;
        removing
            .map_err(io::Error::other)
            .flatten()
            .map_err(|error| format!("cannot remove the files of job {id}: {error}"))
    }

    /// Ends all jobs with everything they started, without messages, and returns those that ran. No job can be started
    /// any more.
    pub async fn close(&self) -> Vec<JobRecord> {
        self.is_closed.store(true, Ordering::Relaxed);
        let running = self.running();
        for job in &running {
            job.kill(Killer::Closing);
        }
        join_all(running.iter().map(|job| job.ended())).await;
        running.iter().map(|job| job.record()).collect()
    }

    /// Ends all jobs by force. Blocks for some milliseconds. For a process that is about to exit.
    pub fn kill_now(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        for job in self.running() {
            job.kill_now(&*self.options.store);
        }
    }
}

/// The files that running jobs write to, from the records in a session's directory. Blocking.
pub fn outputs_of_running_jobs(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let running = read_all(directory).into_iter().filter(JobRecord::is_running);
    running.map(|record| record.output).collect()
}

/// The message about a job that [`JobStore::end_leftovers`] returned. Blocking.
pub fn message_of_leftover(record: &JobRecord) -> String {
    message::of_end(record, &end_of_file(&record.output, MESSAGE_BYTES), &[])
}

/// The last bytes of an output file; nothing if it cannot be read.
pub(crate) fn end_of_file(path: &std::path::Path, bytes: u64) -> Vec<u8> {
    use std::io::{Read, Seek, SeekFrom};
    let read = || {
        let mut file = myclaw_files::open_regular_unlinked(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
        let mut end = Vec::new();
        file.take(bytes).read_to_end(&mut end)?;
        Ok::<_, io::Error>(end)
    };
    read().unwrap_or_default()
}

fn unknown(id: &str, known: &[JobRecord]) -> String {
    if known.is_empty() {
        return format!(
            "there is no job {id:?}: this session has no background jobs; the tool bash starts one with background: true"
        );
    }
    let known: Vec<String> =
        known.iter().map(|record| format!("{} ({})", record.id, record.state())).collect();
    format!("there is no job {id:?} in this session; there are: {}", known.join(", "))
}

fn over(record: &JobRecord) -> String {
    format!("job {} does not run any more: {}", record.id, record.state())
}

/// Of a job that another MyClaw process runs in the same session.
pub(crate) fn elsewhere(record: &JobRecord) -> String {
    let pid = record.pid().map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    format!(
        "job {}{pid} belongs to another MyClaw process that has this session open; only that one can reach it, but \
         action log shows its output",
        record.id
    )
}
