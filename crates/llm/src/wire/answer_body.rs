//! The body of an answer: a stream of events, as text or binary, or, from servers that cannot stream, one JSON
//! document. Its first byte decides which. Content types do not, because servers confuse them.

use serde::de::IgnoredAny;

use super::{Decoder, Progress, cut_stream};
use crate::event_stream::{EventStreamDecoder, EventStreamError};
use crate::sse::{Frame, SseDecoder};
use crate::{ErrorClass, EventSink, ModelError, classify};

/// Largest answer that is not a stream, in bytes.
const MAX_DOCUMENT: usize = 64 * 1024 * 1024;

/// Most bytes of an invalid body that are shown.
const PREVIEW: usize = 200;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Decodes the body as it arrives. It has no connection and never waits. Pass every chunk to [`feed`](Self::feed), and
/// then call [`end`](Self::end), unless [`Progress::Ended`] came before; then [`Decoder::finish`] returns the message.
#[derive(Debug, Default)]
pub struct AnswerBody {
    shape: Shape,
    /// The first bytes of a byte order mark, of which the rest may still come.
    half_mark: Vec<u8>,
    /// Whether a whole byte order mark came, or something else.
    has_begun: bool,
    /// The beginning, kept until the first event; shown if there is none.
    preview: Vec<u8>,
    has_events: bool,
}

#[derive(Debug, Default)]
enum Shape {
    /// Nothing but white space so far.
    #[default]
    Unknown,
    Events(SseDecoder),
    /// Amazon's binary framing of events.
    Messages(EventStreamDecoder),
    Document(Vec<u8>),
}

impl AnswerBody {
    /// Takes bytes as they arrive. Returns the progress of the answer after the events in them; `None` if there was no
    /// event.
    ///
    /// # Errors
    /// An event reports a failure, or the body is invalid or too large. Nothing more can be read then.
    pub fn feed(
        &mut self,
        chunk: &[u8],
        decoder: &mut Decoder<'_>,
        sink: EventSink<'_>,
    ) -> Result<Option<Progress>, ModelError> {
        if !self.has_events {
            let room = PREVIEW - self.preview.len().min(PREVIEW);
            self.preview.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        if !matches!(self.shape, Shape::Unknown) {
            return self.add(chunk, decoder, sink);
        }
        let mut beginning = std::mem::take(&mut self.half_mark);
        beginning.extend_from_slice(chunk);
        if !self.has_begun && BYTE_ORDER_MARK.starts_with(&beginning) && beginning.len() < 3 {
            self.half_mark = beginning;
            return Ok(None);
        }
        let text = match self.has_begun {
            false => beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&beginning),
            true => &beginning,
        };
        self.has_begun = true;
        // The kind of body must not depend on where it was cut, so leading white space is never passed on.
        let text = text.trim_ascii_start();
        self.shape = shape_of(text);
        self.add(text, decoder, sink)
    }

    fn add(
        &mut self,
        chunk: &[u8],
        decoder: &mut Decoder<'_>,
        sink: EventSink<'_>,
    ) -> Result<Option<Progress>, ModelError> {
        match &mut self.shape {
            Shape::Unknown => Ok(None),
            Shape::Events(events) => {
                events.push(chunk);
                self.drain(decoder, sink)
            }
            Shape::Messages(messages) => {
                messages.push(chunk);
                self.drain(decoder, sink)
            }
            Shape::Document(document) => {
                if document.len() + chunk.len() > MAX_DOCUMENT {
                    let message = format!("the answer is larger than {MAX_DOCUMENT} bytes");
                    return Err(ModelError::new(ErrorClass::Unknown, message));
                }
                document.extend_from_slice(chunk);
                Ok(None)
            }
        }
    }

