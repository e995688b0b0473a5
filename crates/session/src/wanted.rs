//! Finding the line of an entry by its id without decoding all lines.

use memchr::memmem;

use crate::EntryId;

/// Tells lines that cannot hold an id from those that are worth decoding.
pub(crate) struct WantedId {
    id: EntryId,
    finder: memmem::Finder<'static>,
    /// Whether the id stands in its line as it is. A line without an id has one made from its place, a very long one is
    /// replaced, and JSON may write unusual characters in another way.
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

    /// Whether the line, which begins at `offset` of its file, is worth decoding.
    pub(crate) fn may_be_in(&self, line: &[u8], offset: u64) -> bool {
        !self.is_literal
            || self.finder.find(line).is_some()
            || EntryId::from_place(offset) == self.id
    }
}
