//! The body of an answer, which may be a stream of events, as text or binary, or, behind servers that cannot stream,
//! one JSON document. Its first byte decides; content types do not, since servers label either as the other.

use serde::de::IgnoredAny;

use super::{Decoder, Progress, cut_stream};
use crate::event_stream::{EventStreamDecoder, EventStreamError};
use crate::sse::{Frame, SseDecoder};
use crate::{ErrorClass, EventSink, ModelError, classify};

/// Largest answer that is no stream, in bytes.
const MAX_DOCUMENT: usize = 64 * 1024 * 1024;

/// How much of a body that makes no sense is shown, in bytes.
const PREVIEW: usize = 200;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Reads the body as it comes: it holds no connection and waits for nothing. Give it every chunk with
/// [`feed`](Self::feed), and then [`end`](Self::end), unless [`Progress::Ended`] came before; then
/// [`Decoder::finish`] gives the message.
#[derive(Debug, Default)]
pub struct AnswerBody {
    shape: Shape,
    /// The first bytes of a byte order mark, of which the rest may still come.
    half_mark: Vec<u8>,
    /// Whether something came that is no byte order mark, or the whole of one.
    has_begun: bool,
    /// The beginning, kept until there is an event: shown if there never is.
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
    /// Takes bytes as they came. Gives how far the answer is after the events in them, if there was one.
    ///
    /// # Errors
    /// When an event reports a failure, or the body makes no sense or is too large. Nothing more can be read then.
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
        // What a body begins with must not depend on where it was cut, so leading white space is never passed on.
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
    /// When what was left of it reports a failure or makes no sense, or when there was no answer in it.
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
            // A message that was cut is no answer's end, and the decoder says so.
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
            "answered with something that is no stream of events ({text:?}): check the base URL"
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

/// Reads the frames that are whole. Gives how far the answer is after them, if there was one.
fn read_frames(
    frames: &mut impl Frames,
    decoder: &mut Decoder<'_>,
    sink: EventSink<'_>,
) -> Result<Option<Progress>, ModelError> {
    let mut reached = None;
    while let Some(frame) = frames.next()? {
        let progress = match decoder.feed(&frame, sink) {
            // Half an event at the end is not a bad event: the stream was cut there.
            Err(_) if !frame.terminated && !is_json(&frame.data) => return Err(cut_stream()),
            outcome => outcome?,
        };
        // A message that was complete may go on; a sign of life changes nothing.
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
        // What was damaged on the way may arrive whole the next time.
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
