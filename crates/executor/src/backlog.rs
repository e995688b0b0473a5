//! Output on its way: the newest part of what was not taken yet.

use std::mem;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::protocol::MAX_PIECE_BYTES;

/// Output that waits to be taken. What does not fit is skipped, the oldest first: nobody looks at more than the newest.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: Mutex<Chunk>,
    grew: Notify,
}

/// Some output, and what was skipped before it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) skipped_bytes: u64,
    pub(crate) skipped_lines: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Chunk {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.skipped_bytes == 0
    }
}

impl Backlog {
    /// Adds output.
    pub(crate) fn push(&self, piece: &[u8]) {
        let mut waiting = self.waiting.lock();
        waiting.bytes.extend_from_slice(piece);
        let surplus = waiting.bytes.len().saturating_sub(MAX_PIECE_BYTES);
        if surplus > 0 {
            let lines = memchr::memchr_iter(b'\n', &waiting.bytes[..surplus]).count() as u64;
            waiting.skipped_bytes = waiting.skipped_bytes.saturating_add(surplus as u64);
            waiting.skipped_lines = waiting.skipped_lines.saturating_add(lines);
            waiting.bytes.drain(..surplus);
        }
        drop(waiting);
        self.grew.notify_one();
    }

    /// Adds output that another backlog held.
    pub(crate) fn push_chunk(&self, chunk: &Chunk) {
        if chunk.skipped_bytes > 0 {
            let mut waiting = self.waiting.lock();
            let before = mem::take(&mut waiting.bytes);
            let lines = memchr::memchr_iter(b'\n', &before).count() as u64;
            let bytes = (before.len() as u64).saturating_add(chunk.skipped_bytes);
            waiting.skipped_bytes = waiting.skipped_bytes.saturating_add(bytes);
            let lines = lines.saturating_add(chunk.skipped_lines);
            waiting.skipped_lines = waiting.skipped_lines.saturating_add(lines);
        }
        self.push(&chunk.bytes);
    }

    /// What there is, if there is any.
    pub(crate) fn take(&self) -> Option<Chunk> {
        let chunk = mem::take(&mut *self.waiting.lock());
        (!chunk.is_empty()).then_some(chunk)
    }

    /// Returns when there is output. May be dropped and called again, by one caller at a time.
    pub(crate) async fn filled(&self) {
        while self.waiting.lock().is_empty() {
            self.grew.notified().await;
        }
    }
}

#[cfg(test)]
mod tests;
