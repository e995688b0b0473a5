//! Where the notices about the files of a session go.

use std::fmt;
use std::sync::{Arc, Weak};

use myclaw_engine::{Notice, RunEvent};
use parking_lot::Mutex;

/// Passes the notices about the files of a session to its front-end, or keeps them until there is one.
#[derive(Clone, Default)]
pub(crate) struct NoticePublisher(Arc<Mutex<NoticeState>>);

#[derive(Default)]
pub(super) struct NoticeState {
    /// That of the run. It may hold what holds this.
    pub(super) listener: Option<Weak<dyn Fn(RunEvent) + Send + Sync>>,
    pub(super) waiting: Vec<Notice>,
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
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut NoticeState) -> T) -> T {
        change(&mut self.0.lock())
    }

    /// Whether to say that the workspace is full: `is_full` now, and not said yet.
    pub(crate) fn begins_to_be_full(&self, is_full: bool) -> bool {
        self.change(|state| !std::mem::replace(&mut state.is_full, is_full) && is_full)
    }

    /// Whether to look through the workspace for repositories: once.
    pub(crate) fn begins_to_look(&self) -> bool {
        self.change(|state| !std::mem::replace(&mut state.has_looked, true))
    }
}
