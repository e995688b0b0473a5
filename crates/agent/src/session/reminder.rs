//! Reminders: messages of the gateway in a session that another program runs.
//!
//! The gateway only puts them into the inbox. A program that has the session open answers them at once, and one that opens it
//! later does so then.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use myclaw_engine::PendingMessage;
use myclaw_session::{EntryId, InboxWatch, SessionError, SessionKey};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::Session;
use crate::Home;
use crate::once::{message, put_once};

/// How the ids of reminders begin.
const MARK: &str = "remind";

/// What an open session knows of reminders.
#[derive(Default)]
pub(super) struct Reminders {
    watch: OnceLock<Box<dyn InboxWatch>>,
    /// Those for which a turn was begun: if it fails, they wait for the next message.
    seen: Mutex<HashSet<EntryId>>,
}

impl Reminders {
    pub(super) fn are_noticed(&self) -> bool {
        self.watch.get().is_some()
    }
}

/// Whether a waiting message is a reminder.
pub fn is_reminder(message: &PendingMessage) -> bool {
    message.id.as_str().starts_with(MARK)
}

/// Puts a reminder that was due at `due` into the inbox of a session, once for each `id` of at most 33 bytes. False if there is
/// no such session. Blocks.
///
/// # Errors
/// The session cannot be read, or its inbox not written.
pub fn put_reminder(
    home: &Home,
    session: &SessionKey,
    (id, due): (&str, u64),
    text: String,
) -> Result<bool, SessionError> {
    // A message would create a deleted session again.
    if !home.catalog().exists(session) {
        return Ok(false);
    }
    let id = EntryId::from_text(&format!("{MARK}{id}"));
    put_once(&**home.sessions(), session, &message(id, text), due)?;
    Ok(true)
}

impl Session {
    /// Has reminders answered, those that wait and those that come as long as the session is open, as the end of a background
    /// job is.
    pub fn notice_reminders(self: &Arc<Self>) {
        let inbox = self.config().home.sessions().inbox(self.key());
        let Ok(runtime) = Handle::try_current() else { return };
        let weak = Arc::downgrade(self);
        let watch = inbox.watch(Arc::new(move || {
            let Some(session) = weak.upgrade() else { return };
            runtime.spawn(async move { session.look_for_reminders().await });
        }));
        watch.notice_other_processes();
        let _ = self.reminders.watch.set(watch);
        let this = Arc::clone(self);
        if inbox.may_hold_messages() {
            self.spawn(async move { this.look_for_reminders().await });
        }
    }

    async fn look_for_reminders(&self) {
        let pending = self.pending().await.unwrap_or_default();
        let mut seen = self.reminders.seen.lock();
        let new = pending.iter().filter(|it| is_reminder(it) && seen.insert(it.id)).count();
        if new > 0 {
            self.config().background.arrived(self.key());
        }
    }
}
