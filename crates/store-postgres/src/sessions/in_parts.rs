//! Changes a large content on its way, with little of it in memory.

use std::io::{self, Read};

/// Changes bytes, and says whether it has.
pub(super) type Change<'c> = &'c mut dyn FnMut(&mut [u8]) -> bool;

/// Bytes that are changed at once.
const WINDOW: usize = 4 * 1024 * 1024;
/// Bytes on both sides of them that are looked at too: what is changed, such as a word, is shorter and may stand across two
/// windows.
const AROUND: usize = 64 * 1024;

/// A content in which `change` changes what it finds.
pub(super) struct InParts<'c, R> {
    content: R,
    change: Change<'c>,
    window: usize,
    around: usize,
    /// What was read: up to `around` bytes that were given, some that are given next, and `around` bytes that wait for more.
    read: Vec<u8>,
    given: usize,
    changed: io::Cursor<Vec<u8>>,
    is_over: bool,
    pub(super) is_changed: bool,
}

impl<'c, R: Read> InParts<'c, R> {
    pub(super) fn new(content: R, change: Change<'c>) -> Self {
        Self::of(content, change, WINDOW, AROUND)
    }

    fn of(content: R, change: Change<'c>, window: usize, around: usize) -> Self {
        Self {
            content,
            change,
            window,
            around,
            read: Vec::new(),
            given: 0,
            changed: io::Cursor::default(),
            is_over: false,
            is_changed: false,
        }
    }

    fn next_window(&mut self) -> io::Result<()> {
        self.read.drain(..self.given.saturating_sub(self.around));
        self.given = self.given.min(self.around);
        let wanted = (self.given + self.window + self.around).saturating_sub(self.read.len());
        let count = (&mut self.content).take(wanted as u64).read_to_end(&mut self.read)?;
        self.is_over = count < wanted;
        let end = if self.is_over { self.read.len() } else { self.read.len() - self.around };
        let mut changed = self.read.clone();
        (self.change)(&mut changed);
        changed.truncate(end);
        changed.drain(..self.given);
        self.is_changed |= changed != self.read[self.given..end];
        self.given = end;
        self.changed = io::Cursor::new(changed);
        Ok(())
    }
}

impl<R: Read> Read for InParts<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.changed.read(buffer)?;
            if count > 0 || self.is_over || buffer.is_empty() {
                return Ok(count);
            }
            self.next_window()?;
        }
    }
}

#[cfg(test)]
mod tests;
