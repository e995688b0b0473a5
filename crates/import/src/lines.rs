//! Lines of a file, one in memory at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use myclaw_front::exit::CliError;

/// Longest line that is read: some ten large images in one message.
const MOST_LINE_BYTES: u64 = 256 << 20;
/// A buffer that one long line has grown is made this small again.
const USUAL_LINE_BYTES: usize = 1 << 20;

/// Reads forward through a file.
pub(super) struct Lines<'a> {
    path: &'a Path,
    reader: BufReader<&'a File>,
    buffer: Vec<u8>,
    /// Place of the next line.
    next: u64,
}

/// A line and where it is.
pub(super) struct Line<'a> {
    pub(super) offset: u64,
    pub(super) bytes: &'a [u8],
    /// Whether it has an end. A last line without one may be half a line.
    pub(super) is_terminated: bool,
}

impl<'a> Lines<'a> {
    /// From the beginning; `file` must be there.
    pub(super) fn new(file: &'a File, path: &'a Path) -> Self {
        Self { path, reader: BufReader::new(file), buffer: Vec::new(), next: 0 }
    }

    /// The next line that is not blank.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, CliError> {
        loop {
            self.buffer.clear();
            self.buffer.shrink_to(USUAL_LINE_BYTES);
            let offset = self.next;
            let length = self
                .reader
                .by_ref()
                .take(MOST_LINE_BYTES)
                .read_until(b'\n', &mut self.buffer)
                .map_err(|error| super::cannot_read(self.path, &error))?;
            self.next += length as u64;
            if length == 0 {
                return Ok(None);
            }
            let is_terminated = self.buffer.ends_with(b"\n");
            if length as u64 == MOST_LINE_BYTES && !is_terminated {
                let error = io::Error::other("a line of it has more than 256 MiB");
                return Err(super::cannot_read(self.path, &error));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break Ok(Some(Line { offset, bytes: &self.buffer, is_terminated }));
            }
        }
    }
}
