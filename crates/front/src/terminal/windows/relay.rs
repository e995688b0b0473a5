//! On Windows the line editor reads the console itself.

/// Nothing stands between the console and the line editor.
pub struct Relay;

impl Relay {
    /// There is none.
    pub fn begin() -> Option<Self> {
        None
    }
}

/// Does nothing: no key is held back.
pub fn end_was_read() {}

/// Does nothing: no key is held back.
pub fn line_is_drawn() {}

/// Does nothing.
pub(super) fn restore() {}
