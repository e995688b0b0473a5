//! Interrupts: messages that stop the run, sent by this process or another.
//!
//! The sender may reach the run only through the session's inbox. The run is notified when the inbox changes, and reads
//! it. The next run answers the message.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use myclaw_session::{EntryId, Inbox, QueuedKind, QueuedMessage};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Cancellation, Shared};
use crate::{Notice, RunError};

/// A run begins to watch for messages of other processes after this time. Shorter runs do without the watch, because
/// the system needs up to ten milliseconds to end it. The steps of a run read the inbox in any case.
const NOTICES_OTHERS_AFTER: Duration = Duration::from_millis(250);

/// The waiting messages that stop a run.
pub(crate) fn interrupts(pending: &[QueuedMessage]) -> impl Iterator<Item = &QueuedMessage> {
    pending.iter().filter(|message| message.kind == QueuedKind::Interrupt)
}

/// The messages that stop this run.
pub(crate) struct Interrupts {
    inbox: Inbox,
    /// Messages that waited when the run began. They do not stop it, because it answers them.
    known: Vec<EntryId>,
}

impl Interrupts {
    pub(crate) fn new(inbox: Inbox, known: Vec<EntryId>) -> Self {
        Self { inbox, known }
    }

    /// Watches for interrupts while it is polled, and aborts the run at the first one.
    pub(super) fn watch(&self, cancel: &Cancellation) -> impl Future<Output = Infallible> + use<> {
        look(self.inbox.clone(), self.known.clone(), cancel.abort_token().clone())
    }

    /// Stops the run if one of these messages interrupts it.
    ///
    /// # Errors
    /// [`RunError::Aborted`] if a message interrupts the run.
    pub(super) fn heed(
        &self,
        pending: &[QueuedMessage],
        cancel: &Cancellation,
    ) -> Result<(), RunError> {
        if is_new(pending, &self.known) {
            cancel.abort_token().cancel();
            return Err(RunError::Aborted);
        }
        Ok(())
    }
}

/// Emits a notice if a run was stopped by an interrupt and not by its caller.
pub(super) fn report(shared: &Shared) {
    if shared.run.cancel.is_interrupted() {
        shared.notice(Notice::Interrupted {});
    }
}

async fn look(inbox: Inbox, known: Vec<EntryId>, abort: CancellationToken) -> Infallible {
    let changed = Arc::new(Notify::new());
    let notify = Arc::clone(&changed);
    let watch = inbox.watch(move || notify.notify_one());
    // A message may have arrived after the session was opened and before the watch began.
    if inbox.may_hold_messages() {
        changed.notify_one();
    }
    let mut is_short = true;
    loop {
        tokio::select! {
            () = changed.notified() => {}
            () = tokio::time::sleep(NOTICES_OTHERS_AFTER), if is_short => {
                watch.notice_other_processes();
                is_short = false;
            }
        }
        let reading = inbox.clone();
        let pending = tokio::task::spawn_blocking(move || reading.pending()).await;
        // If the inbox cannot be read now, the next step reads it and reports the failure.
        let pending = pending.ok().and_then(Result::ok).unwrap_or_default();
        if is_new(&pending, &known) {
            abort.cancel();
        }
    }
}

/// Whether one of these messages arrived after the run began.
fn is_new(pending: &[QueuedMessage], known: &[EntryId]) -> bool {
    interrupts(pending).any(|message| !known.contains(&message.id))
}

/// Runs `work` to completion, and polls `watch` meanwhile.
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
