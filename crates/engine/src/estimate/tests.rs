use myclaw_llm::{
    Api, AssistantMessage, ImageContent, ToolCall, ToolResultMessage, Usage, UserMessage,
};
use serde_json::{Value, json};

use super::*;
use crate::transcript::message_to_row;

fn user(bytes: usize) -> Message {
    Message::User(UserMessage::text("x".repeat(bytes), 0))
}

fn assistant(total_tokens: u64, stop_reason: StopReason) -> Message {
    Message::Assistant(AssistantMessage {
        content: vec![ContentBlock::text("y".repeat(400))],
        api: Api::Builtin,
        provider: "p".to_owned(),
        model: "m".to_owned(),
        usage: Usage { total_tokens, ..Usage::default() },
        stop_reason,
        error_message: None,
        timestamp: 0,
    })
}

#[test]
fn without_a_report_everything_is_estimated() {
    assert_eq!(request_tokens(&[user(400)], 1_000), 1_000 + 100 + MESSAGE_OVERHEAD);
}

#[test]
fn what_a_provider_counted_is_not_estimated_again() {
    let messages = [user(400_000), assistant(5_000, StopReason::Stop), user(400)];
    assert_eq!(request_tokens(&messages, 1_000), 5_000 + 100 + MESSAGE_OVERHEAD);
}

#[test]
fn the_count_of_a_broken_call_is_not_trusted() {
    let messages = [user(400), assistant(9, StopReason::Error)];
    assert_eq!(request_tokens(&messages, 0), 2 * (100 + MESSAGE_OVERHEAD));
}

#[test]
fn arguments_count_with_their_names_and_punctuation() {
    let Value::Object(arguments) = json!({"a": {"bc": [true, "x"]}}) else { panic!("an object") };
    let call = ToolCall {
        id: String::new(),
        name: "read".to_owned(),
        arguments,
        invalid_arguments: None,
        thought_signature: None,
    };
    // `read` and `a`; `"bc":` and the list with 5, 4 and two commas; braces and a comma.
    let bytes = 4 + 1 + (2 + (5 + 1) + (4 + 1) + 4);
    assert_eq!(block_tokens(&ContentBlock::ToolCall(call)), text_tokens(bytes));
}

/// A reduced result keeps its pictures, unless both ends of its text are left out.
#[test]
fn a_reduced_row_costs_its_pictures_while_they_are_sent() {
    let picture = ImageContent { data: "AAAA".to_owned(), mime_type: "image/png".to_owned() };
    let row = message_to_row(&Message::ToolResult(ToolResultMessage {
        tool_call_id: "call_1".to_owned(),
        tool_name: "read".to_owned(),
        content: vec![ContentBlock::text("x".repeat(4_000)), ContentBlock::Image(picture)],
        is_error: false,
        details: None,
        timestamp: 0,
    }));
    let cost = |head, tail| row_cost(&row, Some(&Reduction { id: row.id, head, tail }));
    let note = MESSAGE_OVERHEAD + text_tokens(REDUCTION_NOTE_BYTES);
    assert_eq!(cost(0, 0), note);
    for (head, tail) in [(40, 0), (0, 40)] {
        assert_eq!(cost(head, tail), note + 10 + IMAGE_TOKENS, "{head} {tail}");
    }
}
