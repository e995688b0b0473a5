//! Part of step `bounds`: a time limit that is paused while the run waits for a person.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use myclaw_llm::Apart;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long the run has waited for people.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pauses(Arc<State>);

#[derive(Debug, Default)]
struct State {
    waits: Mutex<Waits>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct Waits {
    /// Number of open waits. Several calls may wait at once; together they are one pause.
    open: usize,
    since: Option<Instant>,
    before: Duration,
}

/// A pause that lasts until it is dropped.
pub(super) struct Pause(Pauses);

impl Waits {
    fn begin(&mut self, now: Instant) {
        self.open += 1;
        self.since.get_or_insert(now);
    }

    /// Ends one wait; returns whether it was the last.
    fn end(&mut self, now: Instant) -> bool {
        self.open -= 1;
        if self.open == 0 {
            self.before = self.total(now);
            self.since = None;
        }
        self.open == 0
    }

    /// All pauses so far, including the current one.
    fn total(&self, now: Instant) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }
}

impl Pauses {
    /// Begins a pause.
    pub(super) fn begin(&self) -> Pause {
        self.0.waits.lock().begin(Instant::now());
        Pause(self.clone())
    }

    fn is_open(&self) -> bool {
        self.0.waits.lock().open > 0
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        let has_ended = self.0.0.waits.lock().end(Instant::now());
        if has_ended {
            // At most one task waits for the end of a pause. If it begins to wait later, it gets this permit at once.
            self.0.0.ended.notify_one();
        }
    }
}

/// How long work may take.
#[derive(Debug, Clone)]
pub(super) struct TimeLimit {
    limit: Duration,
    began: Instant,
    pauses: Pauses,
    paused_before: Duration,
}

impl TimeLimit {
    /// Starts the limit now.
    pub(super) fn new(limit: Duration, pauses: &Pauses) -> Self {
        let began = Instant::now();
        let paused_before = pauses.0.waits.lock().total(began);
        Self { limit, began, pauses: pauses.clone(), paused_before }
    }

    /// The remaining time.
    pub(super) fn left(&self) -> Duration {
        self.left_at(Instant::now())
    }

    fn left_at(&self, now: Instant) -> Duration {
        let paused = self.pauses.0.waits.lock().total(now).saturating_sub(self.paused_before);
        self.limit.saturating_sub(now.duration_since(self.began).saturating_sub(paused))
    }

    async fn is_over(&self) {
        loop {
            let left = self.left();
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
            if self.pauses.is_open() {
                self.pauses.0.ended.notified().await;
            }
        }
    }
}

/// Runs `work`, and fires `cancel` if it takes longer than `limit`, so that the current step ends in an orderly way. The work is
/// pinned by the caller: here it would be held twice.
pub(super) async fn within<T>(
    limit: Option<TimeLimit>,
    cancel: &CancellationToken,
    mut work: impl Future<Output = T> + Unpin,
) -> T {
    if let Some(limit) = limit {
        let over = pin!(limit.is_over());
        tokio::select! {
            biased;
            outcome = &mut work => return outcome,
            () = Apart::new(over) => cancel.cancel(),
        }
    }
    work.await
}

#[cfg(test)]
mod tests;
