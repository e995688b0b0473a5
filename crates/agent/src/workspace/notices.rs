//! What the people of a session learn about its files: that the oldest were removed, that its workspace is full, and that it
//! has one of its own now. The log has it too.

use std::fmt;
use std::sync::{Arc, Weak};

use myclaw_engine::{EventCallback, Notice, RunEvent};
use parking_lot::Mutex;

use crate::SessionConfig;

/// Passes the notices about the files of a session to its front-end, or keeps them until there is one.
#[derive(Clone, Default)]
pub(crate) struct NoticePublisher(Arc<Mutex<NoticeState>>);

#[derive(Default)]
struct NoticeState {
    /// That of the run. It may hold what holds this.
    listener: Option<Weak<dyn Fn(RunEvent) + Send + Sync>>,
    waiting: Vec<Notice>,
    /// Whether it was said that the workspace is full, since it last had room.
    is_full: bool,
    /// Whether the workspace was looked through for repositories.
    has_looked: bool,
}

impl fmt::Debug for NoticePublisher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("NoticePublisher")
    }
}

impl NoticePublisher {
    fn change<T>(&self, change: impl FnOnce(&mut NoticeState) -> T) -> T {
        change(&mut self.0.lock())
    }

    /// Whether to say that the workspace is full: `is_full` now, and not said yet.
    pub(super) fn begins_to_be_full(&self, is_full: bool) -> bool {
        self.change(|state| !std::mem::replace(&mut state.is_full, is_full) && is_full)
    }

    /// Whether to look through the workspace for repositories: once.
    pub(super) fn begins_to_look(&self) -> bool {
        self.change(|state| !std::mem::replace(&mut state.has_looked, true))
    }
}

impl SessionConfig {
    /// Lets `listener` have the notices about the session's files while somebody else keeps it, as a run does. It first gets
    /// those that had no listener.
    pub fn subscribe_to_notices(&self, listener: &EventCallback) {
        let waiting = self.notices.change(|state| {
            state.listener = Some(Arc::downgrade(listener));
            std::mem::take(&mut state.waiting)
        });
        waiting.into_iter().for_each(|notice| self.emit_notice(notice));
    }

    /// Emits a notice about the session's files.
    pub(crate) fn emit_notice(&self, notice: Notice) {
        let listener = self.notices.change(|state| {
            let listener = state.listener.as_ref().and_then(Weak::upgrade);
            if listener.is_none() {
                state.waiting.push(notice.clone());
            }
            listener
        });
        if let Some(listener) = listener {
            listener(RunEvent::notice(self.session_key.clone(), notice));
        }
    }
}

#[cfg(test)]
mod tests;
