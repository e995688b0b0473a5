use myclaw_llm::{ToolResultMessage, UserMessage};

use super::*;

fn result(text: &str) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: "c".to_owned(),
        tool_name: "read".to_owned(),
        content: vec![ContentBlock::text(text)],
        is_error: false,
        details: None,
        timestamp: 0,
    })
}

#[test]
fn only_longer_tool_texts_are_cut_and_the_marker_names_what_is_gone() {
    let long = "ä".repeat(MAX_RESULT_CHARS + 5);
    let user = Message::User(UserMessage::text(long.clone(), 0));
    let mut messages = [user.clone(), result(&"x".repeat(MAX_RESULT_CHARS)), result(&long)];

    assert!(oversized_results(&mut messages));

    let cut = format!("{}\n[truncated 5 chars]", "ä".repeat(MAX_RESULT_CHARS));
    assert_eq!(messages, [user, result(&"x".repeat(MAX_RESULT_CHARS)), result(&cut)]);
}

#[test]
fn nothing_to_cut_is_said_so() {
    assert!(!oversized_results(&mut [result("short")]));
}
