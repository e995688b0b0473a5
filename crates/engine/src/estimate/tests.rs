use myclaw_llm::{Api, AssistantMessage, Usage, UserMessage};

use super::*;

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
