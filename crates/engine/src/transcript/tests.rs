use myclaw_llm::{ImageContent, TextContent, ThinkingContent, ToolCall};

use super::*;

fn round_trip(message: &Message) -> Message {
    let row = message_to_row(message);
    let line = serde_json::to_string(&row).unwrap();
    row_to_message(myclaw_session_row(&line)).unwrap()
}

/// A row as the session room reads it back.
fn myclaw_session_row(line: &str) -> TranscriptMessage {
    let value: Value = serde_json::from_str(line).unwrap();
    TranscriptMessage {
        id: EntryId::from_text(value["id"].as_str().unwrap()),
        role: serde_json::from_value(value["role"].clone()).unwrap(),
        content: value["content"].as_str().unwrap().to_owned(),
        ts: value["ts"].as_u64().unwrap(),
        tool_call_id: value["toolCallId"].as_str().map(str::to_owned),
        meta: value["meta"].as_object().cloned().map(Meta::from),
    }
}

fn assistant() -> AssistantMessage {
    let call = ToolCall {
        id: "call_1".to_owned(),
        name: "bash".to_owned(),
        arguments: object([("command", json!("ls"))]),
        invalid_arguments: None,
        thought_signature: Some("sig".to_owned()),
    };
    AssistantMessage {
        content: vec![
            ContentBlock::Thinking(ThinkingContent {
                thinking: "hm".to_owned(),
                thinking_signature: Some("abc".to_owned()),
                redacted: false,
            }),
            ContentBlock::text("I look."),
            ContentBlock::ToolCall(call),
        ],
        api: Api::OpenaiCompletions,
        provider: "groq".to_owned(),
        model: "m".to_owned(),
        usage: Usage { input: 5, output: 7, total_tokens: 12, ..Usage::default() },
        stop_reason: StopReason::ToolUse,
        error_message: None,
        timestamp: 1_767_225_600_000,
    }
}

#[test]
fn an_assistant_message_keeps_every_block_and_its_state() {
    let message = Message::Assistant(assistant());
    assert_eq!(round_trip(&message), message);
    assert_eq!(message_to_row(&message).content, "I look.");
}

#[test]
fn a_user_message_ends_with_the_time_it_was_sent() {
    let message = Message::User(UserMessage::text("hello", 1_767_225_600_123));

    let Message::User(seen) = round_trip(&message) else { panic!("a user message") };

    assert_eq!(seen.content, [ContentBlock::text("hello")]);
    assert_eq!(seen.annotation.as_deref(), Some("<sent>2026-01-01T00:00:00.123Z</sent>"));
    assert_eq!(message_to_row(&message).content, "hello", "the row holds what was said");
}

#[test]
fn images_survive_in_user_messages_and_results() {
    let image = ContentBlock::Image(ImageContent {
        data: "AAAA".to_owned(),
        mime_type: "image/png".to_owned(),
    });
    let result = Message::ToolResult(ToolResultMessage {
        tool_call_id: "call_1".to_owned(),
        tool_name: "read".to_owned(),
        content: vec![ContentBlock::text("a picture"), image.clone()],
        is_error: false,
        details: None,
        timestamp: 3,
    });
    assert_eq!(round_trip(&result), result);

    let user =
        Message::User(UserMessage { content: vec![image.clone()], annotation: None, timestamp: 0 });
    let Message::User(seen) = round_trip(&user) else { panic!("a user message") };
    assert_eq!(seen.content[0], image);
}

#[test]
fn details_are_stored_and_no_model_sees_them() {
    let result = ToolResultMessage {
        tool_call_id: "call_1".to_owned(),
        tool_name: "edit".to_owned(),
        content: vec![ContentBlock::text("ok")],
        is_error: true,
        details: Some(json!({"diff": "+x"})),
        timestamp: 3,
    };

    let row = message_to_row(&Message::ToolResult(result.clone()));

    assert_eq!(row.meta.as_ref().unwrap().to_object()["details"], json!({"diff": "+x"}));
    assert_eq!(
        row_to_message(row),
        Some(Message::ToolResult(ToolResultMessage { details: None, ..result }))
    );
}

#[test]
fn rows_of_other_writers_get_the_fallbacks() {
    let row = TranscriptMessage::new(Role::Assistant, "hi", 9);
    let Some(Message::Assistant(message)) = row_to_message(row) else {
        panic!("an assistant message")
    };
    assert_eq!(
        message.content,
        [ContentBlock::Text(TextContent { text: "hi".to_owned(), ..TextContent::default() })]
    );
    assert_eq!((message.api, message.provider.as_str()), (Api::AnthropicMessages, "anthropic"));
    assert_eq!((message.model.as_str(), message.stop_reason), ("unknown", StopReason::Stop));

    assert_eq!(row_to_message(TranscriptMessage::new(Role::System, "note", 0)), None);
    assert_eq!(row_to_message(TranscriptMessage::new(Role::Tool, "no call id", 0)), None);
}
