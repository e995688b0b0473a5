//! Ends commands that fill a workspace while they run, and what they left running. Nothing is counted while nothing runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use myclaw_exec::{ChildSpec, ExecError, Link, OutputPiece, Runner, Running};
use myclaw_executor::Executor;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::room::command_makes_room;
use super::{QuotaHook, WorkspaceUse};
use crate::SessionConfig;
use crate::blocking::blocking;

/// Between two counts.
const PERIOD: Duration = Duration::from_secs(3);
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
            return self.executor.run(spec, link, cancel, on_output);
        }
        Box::pin(async move {
            let ended = cancel.child_token();
            let mut running = self.executor.run(spec, link, &ended, on_output);
            let finished = tokio::select! {
                biased;
                finished = &mut running => finished?,
                why = self.hook.is_full() => {
                    ended.cancel();
                    running.await?;
                    let reason = format!("{why}. The command was ended with everything that it had started");
                    return Err(ExecError::Elsewhere { reason });
                }
            };
            if !finished.left_running.is_empty() {
                self.watch_leftovers();
            }
            Ok(finished)
        })
    }

    fn remark(&self, printed: &str) -> Option<&'static str> {
        self.executor.remark(printed)
    }
}

impl WatchedRunner {
    /// What commands left running has no call that could be ended. So the helper ends with it, if it fills the workspace.
    fn watch_leftovers(&self) {
        let (hook, executor) = (Arc::clone(&self.hook), Arc::downgrade(&self.executor));
        if hook.config.quota_state.is_watched.swap(true, Ordering::Relaxed) {
            return;
        }
        tokio::spawn(async move {
            let mut before = WorkspaceUse::default();
            let mut pause = PERIOD;
            loop {
                sleep(pause).await;
                // The sandbox ends when nothing runs in it.
                let Some(executor) = executor.upgrade().filter(|executor| executor.is_running())
                else {
                    break;
                };
                let Some(counted) = hook.count().await else { continue };
                pause = counted.pause;
                let grows = (counted.used.bytes, counted.used.files) > (before.bytes, before.files);
                if let Some(why) = counted.refusal.filter(|_| grows) {
                    executor.end(&why);
                    break;
                }
                before = counted.used;
            }
            hook.config.quota_state.is_watched.store(false, Ordering::Relaxed);
        });
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
