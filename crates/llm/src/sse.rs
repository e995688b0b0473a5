//! Decodes server-sent events from bytes that may be cut anywhere.
//!
//! [`SseDecoder`] is fed chunks as they come off a socket and hands out [`Frame`]s that borrow from its buffer, so a
//! stream of thousands of small events costs no allocation each. Every byte is read once: a line is scanned
//! from where the last chunk ended, never from its start. It knows nothing of JSON or of models.
//!
//! Three things differ from the HTML standard, all because model servers need it: an event at the end of the stream
//! counts even without its blank line, bytes that are not UTF-8 become replacement characters, event by event, and a
//! line `error: …` is the data of an event named `error`.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;

use memchr::memchr2;

/// Largest event in bytes, its field names included. The largest real ones are whole images in one event.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// A byte order mark, allowed once, at the start of the stream.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Why a stream cannot be decoded further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// One event is larger than the decoder accepts.
    #[error("one event of the stream is larger than {limit} bytes")]
    EventTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The event's name; empty where the server sends none.
    pub event: Cow<'a, str>,
    /// The data lines, joined by line feeds.
    pub data: Cow<'a, str>,
    /// Whether the blank line that ends an event was there. Without it the stream may have been cut inside the data.
    pub terminated: bool,
}

/// Decodes one stream. Feed it with [`push`](Self::push), empty it with [`next_frame`](Self::next_frame) after each.
#[derive(Debug)]
pub struct SseDecoder {
    buffer: Vec<u8>,
    /// Where the event that is being collected begins in `buffer`; everything before it has been handled.
    event_start: usize,
    /// Where the line that is being collected begins.
    line_start: usize,
    /// The line has no end before this place.
    scanned: usize,
    event: Range<usize>,
    data: EventData,
    /// Data of events with several data lines; kept to reuse its memory.
    joined: Vec<u8>,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_carriage_return: bool,
    at_start: bool,
    ended: bool,
    max_event_bytes: usize,
    last_id: Vec<u8>,
    retry: Option<Duration>,
}

/// The data lines of the event that is being collected.
#[derive(Debug, Default, Clone)]
enum EventData {
    #[default]
    None,
    /// One line, in the buffer.
    Line(Range<usize>),
    /// Several lines, in `joined`.
    Joined,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::with_max_event_bytes(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    /// A decoder that refuses events above `max_event_bytes`.
    pub fn with_max_event_bytes(max_event_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            event_start: 0,
            line_start: 0,
            scanned: 0,
            event: 0..0,
            data: EventData::None,
            joined: Vec::new(),
            after_carriage_return: false,
            at_start: true,
            ended: false,
            max_event_bytes,
            last_id: Vec::new(),
            retry: None,
        }
    }

