use serde_json::json;

use super::*;
use crate::wire::testing::model;
use crate::{ContentBlock, InputKind, TextContent, ThinkingContent, ToolCall};

/// The message after `steps`.
fn message(steps: impl FnOnce(&mut NumberedBlocks<'_>, EventSink<'_>)) -> Vec<ContentBlock> {
    let model = model(&[InputKind::Text]);
    let mut blocks = NumberedBlocks::new(MessageBuilder::new(&model, &[], 1));
    let sink: EventSink<'_> = &mut |_| {};
    steps(&mut blocks, sink);
    blocks.finish(sink).unwrap().content
}

fn call(arguments: serde_json::Value) -> ContentBlock {
    let serde_json::Value::Object(arguments) = arguments else { panic!("no object: {arguments}") };
    ContentBlock::ToolCall(ToolCall {
        id: "c".to_owned(),
        name: "ls".to_owned(),
        arguments,
        invalid_arguments: None,
        thought_signature: None,
    })
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

#[test]
fn blocks_grow_side_by_side() {
    let content = message(|blocks, sink| {
        blocks.append(0, Kind::Text, "a", sink);
        blocks.append(1, Kind::Thinking, "x", sink);
        blocks.append_signature(1, "s", sink);
        blocks.append(0, Kind::Text, "b", sink);
        blocks.append_signature(1, "t", sink);
        blocks.stop(0, sink);
        blocks.append(0, Kind::Text, "c", sink);
    });
    let thinking = ThinkingContent {
        thinking: "x".to_owned(),
        thinking_signature: Some("st".to_owned()),
        redacted: false,
    };
    let expected =
        [ContentBlock::text("ab"), ContentBlock::Thinking(thinking), ContentBlock::text("c")];
    assert_eq!(content, expected);
}

#[test]
fn a_block_of_another_kind_takes_the_place_of_one_that_was_not_stopped() {
    let content = message(|blocks, sink| {
        blocks.append(0, Kind::Text, "a", sink);
        // A piece of a call that was not announced is none, and ends nothing.
        blocks.append(0, Kind::Call, "{}", sink);
        blocks.append(0, Kind::Text, "b", sink);
        blocks.start_call(0, ("c", "ls"), None, sink);
        blocks.append(0, Kind::Text, "d", sink);
    });
    let text = |text: &str| {
        ContentBlock::Text(TextContent { text: text.to_owned(), ..TextContent::default() })
    };
    assert_eq!(content, [text("ab"), call(json!({})), text("d")]);
}

#[test]
fn announced_arguments_count_where_no_pieces_follow() {
    for (announced, pieces, expected) in [
        (r#"{"path":"a"}"#, &[][..], json!({"path": "a"})),
        (r#"{"path":"a"}"#, &["{\"path\"", ":\"b\"}"], json!({"path": "b"})),
        ("{}", &["{\"path\":\"b\"}"], json!({"path": "b"})),
        ("null", &[], json!({})),
    ] {
        let announced = raw(announced);
        let content = message(|blocks, sink| {
            blocks.start_call(0, ("c", "ls"), Some(&announced), sink);
            for piece in pieces {
                blocks.append(0, Kind::Call, piece, sink);
            }
        });
        assert_eq!(content, [call(expected)], "{announced} {pieces:?}");
    }
}

#[test]
fn redacted_thinking_may_come_in_pieces() {
    let redacted = |data: &str| {
        ContentBlock::Thinking(ThinkingContent {
            thinking: String::new(),
            thinking_signature: Some(data.to_owned()),
            redacted: true,
        })
    };
    for (pieces, whole) in [
        (&["AQID"][..], "AQID"),
        (&["AQID", "BAU="], "AQIDBAU="),
        // Each piece is padded for itself: one byte, two bytes, three.
        (&["AQ==", "AgM=", "", "BAUG"], "AQIDBAUG"),
        (&["AQ==", "Ag=="], "AQI="),
        // No Base64: whatever it is, it stays together.
        (&["é=", "x"], "é=x"),
    ] {
        let content = message(|blocks, sink| {
            for piece in pieces {
                blocks.append_redacted(0, piece, sink);
            }
            blocks.append_redacted(1, "BBBB", sink);
        });
        assert_eq!(content, [redacted(whole), redacted("BBBB")], "{pieces:?}");
    }
}

#[test]
fn what_is_of_no_use_is_dropped_with_all_its_deltas() {
    let content = message(|blocks, sink| {
        blocks.pass_over(0, sink);
        blocks.append(0, Kind::Text, "lost", sink);
        blocks.append_signature(0, "lost", sink);
        blocks.start_call(1, ("c", ""), None, sink);
        blocks.append(1, Kind::Call, "{}", sink);
        blocks.stop(0, sink);
        blocks.append(0, Kind::Text, "kept", sink);
    });
    assert_eq!(content, [ContentBlock::text("kept")]);
}

#[test]
fn a_full_window_fails_only_before_the_answer() {
    let model = model(&[InputKind::Text]);
    for begun in [false, true] {
        let mut blocks = NumberedBlocks::new(MessageBuilder::new(&model, &[], 1));
        let sink: EventSink<'_> = &mut |_| {};
        if begun {
            blocks.append(0, Kind::Text, "Well", sink);
        }
        blocks.take_stop_reason(WINDOW_EXCEEDED, StopReason::Length);
        match blocks.finish(sink) {
            Ok(message) => assert!(begun && message.stop_reason == StopReason::Length),
            Err(error) => assert!(!begun && error.class == ErrorClass::ContextOverflow),
        }
    }
}
