//! New output, for user interfaces.

use std::str::from_utf8;

use myclaw_engine::ToolUpdate;
use parking_lot::Mutex;

use crate::support::plain_text;

/// Most bytes of one update; of more output only the end is shown.
const MAX_BYTES: usize = 4 * 1024;

/// Output since the last update.
#[derive(Debug, Default)]
pub(super) struct Progress {
    new: Mutex<Vec<u8>>,
}

impl Progress {
    /// Takes a piece of output.
    pub(super) fn push(&self, piece: &[u8]) {
        let mut new = self.new.lock();
        let piece = &piece[piece.len().saturating_sub(MAX_BYTES)..];
        let surplus = (new.len() + piece.len()).saturating_sub(MAX_BYTES);
        new.drain(..surplus);
        new.extend_from_slice(piece);
    }

    /// The new output, or `None` if there is none. An incomplete character is kept until the rest of it arrives.
    pub(super) fn take(&self) -> Option<ToolUpdate> {
        let mut new = self.new.lock();
        let whole = match from_utf8(&new) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            // Invalid bytes become replacement characters.
            Ok(_) | Err(_) => new.len(),
        };
        let text: Vec<u8> = new.drain(..whole).collect();
        if text.is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(&text);
        Some(ToolUpdate { text: plain_text(&text).into_owned(), details: None })
    }
}
