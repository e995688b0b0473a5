use myclaw_llm::{
    Api, AssistantMessage, ContentBlock, StopReason, ToolResultMessage, Usage, UserMessage,
};
use serde_json::json;

use super::*;

fn call(id: &str, path: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        arguments: json!({"path": path}).as_object().unwrap().clone(),
        invalid_arguments: None,
        thought_signature: None,
    }
}

/// A call and its result.
fn round(id: &str, path: &str, text: &str) -> [Message; 2] {
    [
        Message::Assistant(AssistantMessage {
            content: vec![ContentBlock::ToolCall(call(id, path))],
            api: Api::Builtin,
            provider: "p".to_owned(),
            model: "m".to_owned(),
            usage: Usage::default(),
            stop_reason: StopReason::ToolUse,
            error_message: None,
            timestamp: 0,
        }),
        Message::ToolResult(ToolResultMessage {
            tool_call_id: id.to_owned(),
            tool_name: "read".to_owned(),
            content: vec![ContentBlock::text(text)],
            is_error: false,
            details: None,
            timestamp: 0,
        }),
    ]
}

fn user() -> [Message; 1] {
    [Message::User(UserMessage::text("go", 0))]
}

#[test]
fn the_third_time_is_told_and_so_is_each_further_one() {
    let twice =
        [&user()[..], &round("1", "a", "x"), &round("2", "a", "x\n[note]"), &round("3", "b", "x")]
            .concat();
    assert!(note(&twice, &call("4", "a"), "x").unwrap().contains("same result 3 times"));
    let thrice = [&twice[..], &round("4", "a", "x")].concat();
    assert!(note(&thrice, &call("5", "a"), "x").unwrap().contains("same result 4 times"));
}

#[test]
fn another_result_another_call_or_another_question_is_no_circle() {
    let twice = [&user()[..], &round("1", "a", "x"), &round("2", "a", "x")].concat();
    assert_eq!(note(&twice, &call("3", "a"), "changed"), None);
    assert_eq!(note(&twice, &call("3", "b"), "x"), None);
    let asked_again = [&twice[..], &user(), &round("3", "a", "x")].concat();
    assert_eq!(note(&asked_again, &call("4", "a"), "x"), None);
    assert_eq!(note(&twice[..3], &call("2", "a"), "x"), None, "twice can be a check");
}
