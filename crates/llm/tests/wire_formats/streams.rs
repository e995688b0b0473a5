//! Recorded streams through the decoders: whole messages, and the same message however the bytes are cut.

use myclaw_llm::wire::Decoder;
use myclaw_llm::{Api, ContentBlock, ErrorClass, StopReason, ThinkingContent, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::decoding::*;
use crate::formats::{FORMATS, Framing, format};
use crate::support::model;

#[test]
fn an_anthropic_answer_with_thinking_and_calls() {
    let (message, events) = decode(Api::AnthropicMessages, ANTHROPIC);
    let message = message.unwrap();
    assert_eq!(
        message.content,
        [
            thinking(
                "The user wants two files. I read \"both\" – at once 🦀.",
                Some("EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk=")
            ),
            ContentBlock::Thinking(ThinkingContent {
                thinking: String::new(),
                thinking_signature: Some(
                    "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw".to_owned()
                ),
                redacted: true,
            }),
            ContentBlock::text("I'll read both.\n"),
            tool_call(
                "toolu_01T1x1fJ34qAmk2tNTrN7Up6",
                "read",
                json!({"path": "notes.md", "limit": 20})
            ),
            tool_call("toolu_01A09q90qw90lq917835lq9", "ls", json!({})),
        ]
    );
    assert_eq!(
        (message.stop_reason, message.timestamp, message.api),
        (StopReason::ToolUse, 42, Api::AnthropicMessages)
    );
    let counters =
        Usage { input: 25, output: 89, cache_read: 2048, cache_write: 310, ..Usage::default() };
    let price = model(Api::AnthropicMessages, "").price;
    assert_eq!(message.usage, counters.priced(price));
    assert_eq!(message.usage.total_tokens, 2472);
    assert_matches_events(&message, &events);
}

#[test]
fn an_openai_answer_with_calls_and_counters() {
    let (message, events) = decode(Api::OpenaiCompletions, OPENAI);
    let message = message.unwrap();
    assert_eq!(
        message.content,
        [
            ContentBlock::text("Let me look – \"now\" 🦀.\n"),
            tool_call(
                "call_DdmO9pD3xa9XTPNJ32zg2hcA",
                "read",
                json!({"path": "notes.md", "limit": 20})
            ),
            tool_call("call_hcAxxDdmO9pD3xa9XTPNJ32z", "ls", json!({})),
        ]
    );
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    let counters =
        Usage { input: 335, output: 89, cache_read: 2048, reasoning: 64, ..Usage::default() };
    assert_eq!(message.usage, counters.priced(model(Api::OpenaiCompletions, "").price));
    assert_matches_events(&message, &events);
}

#[test]
fn reasoning_is_thinking_and_counters_may_come_in_a_choice() {
    let (message, events) = decode(Api::OpenaiCompletions, OPENROUTER);
    let message = message.unwrap();
    assert_eq!(message.content, [thinking("Two plus two.", None), ContentBlock::text("Four.")]);
    assert_eq!((message.usage.input, message.usage.output, message.usage.reasoning), (14, 11, 6));
    assert_matches_events(&message, &events);
}

#[test]
fn calls_without_numbers_and_ids_are_kept_apart() {
    let message = decode(Api::OpenaiCompletions, OLLAMA).0.unwrap();
    assert_eq!(
        message.content,
        [
            thinking("Two files.", None),
            tool_call("call_0", "read", json!({"path": "a"})),
            tool_call("made up", "read", json!({"path": "b"})),
        ]
    );
    assert_eq!(message.stop_reason, StopReason::ToolUse, "whatever the server called it");
}

#[test]
fn the_bytes_may_be_cut_into_chunks_of_any_size() {
    for (api, stream) in recorded() {
        let (whole, events) = decode(api, stream);
        for size in 1..=64 {
            let (message, chunked) = decode_chunks(api, &[], stream.chunks(size));
            assert_eq!(message, whole, "chunks of {size}");
            assert_eq!(chunked.len(), events.len());
        }
    }
}

#[test]
fn lines_may_end_in_any_way_and_data_may_take_several_lines() {
    for (api, stream) in recorded() {
        if format(api).framing == Framing::Binary {
            continue;
        }
        let whole = decode(api, stream).0;
        let stream = str::from_utf8(stream).unwrap();
        for line_end in ["\r\n", "\r"] {
            assert_eq!(decode(api, stream.replace('\n', line_end)).0, whole);
        }
        let several_lines = over_several_lines(stream);
        assert_ne!(several_lines, stream);
        assert_eq!(decode(api, &several_lines).0, whole);
        assert_eq!(decode(api, format!("\u{FEFF}{stream}")).0, whole);
        assert_eq!(decode(api, stream.trim_end()).0, whole, "without the last blank line");
    }
}

/// The same events, their JSON laid out over several lines.
fn over_several_lines(stream: &str) -> String {
    let laid_out = |line: &str| {
        let data = line.strip_prefix("data: ")?;
        let value: Value = serde_json::from_str(data).ok()?;
        let lines = format!("{value:#}").lines().map(|line| format!("data: {line}\n")).collect();
        Some(lines)
    };
    stream.lines().map(|line| laid_out(line).unwrap_or_else(|| format!("{line}\n"))).collect()
}

#[test]
fn a_stream_cut_at_any_byte_gives_the_whole_message_or_one_error() {
    for (api, stream) in recorded() {
        let whole = decode(api, stream).0.unwrap();
        for cut in 0..stream.len() {
            match decode_chunks(api, &[], [&stream[..cut]]).0 {
                Ok(message) => {
                    assert_eq!(message.content, whole.content, "cut at {cut}");
                    assert_eq!(message.stop_reason, whole.stop_reason, "cut at {cut}");
                }
                Err(error) => assert_eq!(error.class, ErrorClass::Timeout, "cut at {cut}: {error}"),
            }
        }
    }
}

#[test]
fn an_answer_that_is_no_stream_is_the_same_message() {
    for format in FORMATS {
        let body = (format.document)();
        let model = model(format.api, "http://localhost");
        let mut events = Vec::new();
        let mut decoder = Decoder::new(&model, &[], 42).unwrap();
        decoder.feed_whole(&body.to_string(), &mut |event| events.push(event)).unwrap();
        let message = decoder.finish(&mut |event| events.push(event)).unwrap();
        assert_eq!(message.content, (format.document_content)());
        assert_eq!(
            (message.usage.input, message.usage.output, message.stop_reason),
            (4, 2, StopReason::ToolUse)
        );
        assert_matches_events(&message, &events);

        let mut decoder = Decoder::new(&model, &[], 42).unwrap();
        assert!(decoder.feed_whole("{}", &mut |_| {}).is_err());
    }
}

#[test]
fn what_has_arrived_can_be_had_at_any_time() {
    for (api, stream) in recorded() {
        let model = model(api, "http://localhost");
        let whole = decode(api, stream).0.unwrap();
        let mut decoder = Decoder::new(&model, &[], 42).unwrap();
        assert_eq!(decoder.partial(StopReason::Aborted, "aborted"), None);
        let mut visible = false;
        for_each_frame(format(api).framing, [stream], |frame| {
            decoder.feed(frame, &mut |event| visible |= event.is_visible_output())?;
            assert_eq!(decoder.has_visible_output(), visible);
            let Some(partial) = decoder.partial(StopReason::Aborted, "aborted") else {
                return Ok(());
            };
            assert_eq!(
                (partial.stop_reason, partial.error_message.as_deref()),
                (StopReason::Aborted, Some("aborted"))
            );
            assert!(partial.content.len() <= whole.content.len());
            assert!(whole.text().starts_with(&partial.text()));
            Ok(())
        })
        .unwrap();
        assert!(visible);
    }
}

proptest! {
    /// Whatever a server sends, there is a message or an error, and never a panic.
    #[test]
    fn damaged_streams_never_panic(which in any::<prop::sample::Index>(), place in 0.0_f64..1.0, bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        let (api, stream) = *which.get(&recorded());
        let mut damaged = stream.to_vec();
        let start = (place * stream.len() as f64) as usize;
        let end = (start + bytes.len()).min(damaged.len());
        damaged.splice(start..end, bytes);
        let _ = decode_chunks(api, &[], [damaged.as_slice()]);
    }
}
