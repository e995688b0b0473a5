//! One job of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use myclaw_exec::{ExecError, Finished, Handle, LeftRunning, kill_traced};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::live::LiveOutput;
use super::message;
use super::record::{JobEnd, JobEnding, JobRecord, Killer, now_ms};
use super::store::{JobStore, Noted};
use super::{JobEnded, JobListener};

/// A running command, as a future.
pub(crate) type Running = BoxFuture<'static, Result<Finished, ExecError>>;

/// A job that this process has started.
pub(crate) struct BackgroundJob {
    pub(crate) live: Arc<LiveOutput>,
    pub(crate) handle: Handle,
    cancel: CancellationToken,
    state: Mutex<State>,
    over: Notify,
    /// Bytes of output that the agent has seen.
    seen: AtomicU64,
}

struct State {
    record: JobRecord,
    left_running: Vec<LeftRunning>,
    killer: Option<Killer>,
    /// Calls that wait for the job, and whose result says how it ended.
    observers: usize,
    /// Whether the agent has been told of the end, or need not be.
    is_reported: bool,
    /// Whether the end is on disk, and the listener has handled it.
    is_settled: bool,
}

/// A call that waits for a job. If the job ends meanwhile, the call's result reports it, and no message is sent.
pub(crate) struct Observer(Arc<BackgroundJob>);

/// A command that is or becomes a job.
pub(crate) struct Candidate {
    pub(crate) live: Arc<LiveOutput>,
    pub(crate) handle: Handle,
    /// Ends it.
    pub(crate) cancel: CancellationToken,
}

/// What a job needs when it ends.
pub(super) struct Aftermath {
    pub(super) store: Arc<dyn JobStore>,
    pub(super) listener: Arc<dyn JobListener>,
    pub(super) noted: Noted,
}

impl BackgroundJob {
    pub(super) fn new(candidate: Candidate, record: JobRecord) -> Arc<Self> {
        let Candidate { live, handle, cancel } = candidate;
        let state = State {
            record,
            left_running: Vec::new(),
            killer: None,
            observers: 0,
            is_reported: false,
            is_settled: false,
        };
        let (state, over, seen) = (Mutex::new(state), Notify::new(), AtomicU64::new(0));
        Arc::new(Self { live, handle, cancel, state, over, seen })
    }

    /// The present state of the job.
    pub(crate) fn record(&self) -> JobRecord {
        let mut record = self.state.lock().record.clone();
        record.trace = self.handle.trace().into();
        record
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.lock().record.is_running()
    }

    /// Processes that the command left running when it ended.
    pub(crate) fn left_running(&self) -> Vec<LeftRunning> {
        self.state.lock().left_running.clone()
    }

    /// Output that the agent has not seen, which counts as seen from now on.
    pub(crate) fn news(&self) -> super::live::Excerpt {
        let news = self.live.since(self.seen.load(Ordering::Relaxed));
        self.seen.store(news.end, Ordering::Relaxed);
        news
    }

    /// All output so far counts as seen.
    pub(crate) fn mark_seen(&self) {
        self.seen.store(self.live.total(), Ordering::Relaxed);
    }

    /// Returns when there is output that the agent has not seen. May be dropped.
    pub(crate) async fn has_news(&self) {
        self.live.grows_beyond(self.seen.load(Ordering::Relaxed)).await;
    }

    /// Lets the result of a call report the end.
    pub(crate) fn observe(self: &Arc<Self>) -> Observer {
        self.state.lock().observers += 1;
        Observer(Arc::clone(self))
    }

    /// Asks the job to end; [`BackgroundJob::ended`] returns when it has.
    pub(crate) fn kill(&self, by: Killer) {
        self.state.lock().killer.get_or_insert(by);
        self.cancel.cancel();
    }

    /// Ends the job by force, without waiting and without a message.
    pub(crate) fn kill_now(&self, store: &dyn JobStore) {
        let record = {
            let mut state = self.state.lock();
            if !state.record.is_running() {
                return;
            }
            state.is_reported = true;
            let how = JobEnding::Killed { by: Killer::Closing };
            state.record.end = Some(JobEnd { at: now_ms(), how });
            state.record.clone()
        };
        kill_traced(&self.handle.trace());
        // If that fails, the job counts as lost, which has nearly the same effect.
        let _ = store.save(&record);
    }

    /// Returns when the job has ended and that is on disk. May be dropped.
    pub(crate) async fn ended(&self) {
        loop {
            let over = self.over.notified();
            tokio::pin!(over);
            over.as_mut().enable();
            if self.state.lock().is_settled {
                return;
            }
            over.await;
        }
    }

    /// Waits for the end of the command, records it, and reports it.
    pub(super) async fn attend(self: Arc<Self>, running: Running, aftermath: Aftermath) {
        let outcome = running.await;
        let (record, is_owed) = {
            let mut state = self.state.lock();
            let how = match (JobEnding::of(&outcome), state.killer) {
                (JobEnding::Killed { .. }, Some(by)) => JobEnding::Killed { by },
                (how, _) => how,
            };
            state.record.trace = self.handle.trace().into();
            state.record.end.get_or_insert(JobEnd { at: now_ms(), how });
            state.left_running = outcome.map(|finished| finished.left_running).unwrap_or_default();
            let is_owed =
                state.killer != Some(Killer::Closing) && state.observers == 0 && !state.is_reported;
            state.is_reported |= is_owed;
            (state.record.clone(), is_owed)
        };
        let store = aftermath.store;
        let saving = tokio::task::spawn_blocking(move || store.save(&record));
        // If it cannot be written, a later process treats the job as lost.
        drop(saving.await);
        if is_owed {
            self.report(&aftermath.listener).await;
        }
        // From here on, the next MyClaw need not handle this job.
        drop(aftermath.noted);
        self.state.lock().is_settled = true;
        self.over.notify_waiters();
    }

    async fn report(&self, listener: &Arc<dyn JobListener>) {
        let record = self.record();
        let (recent, _) = self.live.recent();
        let text = message::of_end(&record, &recent, &self.left_running());
        listener.ended(JobEnded { record, text }).await;
    }
}

impl Observer {
    /// How the job ended. It counts as told to the agent, because the caller puts it into its result.
    pub(crate) fn report(&self) -> Option<JobEnd> {
        let mut state = self.0.state.lock();
        let end = state.record.end.clone();
        state.is_reported |= end.is_some();
        end
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.0.state.lock().observers -= 1;
    }
}
