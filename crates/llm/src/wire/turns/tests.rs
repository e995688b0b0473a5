use super::*;
use crate::wire::testing::model;
use crate::{Api, InputKind, StopReason, Usage, UserMessage};

fn assistant(model: &str, content: Vec<ContentBlock>) -> Message {
    Message::Assistant(AssistantMessage {
        content,
        api: Api::AnthropicMessages,
        provider: "p".to_owned(),
        model: model.to_owned(),
        usage: Usage::default(),
        stop_reason: StopReason::ToolUse,
        error_message: None,
        timestamp: 1,
    })
}

fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 1))
}

fn result(content: Vec<ContentBlock>) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: "c.1".to_owned(),
        tool_name: "ls".to_owned(),
        content,
        is_error: true,
        timestamp: 1,
        details: None,
    })
}

fn call() -> ContentBlock {
    ContentBlock::ToolCall(ToolCall {
        id: "c.1".to_owned(),
        name: "ls".to_owned(),
        arguments: Map::new(),
        invalid_arguments: None,
        thought_signature: None,
    })
}

fn thinking(text: &str, signature: Option<&str>, redacted: bool) -> ContentBlock {
    ContentBlock::Thinking(ThinkingContent {
        thinking: text.to_owned(),
        thinking_signature: signature.map(str::to_owned),
        redacted,
    })
}

fn text(text: &str) -> Block<'_> {
    text_block(text)
}

/// What becomes of `content` in a turn of `model`.
fn blocks_of(content: Vec<ContentBlock>, by: &str, past: ThinkingHistory) -> String {
    let messages = [assistant(by, content)];
    let turns = turns(&model(&[InputKind::Text]), past, &messages);
    turns.iter().map(|turn| format!("{:?}", turn.content)).collect()
}

#[test]
fn roles_alternate_and_nothing_is_empty() {
    let messages = [
        user(" "),
        user("a"),
        user("b"),
        assistant("m", vec![ContentBlock::text("\n"), call()]),
        result(Vec::new()),
        user("c"),
    ];
    let turns = turns(&model(&[InputKind::Text]), ThinkingHistory::Kept, &messages);
    let id = || TOOL_IDS.apply("c.1");
    let no_output = vec![Piece::Text(Cow::Borrowed("(no output)"))];
    let expected = [
        Turn { role: Role::User, content: vec![text("a"), text("b")] },
        Turn {
            role: Role::Assistant,
            content: vec![Block::Call {
                id: id(),
                name: Cow::Borrowed("ls"),
                arguments: Cow::Owned(Map::new()),
            }],
        },
        Turn {
            role: Role::User,
            content: vec![
                Block::Result { call_id: id(), content: no_output, is_error: true },
                text("c"),
            ],
        },
    ];
    assert_eq!(turns, expected);
}

#[test]
fn thinking_goes_back_as_it_may() {
    use ThinkingHistory::{Kept, LeftOut};
    let signed = || thinking("hm", Some("sig"), false);
    let redacted = || thinking("", Some("data"), true);
    let unsigned = || thinking("hm", None, false);
    let as_text = "<thinking>\\nhm\\n</thinking>";
    for (block, by, past, expected) in [
        (signed(), "m", Kept, "Thinking { text: \"hm\", signature: \"sig\" }"),
        (signed(), "m", LeftOut, ""),
        (signed(), "other", Kept, as_text),
        (redacted(), "m", Kept, "RedactedThinking(\"data\")"),
        (redacted(), "m", LeftOut, ""),
        (redacted(), "other", Kept, ""),
        (unsigned(), "m", Kept, as_text),
        (unsigned(), "m", LeftOut, as_text),
    ] {
        let shown = blocks_of(vec![block, ContentBlock::text("so")], by, past);
        let has_more = shown != format!("{:?}", [text("so")]);
        assert!(shown.contains(expected), "{shown} lacks {expected}");
        assert_eq!(has_more, !expected.is_empty(), "{shown}");
    }
    // What ends with thinking was cut off there.
    assert_eq!(blocks_of(vec![ContentBlock::text("so"), signed(), redacted()], "m", Kept), {
        format!("{:?}", [text("so")])
    });
    assert_eq!(blocks_of(vec![signed()], "m", Kept), "");
}

#[test]
fn calls_may_go_on_without_thinking() {
    let goes_on = |messages: &[Message]| {
        let turns = turns(&model(&[InputKind::Text]), ThinkingHistory::Kept, messages);
        continue_calls_without_thinking(&turns)
    };
    let with = |first: ContentBlock| {
        vec![user("a"), assistant("m", vec![first, call()]), result(Vec::new())]
    };
    let thought = thinking("hm", Some("sig"), false);
    assert!(goes_on(&with(ContentBlock::text("so"))));
    assert!(!goes_on(&with(thought.clone())));
    let steered = [with(ContentBlock::text("so")), vec![user("b")]].concat();
    assert!(goes_on(&steered));
    let over = [steered, vec![assistant("m", vec![thought, call()]), user("b")]].concat();
    assert!(!goes_on(&over));
    assert!(!goes_on(&[user("a")]));
}

#[test]
fn the_newest_user_turns_are_cached() {
    let turn = |role, number| Turn { role, content: vec![number] };
    let mut turns = [
        turn(Role::User, 1),
        turn(Role::Assistant, 2),
        turn(Role::User, 3),
        turn(Role::Assistant, 4),
        turn(Role::User, 5),
    ];
    let cached: Vec<_> = turns_to_cache(&mut turns).map(|content| content[0]).collect();
    assert_eq!(cached, [5, 3]);
}
