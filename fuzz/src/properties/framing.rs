//! The two framings: server-sent events, and Amazon's event streams.

use myclaw_llm::event_stream::{EventStreamDecoder, MAX_MESSAGE_BYTES};
use myclaw_llm::sse::{MAX_EVENT_BYTES, SseDecoder};

use super::pieces::cuts;

/// A limit on events that small inputs reach.
const SMALL_EVENT: usize = 48;

/// A name, data, and whether the end was there.
type Event = (String, String, bool);

/// Checks that server-sent events come out as the standard says, however the bytes are cut.
///
/// # Panics
/// When they do not.
pub fn server_sent_events(input: &[u8]) {
    let whole = read_text(&[input], MAX_EVENT_BYTES);
    assert_eq!(whole, (by_the_standard(input), None));
    let small = read_text(&[input], SMALL_EVENT);
    for cut in cuts(input) {
        assert_eq!(read_text(&cut, MAX_EVENT_BYTES), whole);
        assert_eq!(read_text(&cut, SMALL_EVENT), small);
    }
    assert!(small.0.iter().all(|(name, data, _)| name.len() + data.len() <= 3 * SMALL_EVENT));
}

fn read_text(pieces: &[&[u8]], limit: usize) -> (Vec<Event>, Option<String>) {
    let mut decoder = SseDecoder::with_max_event_bytes(limit);
    let mut events = Vec::new();
    for piece in pieces.iter().map(Some).chain([None]) {
        match piece {
            Some(piece) => decoder.push(piece),
            None => decoder.end(),
        }
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    let (name, data) = (frame.event.into_owned(), frame.data.into_owned());
                    events.push((name, data, frame.terminated));
                }
                Ok(None) => break,
                Err(error) => return (events, Some(error.to_string())),
            }
        }
    }
    (events, None)
}

/// The same, read slowly, line by line.
fn by_the_standard(input: &[u8]) -> Vec<Event> {
    let mut rest = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
    let mut events = Vec::new();
    let mut name: &[u8] = b"";
    let mut data: Option<Vec<u8>> = None;
    let mut take = |name: &mut &[u8], data: &mut Option<Vec<u8>>, terminated| {
        let name = String::from_utf8_lossy(std::mem::take(name)).into_owned();
        if let Some(data) = data.take() {
            events.push((name, String::from_utf8_lossy(&data).into_owned(), terminated));
        }
    };
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        rest = after.strip_prefix(b"\r\n").unwrap_or(after.get(1..).unwrap_or_default());
        if line.is_empty() {
            take(&mut name, &mut data, true);
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match (field, &mut data) {
            (b"event", _) => name = value,
            (b"data", None) => data = Some(value.to_vec()),
            (b"data", Some(data)) => data.extend([b"\n", value].concat()),
            _ => {}
        }
    }
    take(&mut name, &mut data, false);
    events
}

/// Checks that the messages of an event stream do not depend on how the bytes are cut, and hold no more than those.
///
/// # Panics
/// When they do.
pub fn event_stream(input: &[u8]) {
    let whole = read_messages(&[input]);
    for cut in cuts(input) {
        assert_eq!(read_messages(&cut), whole);
    }
    // A byte that is no UTF-8 becomes a replacement character of three.
    let held: usize = whole.0.iter().map(|(name, data)| name.len() + data.len()).sum();
    assert!(held <= 3 * input.len(), "{held} bytes from {}", input.len());
    assert!(whole.0.iter().all(|(_, data)| data.len() <= 3 * MAX_MESSAGE_BYTES));
}

fn read_messages(pieces: &[&[u8]]) -> (Vec<(String, String)>, Option<String>) {
    let mut decoder = EventStreamDecoder::default();
    let mut messages = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    messages.push((frame.event.into_owned(), frame.data.into_owned()));
                }
                Ok(None) => break,
                Err(error) => return (messages, Some(format!("{error:?}"))),
            }
        }
    }
    (messages, None)
}
