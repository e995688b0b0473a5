//! Reads the lines of a file from the last to the first, and no more of the file than needed.

use std::io::{self, Read, Seek, SeekFrom};

/// Bytes read at once: large enough to make system calls rare, small compared with any message worth keeping.
pub(crate) const BLOCK: usize = 64 * 1024;
/// A buffer that one huge line has grown beyond this is shrunk afterwards.
const LARGE_BUFFER: usize = 16 * BLOCK;

/// Yields the lines of `reader`, the last one first.
pub(crate) struct BackwardLines<R> {
    reader: R,
    /// Bytes that were read and not yet yielded are at `start..end`; reading fills the space before them.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Place in the file of the byte at `start`.
    start_offset: u64,
    /// Whether the next line to yield ends in a line feed. Only the very last may not.
    terminated: bool,
    finished: bool,
}

/// One line without its line feed.
pub(crate) struct BackwardLine<'a> {
    /// Place in the file of its first byte.
    pub(crate) offset: u64,
    /// The line without its line feed.
    pub(crate) bytes: &'a [u8],
    /// Whether there is a line feed.
    pub(crate) terminated: bool,
}

impl<R: Read + Seek> BackwardLines<R> {
    /// Starts at the present end of `reader`.
    pub(crate) fn new(mut reader: R) -> io::Result<Self> {
        let start_offset = reader.seek(SeekFrom::End(0))?;
        let finished = start_offset == 0;
        let mut lines = Self {
            reader,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            start_offset,
            terminated: false,
            finished,
        };
        if !finished {
            lines.fetch()?;
            if lines.buffer.get(lines.end - 1) == Some(&b'\n') {
                lines.end -= 1;
                lines.terminated = true;
            }
        }
        Ok(lines)
    }

    /// The line before the one yielded last; `None` before the first.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<BackwardLine<'_>>> {
        if self.finished {
            return Ok(None);
        }
        // Bytes from here on are known to hold no line feed. Counted from the end, because reading moves them.
        let mut searched = 0;
        let line_start = loop {
            let unsearched = &self.buffer[self.start..self.end - searched];
            if let Some(at) = memchr::memrchr(b'\n', unsearched) {
                break self.start + at + 1;
            }
            if self.start_offset == 0 {
                self.finished = true;
                break self.start;
            }
            searched = self.end - self.start;
            self.fetch()?;
        };
        let line_end = self.end;
        let terminated = std::mem::replace(&mut self.terminated, true);
        // One less, for the line feed that ends the line before; there is no such line feed before the first line.
        self.end = if self.finished { line_start } else { line_start - 1 };
        Ok(Some(BackwardLine {
            offset: self.start_offset + (line_start - self.start) as u64,
            bytes: &self.buffer[line_start..line_end],
            terminated,
        }))
    }

    /// Reads the block before `start` and puts it in front of the bytes in the buffer.
    fn fetch(&mut self) -> io::Result<()> {
        let length = usize::try_from(self.start_offset).unwrap_or(BLOCK).min(BLOCK);
        if self.start < length || self.is_oversized() {
            self.make_room(length);
        }
        let from = self.start_offset - length as u64;
        self.reader.seek(SeekFrom::Start(from))?;
        self.reader.read_exact(&mut self.buffer[self.start - length..self.start])?;
        self.start -= length;
        self.start_offset = from;
        Ok(())
    }

    /// Moves what is held to the end of a buffer that has `length` bytes to spare. The buffer at least doubles when
    /// it grows, so a line of any length is moved only a few times.
    fn make_room(&mut self, length: usize) {
        let held = self.end - self.start;
        let fits = held + length <= self.buffer.len();
        if fits && !self.is_oversized() {
            let moved_to = self.buffer.len() - held;
            self.buffer.copy_within(self.start..self.end, moved_to);
        } else {
            let capacity = (2 * (held + length)).max(2 * BLOCK);
            let mut moved = vec![0; capacity];
            moved[capacity - held..].copy_from_slice(&self.buffer[self.start..self.end]);
            self.buffer = moved;
        }
        self.end = self.buffer.len();
        self.start = self.end - held;
    }

    /// True if the buffer is only so large because of a line that has been yielded.
    fn is_oversized(&self) -> bool {
        self.buffer.len() > LARGE_BUFFER && self.end - self.start < BLOCK
    }
}

#[cfg(test)]
mod tests;
