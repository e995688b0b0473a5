use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::{Api, Usage, UserMessage};

fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 1))
}

fn assistant(stop_reason: StopReason, text: &str, call_ids: &[&str]) -> Message {
    let texts = (!text.is_empty()).then(|| ContentBlock::text(text));
    let calls = call_ids.iter().map(|id| {
        ContentBlock::ToolCall(ToolCall {
            id: (*id).to_owned(),
            name: "read".to_owned(),
            arguments: serde_json::Map::new(),
            invalid_arguments: None,
            thought_signature: None,
        })
    });
    Message::Assistant(AssistantMessage {
        content: texts.into_iter().chain(calls).collect(),
        api: Api::OpenaiCompletions,
        provider: "p".to_owned(),
        model: "m".to_owned(),
        usage: Usage::default(),
        stop_reason,
        error_message: None,
        timestamp: 7,
    })
}

fn calls(ids: &[&str]) -> Message {
    assistant(StopReason::ToolUse, "", ids)
}

fn result(id: &str, text: &str) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        tool_name: "read".to_owned(),
        content: vec![ContentBlock::text(text)],
        is_error: text == INTERRUPTED_RESULT,
        details: None,
        timestamp: 7,
    })
}

fn repaired(messages: &[Message]) -> Vec<Message> {
    PairedMessages::repair(messages.to_vec()).0
}

#[test]
fn a_valid_list_stays_as_it_is() {
    let messages = [
        user("a"),
        user("b"),
        assistant(StopReason::ToolUse, "on it", &["1", "2"]),
        result("1", "one"),
        result("2", "two"),
        user("steer"),
        assistant(StopReason::Stop, "done", &[]),
        assistant(StopReason::Length, "cut", &[]),
    ];
    assert_eq!(repaired(&messages), messages);
}

#[test]
fn a_missing_result_says_that_the_session_was_interrupted() {
    assert_eq!(
        repaired(&[user("a"), calls(&["1", "2"]), result("2", "two"), user("b")]),
        [
            user("a"),
            calls(&["1", "2"]),
            result("1", INTERRUPTED_RESULT),
            result("2", "two"),
            user("b")
        ]
    );
}

#[test]
fn results_move_behind_their_calls_in_call_order() {
    assert_eq!(
        repaired(&[
            user("a"),
            calls(&["1", "2"]),
            result("2", "two"),
            user("b"),
            result("1", "one")
        ]),
        [user("a"), calls(&["1", "2"]), result("1", "one"), result("2", "two"), user("b")]
    );
}

#[test]
fn stray_and_second_results_are_dropped() {
    let messages = [
        result("1", "early"),
        user("a"),
        result("9", "stray"),
        calls(&["1"]),
        result("1", "one"),
        result("1", "again"),
    ];
    assert_eq!(repaired(&messages), [user("a"), calls(&["1"]), result("1", "one")]);
}

#[test]
fn an_id_used_again_is_renamed_with_its_result() {
    let messages = [
        user("a"),
        calls(&["call_0"]),
        result("call_0", "first"),
        calls(&["call_0"]),
        result("call_0", "second"),
        calls(&["call_0", "call_0_2"]),
        result("call_0", "third"),
    ];
    assert_eq!(
        repaired(&messages),
        [
            user("a"),
            calls(&["call_0"]),
            result("call_0", "first"),
            calls(&["call_0_2"]),
            result("call_0_2", "second"),
            calls(&["call_0_3", "call_0_2_2"]),
            result("call_0_3", "third"),
            result("call_0_2_2", INTERRUPTED_RESULT),
        ]
    );
}

#[test]
fn a_result_belongs_to_the_nearest_call_before_it() {
    assert_eq!(
        repaired(&[
            user("a"),
            calls(&["x"]),
            user("b"),
            calls(&["x"]),
            result("x", "of the second")
        ]),
        [
            user("a"),
            calls(&["x"]),
            result("x", INTERRUPTED_RESULT),
            user("b"),
            calls(&["x_2"]),
            result("x_2", "of the second")
        ]
    );
    assert_eq!(
        repaired(&[
            user("a"),
            calls(&["x", "x", ""]),
            result("x", "1"),
            result("x", "2"),
            result("", "3")
        ]),
        [
            user("a"),
            calls(&["x", "x_2", "call"]),
            result("x", "1"),
            result("x_2", "2"),
            result("call", "3")
        ]
    );
}

