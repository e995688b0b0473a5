//! Interrupts: messages that stop the run, sent by this process or another.
//!
//! The sender may reach the run only through the session's inbox. The run is notified when the inbox changes, and reads
//! it. The next run answers the message.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use myclaw_llm::Apart;
use myclaw_session::{EntryId, Inbox, InboxWatch, QueuedKind, QueuedMessage, SessionError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{Cancellation, Shared};
use crate::{Notice, RunError};

/// A run begins to watch for messages of other processes after this time. Shorter runs do without the watch, because
/// the system needs up to ten milliseconds to end it. The steps of a run read the inbox in any case.
const NOTICES_OTHERS_AFTER: Duration = Duration::from_millis(250);

/// Pause before an inbox is read again that somebody held. They write a few lines and release it.
const HELD_PAUSE: Duration = Duration::from_millis(10);

/// The waiting messages that stop a run.
pub(crate) fn interrupts(pending: &[QueuedMessage]) -> impl Iterator<Item = &QueuedMessage> {
    pending.iter().filter(|message| message.kind == QueuedKind::Interrupt)
}

/// The messages that stop this run.
pub(crate) struct Interrupts {
    inbox: Arc<dyn Inbox>,
    watch: Arc<Watch>,
    /// Messages that waited when the run began. They do not stop it, because it answers them.
    known: Vec<EntryId>,
}

/// Notes that messages may have been added to an inbox.
pub(crate) struct Watch {
    changed: Arc<Notify>,
    inbox: Box<dyn InboxWatch>,
}

impl Watch {
    /// Begins to watch. What is in the inbox already is to be read afterwards: then no message is missed.
    pub(crate) fn begin(inbox: &dyn Inbox) -> Self {
        let changed = Arc::new(Notify::new());
        let notify = Arc::clone(&changed);
        Self { changed, inbox: inbox.watch(Arc::new(move || notify.notify_one())) }
    }
}

impl Interrupts {
    /// `watch` began before the inbox was read, in which `known` were found.
    pub(crate) fn new(inbox: Arc<dyn Inbox>, watch: Watch, known: Vec<EntryId>) -> Self {
        Self { inbox, watch: Arc::new(watch), known }
    }

    /// Watches for interrupts while it is polled, and aborts the run at the first one.
    pub(super) fn watch(&self, cancel: &Cancellation) -> impl Future<Output = Infallible> + use<> {
        let (inbox, watch) = (self.inbox.clone(), Arc::clone(&self.watch));
        look(inbox, watch, self.known.clone(), cancel.abort_token().clone())
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

async fn look(
    inbox: Arc<dyn Inbox>,
    watch: Arc<Watch>,
    known: Vec<EntryId>,
    abort: CancellationToken,
) -> Infallible {
    let mut is_short = true;
    loop {
        tokio::select! {
            () = watch.changed.notified() => {}
            () = tokio::time::sleep(NOTICES_OTHERS_AFTER), if is_short => {
                watch.inbox.notice_other_processes();
                is_short = false;
            }
        }
        if is_new(&pending(&inbox).await, &known) {
            abort.cancel();
        }
    }
}

/// What waits in an inbox. Most changes that are noticed are those of the run itself, which empty the file or hold it, so no
/// thread is taken for an empty one, and none waits for one that is held.
async fn pending(inbox: &Arc<dyn Inbox>) -> Vec<QueuedMessage> {
    while inbox.may_hold_messages() {
        let reading = Arc::clone(inbox);
        let read = tokio::task::spawn_blocking(move || reading.try_pending()).await;
        match read {
            Ok(Err(SessionError::Locked { .. })) => tokio::time::sleep(HELD_PAUSE).await,
            // If the inbox cannot be read now, the next step reads it and reports the failure.
            read => return read.ok().and_then(Result::ok).unwrap_or_default(),
        }
    }
    Vec::new()
}

/// Whether one of these messages arrived after the run began.
fn is_new(pending: &[QueuedMessage], known: &[EntryId]) -> bool {
    interrupts(pending).any(|message| !known.contains(&message.id))
}

/// Runs `work` to completion, and polls `watch` meanwhile. The work is pinned by the caller: here it would be held twice.
pub(super) async fn unless_ended<T>(
    mut work: impl Future<Output = T> + Unpin,
    watch: impl Future<Output = Infallible>,
) -> T {
    let watch = pin!(watch);
    tokio::select! {
        biased;
        outcome = &mut work => outcome,
        never = Apart::new(watch) => match never {},
    }
}
