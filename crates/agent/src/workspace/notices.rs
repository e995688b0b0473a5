//! What the people of a session learn about its files: that the oldest were removed, that its workspace is full, and that it
//! has one of its own now. The log has it too.

mod publisher;

use std::sync::{Arc, Weak};

use myclaw_engine::{EventCallback, Notice, RunEvent};

pub(crate) use self::publisher::NoticePublisher;
use crate::SessionConfig;

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

    /// Passes an event on to the listener, if somebody keeps one. Whether somebody does.
    pub(crate) fn publish(&self, event: &RunEvent) -> bool {
        let listener = self.notices.change(|state| state.listener.as_ref().and_then(Weak::upgrade));
        listener.map(|listener| listener(event.clone())).is_some()
    }
}

#[cfg(test)]
mod tests;
