use proptest::prelude::*;

use super::*;

type Event = (String, String, bool);

fn drain(decoder: &mut SseDecoder, events: &mut Vec<Event>) -> Result<(), SseError> {
    while let Some(frame) = decoder.next_frame()? {
        events.push((frame.event.into_owned(), frame.data.into_owned(), frame.terminated));
    }
    Ok(())
}

fn decode_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut decoder = SseDecoder::default();
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        drain(&mut decoder, &mut events).unwrap();
    }
    decoder.end();
    drain(&mut decoder, &mut events).unwrap();
    events
}

fn decode(bytes: &[u8]) -> Vec<Event> {
    decode_chunks([bytes])
}

fn event(name: &str, data: &str) -> Event {
    (name.to_owned(), data.to_owned(), true)
}

#[test]
fn reads_names_and_data() {
    let bytes = b"event: ping\ndata: {\"a\":1}\n\ndata:no space\n\ndata:  two spaces\n\n";
    assert_eq!(
        decode(bytes),
        [event("ping", "{\"a\":1}"), event("", "no space"), event("", " two spaces")]
    );
}

#[test]
fn takes_every_kind_of_line_end() {
    for line_end in ["\n", "\r", "\r\n"] {
        let text = "event: x\ndata: one\ndata: two\n\ndata: three\n\n".replace('\n', line_end);
        assert_eq!(
            decode(text.as_bytes()),
            [event("x", "one\ntwo"), event("", "three")],
            "{line_end:?}"
        );
    }
}

#[test]
fn a_split_crlf_is_one_line_end() {
    let events =
        decode_chunks([b"data: a\r".as_slice(), b"\n", b"data: b\r", b"\n\r", b"\ndata: c\n\n"]);
    assert_eq!(events, [event("", "a\nb"), event("", "c")]);
}

#[test]
fn passes_over_comments_and_other_fields() {
    let bytes = b": keep-alive\n\n:\n\nid: 7\nretry: 10\ndata: x\n: inside\ndata\n\nevent: lost\n\ndata: y\n\n";
    assert_eq!(decode(bytes), [event("", "x\n"), event("", "y")]);
}

#[test]
fn skips_a_byte_order_mark_once() {
    assert_eq!(decode(b"\xEF\xBB\xBFdata: a\n\n"), [event("", "a")]);
    assert_eq!(decode_chunks([b"\xEF".as_slice(), b"\xBB", b"\xBFdata: a\n\n"]), [event("", "a")]);
    assert_eq!(decode(b"data: a\n\n\xEF\xBB\xBFdata: b\n\n"), [event("", "a")]);
}

#[test]
fn gives_a_last_event_without_its_blank_line() {
    assert_eq!(
        decode(b"data: a\n\ndata: b\n"),
        [event("", "a"), (String::new(), "b".to_owned(), false)]
    );
    assert_eq!(decode(b"event: e\ndata: b"), [("e".to_owned(), "b".to_owned(), false)]);
    assert_eq!(decode(b"data: a\n\nevent: e\n"), [event("", "a")]);
    assert_eq!(decode(b""), []);
}

#[test]
fn replaces_bytes_that_are_no_utf8_and_goes_on() {
    assert_eq!(decode(b"data: a\xFFb\n\ndata: c\n\n"), [event("", "a\u{FFFD}b"), event("", "c")]);
}

#[test]
fn refuses_an_event_above_the_limit_before_it_is_whole() {
    let mut decoder = SseDecoder::with_max_event_bytes(32);
    decoder.push(b"data: short\n\n");
    assert!(decoder.next_frame().unwrap().is_some());
    decoder.push(b"data: 0123456789");
    assert_eq!(decoder.next_frame(), Ok(None));
    decoder.push(b"0123456789abcdefg");
    assert_eq!(decoder.next_frame(), Err(SseError::EventTooLarge { limit: 32 }));
}

#[test]
fn comments_without_end_never_fill_the_buffer() {
    let mut decoder = SseDecoder::with_max_event_bytes(64);
    for _ in 0..1000 {
        decoder.push(b": keep-alive\n\n");
        assert_eq!(decoder.next_frame(), Ok(None));
    }
    assert!(decoder.buffer.len() < 64);
}

/// 8 MiB in one line, a kibibyte at a time: a decoder that scans from the start of the line again would look at
/// 32 GiB.
#[test]
fn a_long_line_in_small_chunks_takes_linear_time() {
    let mut decoder = SseDecoder::default();
    decoder.push(b"data: ");
    for _ in 0..8 * 1024 {
        decoder.push(&[b'x'; 1024]);
        assert_eq!(decoder.next_frame(), Ok(None));
    }
    decoder.push(b"\n\n");
    assert_eq!(decoder.next_frame().unwrap().unwrap().data.len(), 8 * 1024 * 1024);
}

#[test]
fn the_last_id_and_the_pause_are_kept_for_a_client_that_connects_again() {
    let mut decoder = SseDecoder::default();
    decoder.push(b"id: one\nretry: 500\ndata: x\n\nid: two\n\nretry: soon\nid: a\0b\ndata: y\n\n");
    while decoder.next_frame().unwrap().is_some() {}
    assert_eq!((&*decoder.last_id(), decoder.retry()), ("two", Some(Duration::from_millis(500))));
}

#[test]
fn a_single_data_line_is_borrowed() {
    let mut decoder = SseDecoder::default();
    decoder.push(b"event: e\ndata: x\n\n");
    let frame = decoder.next_frame().unwrap().unwrap();
    assert!(matches!((frame.event, frame.data), (Cow::Borrowed("e"), Cow::Borrowed("x"))));
}

fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"data: ".to_vec()),
        Just(b"data:".to_vec()),
        Just(b"event: e".to_vec()),
        Just(b":".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        Just(b"\xC3".to_vec()),
        "[a-z:\u{e9} ]{0,6}".prop_map(String::into_bytes),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn chunks_do_not_matter(bytes in stream_bytes(), size in 1_usize..64) {
        prop_assert_eq!(decode_chunks(bytes.chunks(size)), decode(&bytes));
    }
}
