//! Lines of a stream, of bounded length.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Longest line that is kept, in bytes. A longer one is read to its end and forgotten.
pub(crate) const MAX_LINE: usize = 16 << 20;
/// Bytes that are kept of the beginning and the end of a line that is too long: enough for the number of its request.
const KEPT: usize = 512;
/// Longest text of a server that is quoted, in characters.
pub(crate) const QUOTED: usize = 2_000;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// Only its two ends.
    TooLong { head: Vec<u8>, tail: Vec<u8>, bytes: u64 },
}

/// Bytes of a line after which it has no end.
const MAX_SKIPPED: u64 = 256 << 20;

/// Reads lines.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    most: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(stream: R, most: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, stream), most }
    }

    /// The next line; `None` at the end. The last one may lack its end.
    ///
    /// # Errors
    /// An I/O error, or a line that has no end.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut skipped: Option<(Vec<u8>, u64)> = None;
        loop {
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                let is_empty = line.is_empty() && skipped.is_none();
                return Ok((!is_empty).then(|| finished(line, skipped)));
            }
            let end = memchr::memchr(b'\n', buffer);
            let taken = end.unwrap_or(buffer.len());
            match &mut skipped {
                None => line.extend_from_slice(&buffer[..taken]),
                Some((tail, bytes)) => {
                    *bytes += taken as u64;
                    if *bytes > MAX_SKIPPED {
                        return Err(io::Error::other("a line of it has no end"));
                    }
                    tail.extend_from_slice(&buffer[..taken]);
                    let surplus = tail.len().saturating_sub(KEPT);
                    tail.drain(..surplus);
                }
            }
            self.reader.consume(end.map_or(taken, |end| end + 1));
            if skipped.is_none() && line.len() > self.most {
                let tail = line[line.len().saturating_sub(KEPT)..].to_vec();
                skipped = Some((tail, line.len() as u64));
                line = line[..KEPT.min(line.len())].to_vec();
            }
            if end.is_some() {
                return Ok(Some(finished(line, skipped)));
            }
        }
    }
}

fn finished(mut line: Vec<u8>, skipped: Option<(Vec<u8>, u64)>) -> Line {
    match skipped {
        Some((tail, bytes)) => Line::TooLong { head: line, tail, bytes },
        None => {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            Line::Whole(line)
        }
    }
}

#[cfg(test)]
mod tests;
