//! What the people of a session learn about its files: that the oldest were removed, that its workspace is full, and that it
//! has one of its own now. The log has it too.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use myclaw_engine::{EventCallback, Notice, RunEvent};

use crate::SessionConfig;

/// Tells the front-end of a session, or keeps what is to be told until there is one.
#[derive(Clone, Default)]
pub(crate) struct FileNotices(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    /// That of the run. It may hold what holds this.
    listener: Option<Weak<dyn Fn(RunEvent) + Send + Sync>>,
    waiting: Vec<Notice>,
    /// Whether it was said that the workspace is full, since it last had room.
    is_full: bool,
}

impl fmt::Debug for FileNotices {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FileNotices")
    }
}

impl FileNotices {
    fn change<T>(&self, change: impl FnOnce(&mut Told) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether to say that the workspace is full: `is_full` now, and not said yet.
    pub(super) fn begins_to_be_full(&self, is_full: bool) -> bool {
        self.change(|told| !std::mem::replace(&mut told.is_full, is_full) && is_full)
    }
}

impl SessionConfig {
    /// Lets `listener` have the notices about the session's files while somebody else keeps it, as a run does. It first gets
    /// those that had no listener.
    pub fn tell_about_files(&self, listener: &EventCallback) {
        let waiting = self.file_notices.change(|told| {
            told.listener = Some(Arc::downgrade(listener));
            std::mem::take(&mut told.waiting)
        });
        waiting.into_iter().for_each(|notice| self.tell(notice));
    }

    /// Says something about the session's files.
    pub(crate) fn tell(&self, notice: Notice) {
        let listener = self.file_notices.change(|told| {
            let listener = told.listener.as_ref().and_then(Weak::upgrade);
            if listener.is_none() {
                told.waiting.push(notice.clone());
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
