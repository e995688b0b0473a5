use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// AWS's own test vectors; see the SOURCE.md next to them.
const VECTORS: &str = include_str!("../../tests/data/aws/event_streams.json");

const RECORDED: &[u8] =
    include_bytes!("../../tests/data/recorded/bedrock_converse/text_and_tool_call.bin");

#[derive(Deserialize)]
struct Vector {
    name: String,
    succeeds: bool,
    encoded: String,
    payload: Option<String>,
}

type Event = (String, String);

fn decode<'a>(
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Event>, Result<(), EventStreamError>) {
    let mut decoder = EventStreamDecoder::default();
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        loop {
            match decoder.next_frame() {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    assert!(frame.terminated);
                    events.push((frame.event.into_owned(), frame.data.into_owned()));
                }
                Err(error) => return (events, Err(error)),
            }
        }
    }
    (events, Ok(()))
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = |start| u8::from_str_radix(&text[start..start + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

/// A message with these headers, each of text.
fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(name.len() as u8);
        block.extend_from_slice(name.as_bytes());
        block.push(7);
        block.extend_from_slice(&(value.len() as u16).to_be_bytes());
        block.extend_from_slice(value.as_bytes());
    }
    with_checksums(&block, payload)
}

fn with_checksums(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = (PRELUDE + headers.len() + payload.len() + TRAILER) as u32;
    let mut bytes = total.to_be_bytes().to_vec();
    bytes.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend_from_slice(headers);
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

#[test]
fn amazons_own_vectors() {
    let vectors: Vec<Vector> = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(vectors.len(), 9);
    for vector in vectors {
        let (events, end) = decode([from_hex(&vector.encoded).as_slice()]);
        if vector.succeeds {
            assert_eq!(end, Ok(()), "{}", vector.name);
            assert_eq!(events, [(String::new(), vector.payload.unwrap())], "{}", vector.name);
        } else {
            assert_eq!(
                (events, end),
                (vec![], Err(EventStreamError::BadChecksum)),
                "{}",
                vector.name
            );
        }
    }
}

#[test]
fn a_recorded_stream_is_the_same_however_it_is_cut() {
    let (whole, end) = decode([RECORDED]);
    assert_eq!(end, Ok(()));
    let names: Vec<&str> = whole.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..2], ["messageStart", "contentBlockDelta"]);
    assert_eq!(names[names.len() - 2..], ["messageStop", "metadata"]);
    for size in 1..=64 {
        assert_eq!(decode(RECORDED.chunks(size)), (whole.clone(), Ok(())), "chunks of {size}");
    }
    let ends = ends();
    for cut in 0..RECORDED.len() {
        let before = ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(decode([&RECORDED[..cut]]), (whole[..before].to_vec(), Ok(())), "cut at {cut}");
    }
}

/// Where each message of the recorded stream ends.
fn ends() -> Vec<usize> {
    let mut ends = Vec::new();
    let mut place = 0;
    while place < RECORDED.len() {
        place += u32::from_be_bytes(RECORDED[place..place + 4].try_into().unwrap()) as usize;
        ends.push(place);
    }
    ends
}

#[test]
fn a_flipped_byte_is_always_noticed() {
    let (whole, _) = decode([RECORDED]);
    let mut damaged = RECORDED.to_vec();
    for place in 0..damaged.len() {
        damaged[place] ^= 0x20;
        let (events, end) = decode([damaged.as_slice()]);
        assert_eq!(end, Err(EventStreamError::BadChecksum), "byte {place}");
        assert_eq!(events, whole[..events.len()]);
        damaged[place] ^= 0x20;
    }
}

#[test]
fn what_the_server_reports_is_an_error_with_its_name() {
    for (headers, payload, code, body) in [
        (
            &[(":message-type", "exception"), (":exception-type", "throttlingException")][..],
            r#"{"message":"slow"}"#,
            "throttlingException",
            r#"{"message":"slow"}"#,
        ),
        (
            &[(":message-type", "error"), (":error-code", "Gone"), (":error-message", "bye")],
            "",
            "Gone",
            "bye",
        ),
    ] {
        let first = message(&[(":message-type", "event"), (":event-type", "a")], b"{}");
        let bytes = [first, message(headers, payload.as_bytes())].concat();
        let error = EventStreamError::Reported { code: code.to_owned(), body: body.to_owned() };
        assert_eq!(
            decode([bytes.as_slice()]),
            (vec![("a".to_owned(), "{}".to_owned())], Err(error))
        );
    }
}

#[test]
fn sizes_are_bounded_before_a_message_is_whole() {
    let prelude = |total: u32, headers: u32| {
        let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        decode([bytes.as_slice()]).1
    };
    assert_eq!(prelude(1 << 24, 0), Ok(()), "the largest");
    assert_eq!(
        prelude((1 << 24) + 1, 0),
        Err(EventStreamError::MessageTooLarge { limit: MAX_MESSAGE_BYTES })
    );
    assert_eq!(
        prelude(1 << 20, 128 * 1024 + 1),
        Err(EventStreamError::HeadersTooLarge { limit: MAX_HEADER_BYTES })
    );
    let too_short = EventStreamError::Malformed { what: "it is shorter than its headers" };
    for (total, headers) in [(0, 0), (15, 0), (20, 5)] {
        assert_eq!(prelude(total, headers), Err(too_short.clone()), "{total}, {headers}");
    }
}

#[test]
fn headers_that_make_no_sense_are_refused() {
    for (headers, what) in [
        (&b"\x01"[..], "a header is cut"),
        (b"\x01a\x07\x00\x05abc", "a header is cut"),
        (b"\x01a\x0a", "a header is of a type that is not known"),
        (b"\x01a\x07\x00\x01\xff", "the text of a header is no UTF-8"),
    ] {
        let bytes = with_checksums(headers, b"{}");
        assert_eq!(decode([bytes.as_slice()]).1, Err(EventStreamError::Malformed { what }));
    }
}

proptest! {
    #[test]
    fn any_bytes_end_without_a_panic(
        headers in prop::collection::vec(any::<u8>(), 0..40),
        payload in prop::collection::vec(any::<u8>(), 0..40),
        noise in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let bytes = [with_checksums(&headers, &payload), noise].concat();
        let whole = decode([bytes.as_slice()]);
        prop_assert_eq!(decode(bytes.chunks(1)), whole);
    }
}
