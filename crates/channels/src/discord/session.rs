//! A session of the Gateway, which a later connection or process continues.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// What resuming needs. It is kept on disk, so that a process that was killed misses nothing that Discord still has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ResumableSession {
    pub(super) id: String,
    /// Where Discord wants it to be resumed.
    pub(super) address: String,
    /// Every event up to this number is done.
    pub(super) seq: u64,
}

/// Which events of a session are done.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The newest that has come.
    newest: u64,
    open: BTreeSet<u64>,
}

impl Progress {
    pub(super) fn from(seq: u64) -> Self {
        Self { newest: seq, open: BTreeSet::new() }
    }

    /// Notes an event that is done at once.
    pub(super) fn pass(&mut self, seq: u64) {
        self.newest = self.newest.max(seq);
    }

    /// Notes an event that takes a while.
    pub(super) fn begin(&mut self, seq: u64) {
        self.pass(seq);
        self.open.insert(seq);
    }

    pub(super) fn end(&mut self, seq: u64) {
        self.open.remove(&seq);
    }

    /// Every event up to this number is done.
    pub(super) fn done(&self) -> u64 {
        self.open.first().map_or(self.newest, |first| first.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_behind_an_open_event_is_done() {
        let mut progress = Progress::from(3);
        progress.begin(4);
        progress.begin(5);
        progress.pass(6);
        assert_eq!(progress.done(), 3);
        progress.end(5);
        assert_eq!(progress.done(), 3);
        progress.end(4);
        assert_eq!(progress.done(), 6);
    }
}
