//! What the last tool calls printed, in full, and what the parts of a chat know in common.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::status::Status;
use crate::terminal::Style;

/// Calls whose output is kept.
const MOST_CALLS: usize = 20;
/// Bytes of one output that are kept: the end of what is longer.
const MOST_BYTES: usize = 256 * 1024;

/// A line with its style.
pub(super) type StyledLine = (Style, String);

/// State that outlives a turn and that the display, the prompt and the commands share.
#[derive(Debug, Default)]
pub(super) struct Common {
    status: Mutex<Option<Status>>,
    outputs: Mutex<VecDeque<Vec<StyledLine>>>,
    shows_thinking: AtomicBool,
}

impl Common {
    /// The status; `None` if it is not shown.
    pub(super) fn status(&self) -> MutexGuard<'_, Option<Status>> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what the model thinks is shown.
    pub(super) fn shows_thinking(&self) -> bool {
        self.shows_thinking.load(Ordering::Relaxed)
    }

    /// Shows or hides what the model thinks.
    pub(super) fn show_thinking(&self, is_shown: IsShown) {
        self.shows_thinking.store(is_shown == IsShown::Yes, Ordering::Relaxed);
    }

    /// Shows what was hidden, or hides it. Returns a message about it.
    pub(super) fn toggle_thinking(&self) -> &'static str {
        match self.shows_thinking.fetch_xor(true, Ordering::Relaxed) {
            true => "what the model thinks is hidden",
            false => "what the model thinks is shown",
        }
    }

    /// Keeps the output of a call.
    pub(super) fn keep(&self, mut lines: Vec<StyledLine>) {
        let mut bytes = 0;
        let fits = lines.iter().rev().take_while(|(_, line)| {
            bytes += line.len();
            bytes <= MOST_BYTES
        });
        let surplus = lines.len() - fits.count();
        if surplus > 0 {
            // The heading stays.
            lines.drain(1..surplus.max(1));
        }
        let mut outputs = self.outputs();
        if outputs.len() >= MOST_CALLS {
            outputs.pop_front();
        }
        outputs.push_back(lines);
    }

    /// All kept outputs with an empty line between them, and the line at which the last one begins.
    pub(super) fn page(&self) -> (Vec<StyledLine>, usize) {
        let outputs = self.outputs();
        let mut lines = Vec::new();
        let mut start = 0;
        for output in outputs.iter() {
            if !lines.is_empty() {
                lines.push((Style::Dim, String::new()));
            }
            start = lines.len();
            lines.extend(output.iter().cloned());
        }
        (lines, start)
    }

    fn outputs(&self) -> MutexGuard<'_, VecDeque<Vec<StyledLine>>> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IsShown {
    Yes,
    No,
}
