//! Ends commands that fill a workspace while they run, and what they left running. Nothing is counted while nothing runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use myclaw_exec::{ChildSpec, ExecError, Link, OutputPiece, Runner, Running};
use myclaw_executor::Executor;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::room::command_makes_room;
use super::{QuotaHook, QuotaState, WorkspaceUse};
use crate::SessionConfig;
use crate::blocking::blocking;

/// Between two counts.
const PERIOD: Duration = Duration::from_secs(3);
/// The same, where nothing changes.
const QUIET_PERIOD: Duration = Duration::from_secs(12);
/// Counting takes at most this part of the time: a large workspace is counted less often.
const SHARE_OF_TIME: u32 = 20;

/// Runs the commands of a session with a quota.
struct WatchedRunner {
    executor: Arc<Executor>,
    hook: Arc<QuotaHook>,
}

impl SessionConfig {
    /// Runs commands in the sandbox, and ends those that fill the session's own workspace.
    pub(crate) fn watched(&self, executor: &Arc<Executor>) -> Arc<dyn Runner> {
        match self.own_quota() {
            Some(hook) => Arc::new(WatchedRunner { executor: Arc::clone(executor), hook }),
            None => Arc::clone(executor) as Arc<dyn Runner>,
        }
    }
}

impl Runner for WatchedRunner {
    fn run<'a>(
        &'a self,
        spec: ChildSpec,
        link: Link,
        cancel: &'a CancellationToken,
        on_output: &'a mut (dyn FnMut(OutputPiece<'_>) + Send),
    ) -> Running<'a> {
        let line = spec.args.last().and_then(|line| line.to_str()).unwrap_or_default();
        if command_makes_room(line) {
            return Box::pin(async move {
                let _guard = MakingRoom::begin(&self.hook.config.quota_state);
                self.executor.run(spec, link, cancel, on_output).await
            });
        }
        Box::pin(async move {
            let ended = cancel.child_token();
            let mut running = self.executor.run(spec, link, &ended, on_output);
            tokio::select! {
                biased;
                finished = &mut running => {
                    self.watch_leftovers();
                    finished
                }
                why = self.hook.is_full() => {
                    ended.cancel();
                    running.await?;
                    let reason = format!("{why}. The command was ended with everything that it had started");
                    Err(ExecError::Elsewhere { reason })
                }
            }
        })
    }

    fn remark(&self, printed: &str) -> Option<&'static str> {
        self.executor.remark(printed)
    }
}

impl WatchedRunner {
    /// Watches the workspace until nothing runs in the sandbox: a command may leave something running that shows nowhere. That
    /// has no call which could be ended, so the sandbox ends with it.
    fn watch_leftovers(&self) {
        let (hook, executor) = (Arc::clone(&self.hook), Arc::downgrade(&self.executor));
        if hook.config.quota_state.is_watched.swap(true, Ordering::Relaxed) {
            return;
        }
        tokio::spawn(async move {
            let mut before: Option<WorkspaceUse> = None;
            let mut pause = PERIOD;
            loop {
                sleep(pause).await;
                // The sandbox ends when nothing has run in it for some time.
                let Some(executor) = executor.upgrade().filter(|executor| executor.is_running())
                else {
                    break;
                };
                let Some(found) = hook.count().await else { continue };
                // What is over the limit on files is not counted, so whether it grows is not known.
                let grows = before.is_some_and(|before| {
                    let is_more =
                        (found.used.bytes, found.used.files) > (before.bytes, before.files);
                    is_more
                        || (found.used.has_more && MakingRoom::count(&hook.config.quota_state) == 0)
                });
                if let Some(why) = found.refusal.filter(|_| grows) {
                    executor.end(&why);
                    break;
                }
                let is_quiet = before == Some(found.used);
                pause =
                    found.pause.max(if is_quiet { QUIET_PERIOD.min(pause * 2) } else { PERIOD });
                before = Some(found.used);
            }
            hook.config.quota_state.is_watched.store(false, Ordering::Relaxed);
        });
    }
}

/// A command that makes room runs as long as this is there.
struct MakingRoom(QuotaState);

impl MakingRoom {
    fn begin(state: &QuotaState) -> Self {
        state.making_room.fetch_add(1, Ordering::Relaxed);
        Self(state.clone())
    }

    fn count(state: &QuotaState) -> usize {
        state.making_room.load(Ordering::Relaxed)
    }
}

impl Drop for MakingRoom {
    fn drop(&mut self) {
        self.0.making_room.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What was found.
struct Found {
    used: WorkspaceUse,
    refusal: Option<String>,
    /// Until the next count.
    pause: Duration,
}

impl QuotaHook {
    /// Counts, and tells if the workspace is full. `None` if it cannot be read.
    async fn count(&self) -> Option<Found> {
        let (state, quota, place) =
            (self.config.quota_state.clone(), self.quota, self.place.clone());
        let began = Instant::now();
        let used = blocking(move || state.recount(&quota, &place)).await.ok()?.ok()?;
        let refusal = self.quota.refusal(&used, 0);
        self.config.note_if_full(refusal.as_deref());
        Some(Found { used, refusal, pause: PERIOD.max(began.elapsed() * SHARE_OF_TIME) })
    }

    /// Returns when the workspace is full, and why. May be dropped.
    async fn is_full(&self) -> String {
        let mut pause = PERIOD;
        loop {
            sleep(pause).await;
            match self.count().await {
                Some(Found { refusal: Some(why), .. }) => return why,
                found => pause = found.map_or(PERIOD, |found| found.pause),
            }
        }
    }
}