#[test]
fn calls_of_a_broken_message_go_with_their_results() {
    for reason in [StopReason::Refusal, StopReason::Error, StopReason::Aborted] {
        let messages = [
            user("a"),
            calls(&["x"]),
            assistant(reason, "half", &["x"]),
            result("x", "of the cut call"),
            assistant(reason, "", &["y"]),
            result("y", "of another"),
        ];
        assert_eq!(
            repaired(&messages),
            [
                user("a"),
                calls(&["x"]),
                result("x", INTERRUPTED_RESULT),
                assistant(reason, "half", &[])
            ]
        );
    }
}

#[test]
fn calls_of_a_message_that_the_output_limit_cut_stay_with_what_was_said_of_them() {
    let messages = [user("a"), assistant(StopReason::Length, "", &["x"]), result("x", "not run")];
    assert_eq!(repaired(&messages), messages);
}

#[test]
fn nothing_stands_before_the_first_user_message() {
    let empty = Message::User(UserMessage { content: Vec::new(), annotation: None, timestamp: 1 });
    assert_eq!(repaired(&[empty.clone(), calls(&["1"]), result("1", "one")]), []);
    assert_eq!(repaired(&[calls(&["1"]), empty, user("a"), result("1", "one")]), [user("a")]);
}

fn any_message() -> impl Strategy<Value = Message> {
    let id = || prop::sample::select(vec!["", "a", "b", "a_2", "a_3", "call"]);
    let reason = prop::sample::select(vec![
        StopReason::Stop,
        StopReason::ToolUse,
        StopReason::Length,
        StopReason::Error,
        StopReason::Aborted,
    ]);
    prop_oneof![
        2 => "[xy]{0,2}".prop_map(|text| if text.is_empty() {
            Message::User(UserMessage { content: Vec::new(), annotation: None, timestamp: 1 })
        } else {
            user(&text)
        }),
        4 => (reason, "[xy]{0,1}", prop::collection::vec(id(), 0..4))
            .prop_map(|(reason, text, ids)| assistant(reason, &text, &ids)),
        5 => (id(), "[0-9]{3}").prop_map(|(id, text)| result(id, &text)),
    ]
}

/// Checks what providers check.
fn assert_valid(messages: &[Message]) -> Result<(), TestCaseError> {
    let mut ids = HashSet::new();
    let mut due: VecDeque<&str> = VecDeque::new();
    for (position, message) in messages.iter().enumerate() {
        if let Message::ToolResult(result) = message {
            prop_assert_eq!(due.pop_front(), Some(result.tool_call_id.as_str()), "at {}", position);
            continue;
        }
        prop_assert!(due.is_empty(), "results are missing before {position}");
        match message {
            Message::User(user) => prop_assert!(!user.content.is_empty()),
            Message::Assistant(assistant) => {
                prop_assert!(position > 0 && !assistant.content.is_empty());
                for call in assistant.tool_calls() {
                    prop_assert!(assistant.stop_reason.keeps_tool_calls());
                    prop_assert!(
                        !call.id.is_empty() && ids.insert(call.id.as_str()),
                        "id {:?} again",
                        call.id
                    );
                    due.push_back(&call.id);
                }
            }
            Message::ToolResult(_) => {}
        }
    }
    prop_assert!(due.is_empty(), "results are missing at the end");
    Ok(())
}

fn texts(messages: &[Message]) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::ToolResult(result) => Some(result.text()),
        Message::User(_) | Message::Assistant(_) => None,
    };
    messages.iter().filter_map(text).filter(|text| text != INTERRUPTED_RESULT).collect()
}

proptest! {
    #[test]
    fn any_list_becomes_valid_and_stays_so(messages in prop::collection::vec(any_message(), 0..24)) {
        let once = repaired(&messages);
        assert_valid(&once)?;
        prop_assert_eq!(repaired(&once), once);
    }

    #[test]
    fn nothing_of_a_valid_list_is_lost(messages in prop::collection::vec(any_message(), 0..24)) {
        let valid = repaired(&messages);
        for cut in 0..valid.len() {
            let part = repaired(&valid[..cut]);
            assert_valid(&part)?;
            prop_assert_eq!(texts(&part), texts(&valid[..cut]));
        }
    }

    /// A provider's cache needs the beginning of a session to stay the same while it grows. Only the last
    /// message's results may still change, when the missing ones arrive.
    #[test]
    fn a_session_that_grows_keeps_its_beginning(
        messages in prop::collection::vec(any_message(), 1..24),
        more in prop::collection::vec(any_message(), 0..6),
    ) {
        let before = repaired(&messages);
        let mut grown = before.clone();
        grown.extend(more.into_iter().filter(|message| !matches!(message, Message::ToolResult(_))));
        let after = repaired(&grown);
        prop_assert_eq!(&after[..before.len()], &before[..]);
    }
}
