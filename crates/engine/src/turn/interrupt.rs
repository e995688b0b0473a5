//! Interrupts: a message for which the run is stopped, from this process or from another.
//!
//! Whoever sends one may have no way to the run but the session's inbox. The run is notified when that changes, and looks
//! into it. The message itself is left to the next run.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use myclaw_session::{EntryId, Inbox, QueuedKind, QueuedMessage};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Turn;
use crate::{Notice, RunError};

/// Those among the waiting messages for which a run is stopped.
pub(crate) fn interrupts(pending: &[QueuedMessage]) -> impl Iterator<Item = &QueuedMessage> {
    pending.iter().filter(|message| message.kind == QueuedKind::Interrupt)
}

/// Looks for interrupts as long as it is polled, and fires the abort of the run at the first one.
pub(super) fn watch(turn: &Turn<'_>) -> impl Future<Output = Infallible> + use<> {
    let (inbox, known) = (turn.inbox.clone(), turn.known_interrupts.clone());
    look(inbox, known, turn.abort.clone())
}

async fn look(inbox: Inbox, known: Vec<EntryId>, abort: CancellationToken) -> Infallible {
    let changed = Arc::new(Notify::new());
    let notify = Arc::clone(&changed);
    let _watch = inbox.watch(move || notify.notify_one());
    loop {
        changed.notified().await;
        let reading = inbox.clone();
        let pending = tokio::task::spawn_blocking(move || reading.pending()).await;
        // An inbox that cannot be read now is read at the next step, which reports it.
        let pending = pending.ok().and_then(Result::ok).unwrap_or_default();
        if is_new(&pending, &known) {
            abort.cancel();
        }
    }
}

/// Whether one of these messages came after the run had begun.
fn is_new(pending: &[QueuedMessage], known: &[EntryId]) -> bool {
    interrupts(pending).any(|message| !known.contains(&message.id))
}

/// Runs `work` to its end while `watch` is polled.
pub(super) async fn unless_ended<T>(
    work: impl Future<Output = T>,
    watch: impl Future<Output = Infallible>,
) -> T {
    let (mut work, mut watch) = (pin!(work), pin!(watch));
    tokio::select! {
        biased;
        outcome = &mut work => outcome,
        never = &mut watch => match never {},
    }
}

impl Turn<'_> {
    /// Stops the run if one of these messages interrupts it.
    ///
    /// # Errors
    /// [`RunError::Aborted`] if so.
    pub(super) fn heed(&self, pending: &[QueuedMessage]) -> Result<(), RunError> {
        if is_new(pending, &self.known_interrupts) {
            self.abort.cancel();
            return Err(RunError::Aborted);
        }
        Ok(())
    }

    /// Says why a run was stopped that its caller did not abort.
    pub(super) fn tell_interrupt(&self) {
        if self.abort.is_cancelled() && !self.caller.is_cancelled() {
            self.notice(Notice::Interrupted {});
        }
    }
}
