//! Finds the line of an entry by its id without decoding all lines.

use memchr::memmem;

use crate::EntryId;

/// Excludes lines that cannot hold an id, so that only the others are decoded.
pub(crate) struct WantedId {
    id: EntryId,
    finder: memmem::Finder<'static>,
    /// True if the id is written literally in its line. A line without an id gets one from its offset, a very long id
    /// is replaced, and JSON may escape unusual characters.
    is_literal: bool,
}

impl WantedId {
    pub(crate) fn new(id: EntryId) -> Self {
        let text = id.as_str();
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        Self {
            id,
            finder: memmem::Finder::new(text).into_owned(),
            is_literal: text.bytes().all(is_plain),
        }
    }

    /// True if the line, which begins at `offset` of its file, is worth decoding.
    pub(crate) fn may_be_in(&self, line: &[u8], offset: u64) -> bool {
        !self.is_literal
            || self.finder.find(line).is_some()
            || EntryId::from_place(offset) == self.id
    }
}