    /// The last id that the stream has given: a client that connects again names it, to get what came after. Empty if
    /// there was none.
    pub fn last_id(&self) -> Cow<'_, str> {
        text(&self.last_id)
    }

    /// How long to wait before connecting again, if the stream has said it.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Adds bytes as they arrived. Call [`next_frame`](Self::next_frame) until it returns `None` before the next push:
    /// then the buffer never holds more than one event and one chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        self.forget_finished_events();
        self.buffer.extend_from_slice(chunk);
    }

    /// Ends the stream. After this, [`next_frame`](Self::next_frame) also returns an event that lacks its blank line.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The next whole event, or `None` if more bytes are needed (or, after [`end`](Self::end), if there are no more
    /// events).
    ///
    /// # Errors
    /// [`SseError::EventTooLarge`] as soon as the event exceeds the limit, even if it is not complete.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, SseError> {
        if !self.skip_byte_order_mark() {
            return Ok(None);
        }
        let mut terminated = false;
        while let Some(line) = self.next_line() {
            self.check_size(line.end)?;
            if line.is_empty() {
                if !matches!(self.data, EventData::None) {
                    terminated = true;
                    break;
                }
                self.event = 0..0;
            } else {
                self.take_line(line);
            }
            if self.event.is_empty() && matches!(self.data, EventData::None) {
                self.event_start = self.line_start;
            }
        }
        if !terminated {
            self.check_size(self.buffer.len())?;
            if !self.ended {
                return Ok(None);
            }
            if self.line_start < self.buffer.len() {
                let rest = self.line_start..self.buffer.len();
                self.line_start = rest.end;
                self.scanned = rest.end;
                self.take_line(rest);
            }
        }
        Ok(self.take_frame(terminated))
    }

    fn forget_finished_events(&mut self) {
        let done = self.event_start;
        if done == 0 {
            return;
        }
        self.buffer.drain(..done);
        self.event_start = 0;
        self.line_start -= done;
        self.scanned -= done;
        if !self.event.is_empty() {
            self.event = self.event.start - done..self.event.end - done;
        }
        if let EventData::Line(line) = &mut self.data {
            *line = line.start - done..line.end - done;
        }
    }

    /// Whether it is known that a byte order mark precedes the stream or not.
    fn skip_byte_order_mark(&mut self) -> bool {
        if !self.at_start {
            return true;
        }
        if self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.line_start = BYTE_ORDER_MARK.len();
            self.scanned = self.line_start;
            self.event_start = self.line_start;
        } else if !self.ended && BYTE_ORDER_MARK.starts_with(&self.buffer) {
            return false;
        }
        self.at_start = false;
        true
    }

    /// The next line without its end. CR, LF and CRLF end a line; a CR does at once, so that nothing waits for the
    /// byte that follows.
    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.after_carriage_return && self.line_start < self.buffer.len() {
            self.after_carriage_return = false;
            if self.buffer[self.line_start] == b'\n' {
                self.line_start += 1;
                self.scanned = self.line_start;
            }
        }
        let Some(offset) = memchr2(b'\r', b'\n', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let end = self.scanned + offset;
        let line = self.line_start..end;
        self.after_carriage_return = self.buffer[end] == b'\r';
        self.line_start = end + 1;
        self.scanned = self.line_start;
        Some(line)
    }

    /// Handles one field. Comments and unknown fields are skipped.
    fn take_line(&mut self, line: Range<usize>) {
        let text = &self.buffer[line.clone()];
        let (name, value_offset) = match memchr::memchr(b':', text) {
            Some(colon) => {
                let space = usize::from(text.get(colon + 1) == Some(&b' '));
                (&text[..colon], colon + 1 + space)
            }
            None => (text, text.len()),
        };
        let value = line.start + value_offset..line.end;
        match name {
            b"data" => self.add_data(value),
            b"event" => self.event = if value.is_empty() { 0..0 } else { value },
            b"error" => {
                self.event = line.start..line.start + name.len();
                self.add_data(value);
            }
            b"id" if !self.buffer[value.clone()].contains(&0) => {
                self.last_id.clear();
                self.last_id.extend_from_slice(&self.buffer[value]);
            }
            b"retry" => {
                let digits = std::str::from_utf8(&self.buffer[value]).ok();
                let milliseconds = digits.and_then(|digits| digits.parse().ok());
                self.retry = milliseconds.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }

    fn add_data(&mut self, value: Range<usize>) {
        match std::mem::take(&mut self.data) {
            EventData::None => self.data = EventData::Line(value),
            EventData::Line(first) => {
                self.joined.clear();
                self.joined.extend_from_slice(&self.buffer[first]);
                self.joined.push(b'\n');
                self.joined.extend_from_slice(&self.buffer[value]);
                self.data = EventData::Joined;
            }
            EventData::Joined => {
                self.joined.push(b'\n');
                self.joined.extend_from_slice(&self.buffer[value]);
                self.data = EventData::Joined;
            }
        }
    }

    fn take_frame(&mut self, terminated: bool) -> Option<Frame<'_>> {
        let data = match std::mem::take(&mut self.data) {
            EventData::None => return None,
            EventData::Line(line) => &self.buffer[line],
            EventData::Joined => &self.joined,
        };
        self.event_start = self.line_start;
        let event = std::mem::replace(&mut self.event, 0..0);
        Some(Frame { event: text(&self.buffer[event]), data: text(data), terminated })
    }

    fn check_size(&self, end: usize) -> Result<(), SseError> {
        if end.saturating_sub(self.event_start) > self.max_event_bytes {
            return Err(SseError::EventTooLarge { limit: self.max_event_bytes });
        }
        Ok(())
    }
}

/// Bytes as text, with replacement characters for invalid bytes. The whole is checked first, because the standard
/// library checks valid text word by word, and nearly all text is valid.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests;
