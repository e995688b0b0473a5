//! The time limits of an answer.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep};
use tracing::debug;

use crate::{Apart, CallLimits};

/// How long the token counts of a complete message may take to arrive.
const COUNTERS_LIMIT: Duration = Duration::from_secs(3);

/// Keep-alive events (such as Anthropic's `ping`) show that the server is alive, not that the model is: they extend the
/// limit between two events to at most this many times its length. Some models say nothing while they write one long
/// argument.
const KEEP_ALIVE_STRETCH: u32 = 3;

/// Watches the time between events. Moving the deadline costs nothing; the timer itself is moved only when it fires.
pub(super) struct EventTimer {
    pub(super) limits: CallLimits,
    last_event: Instant,
    deadline: Instant,
    pub(super) began: bool,
    /// When the timer fires.
    due: Instant,
    sleep: Apart<Pin<Box<Sleep>>>,
}

impl EventTimer {
    pub(super) fn start(limits: CallLimits) -> Self {
        let now = Instant::now();
        let deadline = now + limits.first_event;
        Self {
            limits,
            last_event: now,
            deadline,
            began: false,
            due: deadline,
            sleep: Apart::new(Box::pin(tokio::time::sleep_until(deadline))),
        }
    }

    /// An event came.
    pub(super) fn advance(&mut self) {
        if !std::mem::replace(&mut self.began, true) {
            debug!(after_ms = self.last_event.elapsed().as_millis() as u64, "first event");
        }
        self.last_event = Instant::now();
        self.move_deadline(self.last_event + self.limits.between_events);
    }

    /// A sign that the server is alive came.
    pub(super) fn keep_alive(&mut self) {
        if self.began {
            let furthest = self.last_event + self.limits.between_events * KEEP_ALIVE_STRETCH;
            self.move_deadline(furthest.min(Instant::now() + self.limits.between_events));
        }
    }

    /// The message is whole.
    pub(super) fn complete(&mut self) {
        self.move_deadline(Instant::now() + COUNTERS_LIMIT.min(self.limits.between_events));
    }

    fn move_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
        if deadline < self.due {
            self.move_timer();
        }
    }

    fn move_timer(&mut self) {
        self.due = self.deadline;
        self.sleep.work().as_mut().reset(self.deadline);
    }

    /// Returns when no event has come in time.
    pub(super) async fn expired(&mut self) {
        loop {
            (&mut self.sleep).await;
            if self.deadline <= Instant::now() {
                return;
            }
            self.move_timer();
        }
    }
}
