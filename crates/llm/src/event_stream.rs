//! Decodes Amazon's binary event streams (`application/vnd.amazon.eventstream`) from bytes that may be cut anywhere.
//!
//! [`EventStreamDecoder`] is fed chunks as they come off a socket and hands out the [`Frame`]s that a decoder of a wire
//! format takes. Both checksums of every message are checked. A failure that the server reports is an error here,
//! because the framing marks it as one, so it cannot be confused with an event. This module knows nothing of JSON or
//! models.
//!
//! A message is its total length and the length of its headers (both 32 bits, big-endian), a CRC-32 of those eight
//! bytes, the headers, the payload, and a CRC-32 of all that came before.

use std::borrow::Cow;

use crate::sse::{self, Frame};

/// Largest message in bytes, as for an event of a text stream. The largest that AWS's own clients take is 24 MiB.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Largest headers of one message in bytes: the limit of AWS's own clients.
pub const MAX_HEADER_BYTES: usize = 128 * 1024;

/// The two lengths and their checksum.
const PRELUDE: usize = 12;

/// The checksum at the end.
const TRAILER: usize = 4;

/// Why a stream cannot be decoded further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventStreamError {
    /// The bytes are not such a stream, or were damaged in transit.
    #[error(
        "the event stream is damaged: the checksum of a message does not fit (something between here and the server changes what it sends)"
    )]
    BadChecksum,
    /// One message is larger than the decoder accepts.
    #[error("one message of the event stream is larger than {limit} bytes")]
    MessageTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The headers of one message are larger than the decoder accepts.
    #[error("the headers of one message of the event stream are larger than {limit} bytes")]
    HeadersTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The checksums are right, but the message is invalid.
    #[error("a message of the event stream cannot be read: {what}")]
    Malformed {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The server says that the stream failed.
    #[error("{code}: {body}")]
    Reported {
        /// The server's name for the failure, such as `throttlingException`.
        code: String,
        /// The details, usually JSON; may be empty.
        body: String,
    },
}

/// Decodes one stream. Feed it with [`push`](Self::push), empty it with [`next_frame`](Self::next_frame) after each.
#[derive(Debug, Default)]
pub struct EventStreamDecoder {
    buffer: Vec<u8>,
    /// Where the next message begins in `buffer`; everything before it has been handled.
    start: usize,
}

impl EventStreamDecoder {
    /// Adds bytes as they arrived. Call [`next_frame`](Self::next_frame) until it returns `None` before the next push:
    /// then the buffer never holds more than one message and one chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// The next event, or `None` if more bytes are needed. A message of an unknown kind becomes an event without a
    /// name.
    ///
    /// # Errors
    /// [`EventStreamError::Reported`] if the server reports a failure; otherwise the bytes are not a valid stream.
    /// Limits are checked before the message is complete. The decoder cannot be used after an error.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, EventStreamError> {
        let Some(lengths) = self.next_lengths()? else { return Ok(None) };
        let start = self.start;
        let end = start + lengths.message;
        if self.buffer.len() < end {
            return Ok(None);
        }
        self.start = end;
        if crc32fast::hash(&self.buffer[start..end - TRAILER]) != self.number_at(end - TRAILER) {
            return Err(EventStreamError::BadChecksum);
        }
        let (headers, payload) =
            self.buffer[start + PRELUDE..end - TRAILER].split_at(lengths.headers);
        let headers = Headers::parse(headers)?;
        let payload = sse::text(payload);
        if headers.is_failure {
            let body = match headers.error_message {
                "" => payload.into_owned(),
                message => message.to_owned(),
            };
            return Err(EventStreamError::Reported { code: headers.name.to_owned(), body });
        }
        Ok(Some(Frame { event: Cow::Borrowed(headers.name), data: payload, terminated: true }))
    }

    /// The lengths of the next message, checked, once its prelude is there.
    fn next_lengths(&self) -> Result<Option<Lengths>, EventStreamError> {
        let start = self.start;
        if self.buffer.len() < start + PRELUDE {
            return Ok(None);
        }
        if crc32fast::hash(&self.buffer[start..start + 8]) != self.number_at(start + 8) {
            return Err(EventStreamError::BadChecksum);
        }
        let lengths = Lengths {
            message: self.number_at(start) as usize,
            headers: self.number_at(start + 4) as usize,
        };
        if lengths.headers > MAX_HEADER_BYTES {
            return Err(EventStreamError::HeadersTooLarge { limit: MAX_HEADER_BYTES });
        }
        if lengths.message > MAX_MESSAGE_BYTES {
            return Err(EventStreamError::MessageTooLarge { limit: MAX_MESSAGE_BYTES });
        }
        if lengths.message < PRELUDE + lengths.headers + TRAILER {
            return Err(EventStreamError::Malformed { what: "it is shorter than its headers" });
        }
        Ok(Some(lengths))
    }

    /// The number in the four bytes from `place` on, which must exist.
    fn number_at(&self, place: usize) -> u32 {
        self.buffer[place..place + 4].iter().fold(0, |number, &byte| number << 8 | u32::from(byte))
    }
}

/// Of one message, in bytes.
#[derive(Debug, Clone, Copy)]
struct Lengths {
    message: usize,
    headers: usize,
}

/// The headers that this module reads.
#[derive(Debug, Clone, Copy, Default)]
struct Headers<'a> {
    /// Whether `:message-type` is `exception` (with a payload that the service's model describes) or `error` (which is
    /// all in the headers).
    is_failure: bool,
    /// The name of the event or the failure.
    name: &'a str,
    error_message: &'a str,
}

impl<'a> Headers<'a> {
    fn parse(mut rest: &'a [u8]) -> Result<Self, EventStreamError> {
        let mut headers = Headers::default();
        while !rest.is_empty() {
            let name_length = usize::from(take(&mut rest, 1)?[0]);
            let name = take(&mut rest, name_length)?;
            let Some(text) = take_value(&mut rest)? else { continue };
            match name {
                b":message-type" => headers.is_failure = matches!(text, "exception" | "error"),
                b":event-type" | b":exception-type" | b":error-code" => headers.name = text,
                b":error-message" => headers.error_message = text,
                _ => {}
            }
        }
        Ok(headers)
    }
}

/// Reads the value of a header; returns it if it is text. The length depends on the type.
fn take_value<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a str>, EventStreamError> {
    let kind = take(rest, 1)?[0];
    let length = match kind {
        // True and false.
        0 | 1 => 0,
        // Integers of 8, 16, 32 and 64 bits.
        2 => 1,
        3 => 2,
        4 => 4,
        5 => 8,
        // Bytes and text, each with its length before it.
        6 | 7 => {
            let length = take(rest, 2)?;
            usize::from(length[0]) << 8 | usize::from(length[1])
        }
        // Milliseconds since the epoch.
        8 => 8,
        // A UUID.
        9 => 16,
        _ => {
            return Err(EventStreamError::Malformed {
                what: "a header is of a type that is not known",
            });
        }
    };
    let value = take(rest, length)?;
    if kind != 7 {
        return Ok(None);
    }
    std::str::from_utf8(value)
        .map(Some)
        .map_err(|_| EventStreamError::Malformed { what: "the text of a header is no UTF-8" })
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], EventStreamError> {
    let (taken, left) = rest
        .split_at_checked(length)
        .ok_or(EventStreamError::Malformed { what: "a header is cut" })?;
    *rest = left;
    Ok(taken)
}

#[cfg(test)]
mod tests;