    /// The body is over.
    ///
    /// # Errors
    /// The rest reports a failure or is invalid, or there was no answer in the body.
    pub fn end(
        &mut self,
        decoder: &mut Decoder<'_>,
        sink: EventSink<'_>,
    ) -> Result<(), ModelError> {
        match &mut self.shape {
            Shape::Unknown if !self.half_mark.is_empty() => Err(self.no_events()),
            Shape::Unknown => Err(ModelError::new(
                ErrorClass::Timeout,
                "answered 200 with an empty body: try again, or check the base URL",
            )),
            Shape::Document(document) => {
                let document = std::mem::take(document);
                let text = String::from_utf8_lossy(&document);
                if classify::is_web_page(&text) {
                    return Err(classify::stream_error(&text));
                }
                decoder.feed_whole(&text, sink)
            }
            Shape::Events(events) => {
                events.end();
                self.drain(decoder, sink)?;
                if self.has_events { Ok(()) } else { Err(self.no_events()) }
            }
            // A message that was cut does not end an answer; the decoder reports that.
            Shape::Messages(_) => Ok(()),
        }
    }

    fn drain(
        &mut self,
        decoder: &mut Decoder<'_>,
        sink: EventSink<'_>,
    ) -> Result<Option<Progress>, ModelError> {
        let reached = match &mut self.shape {
            Shape::Events(events) => read_frames(events, decoder, sink),
            Shape::Messages(messages) => read_frames(messages, decoder, sink),
            Shape::Unknown | Shape::Document(_) => Ok(None),
        }?;
        self.has_events |= reached.is_some();
        Ok(reached)
    }

    fn no_events(&self) -> ModelError {
        let compression = match self.preview.as_slice() {
            [0x1F, 0x8B, ..] => Some("gzip"),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Some("zstd"),
            _ => None,
        };
        if let Some(name) = compression {
            let message = format!(
                "answered with a body compressed by {name}, which was not asked for: a proxy in between compresses it"
            );
            return ModelError::new(ErrorClass::Unknown, message);
        }
        let text = classify::one_line(&String::from_utf8_lossy(&self.preview), PREVIEW);
        let message = format!(
            "answered with something that is not a stream of events ({text:?}): check the base URL"
        );
        ModelError::new(ErrorClass::Unknown, message)
    }
}

/// A decoder of a framing.
trait Frames {
    /// The next whole frame.
    fn next(&mut self) -> Result<Option<Frame<'_>>, ModelError>;
}

impl Frames for SseDecoder {
    fn next(&mut self) -> Result<Option<Frame<'_>>, ModelError> {
        self.next_frame().map_err(|error| ModelError::new(ErrorClass::Unknown, error.to_string()))
    }
}

impl Frames for EventStreamDecoder {
    fn next(&mut self) -> Result<Option<Frame<'_>>, ModelError> {
        self.next_frame().map_err(stream_failure)
    }
}

/// Reads the complete frames. Returns the progress of the answer after them; `None` if there was no frame.
fn read_frames(
    frames: &mut impl Frames,
    decoder: &mut Decoder<'_>,
    sink: EventSink<'_>,
) -> Result<Option<Progress>, ModelError> {
    let mut reached = None;
    while let Some(frame) = frames.next()? {
        let progress = match decoder.feed(&frame, sink) {
            // Half an event at the end is not an invalid event: the stream was cut there.
            Err(_) if !frame.terminated && !is_json(&frame.data) => return Err(cut_stream()),
            outcome => outcome?,
        };
        // A complete message may still grow; a sign of life changes nothing.
        reached = match progress {
            Progress::KeepAlive => reached.or(Some(progress)),
            _ => Some(progress),
        };
        if progress == Progress::Ended {
            break;
        }
    }
    Ok(reached)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn stream_failure(error: EventStreamError) -> ModelError {
    let class = match error {
        EventStreamError::Reported { code, body } => {
            return classify::reported_error(&code, &body);
        }
        // A retry may help if the stream was damaged in transit.
        EventStreamError::BadChecksum => ErrorClass::Timeout,
        EventStreamError::MessageTooLarge { .. }
        | EventStreamError::HeadersTooLarge { .. }
        | EventStreamError::Malformed { .. } => ErrorClass::Unknown,
    };
    ModelError::new(class, error.to_string())
}

fn shape_of(text: &[u8]) -> Shape {
    match text.first() {
        None => Shape::Unknown,
        // The highest byte of the first message's length, which is below 16 MiB. No text begins so.
        Some(0) => Shape::Messages(EventStreamDecoder::default()),
        Some(b'{' | b'[' | b'<') => Shape::Document(Vec::new()),
        Some(_) => Shape::Events(SseDecoder::default()),
    }
}
