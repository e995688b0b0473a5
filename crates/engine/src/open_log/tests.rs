mod invariants;

use myclaw_llm::{Api, AssistantMessage, ContentBlock, StopReason, ToolResultMessage};
use myclaw_session::{EntryId, LockWait, SessionKey, SessionStore};
use serde_json::Map;

use super::*;

struct Fixture {
    _home: tempfile::TempDir,
    store: SessionStore,
    key: SessionKey,
}

impl Fixture {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = SessionStore::new(home.path().join("sessions"));
        Self { store, key: SessionKey::for_cli("main", "test"), _home: home }
    }

    fn open(&self, budget: u64) -> (OpenLog, Opening) {
        let log = self.store.open(&self.key, LockWait::Fail).unwrap();
        OpenLog::load(Box::new(log), budget, SwitchedOff::default()).unwrap()
    }
}

fn user(text: &str) -> UserMessage {
    UserMessage::text(text, 1)
}

fn assistant(calls: &[&str], stop_reason: StopReason) -> Message {
    let mut content = vec![ContentBlock::text("text")];
    content.extend(calls.iter().map(|id| ContentBlock::ToolCall(call(id))));
    Message::Assistant(AssistantMessage {
        content,
        api: Api::Builtin,
        provider: "builtin".to_owned(),
        model: "demo".to_owned(),
        usage: Usage { total_tokens: 77, ..Usage::default() },
        stop_reason,
        error_message: None,
        timestamp: 5,
    })
}

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "ls".to_owned(),
        arguments: Map::new(),
        invalid_arguments: None,
        thought_signature: None,
    }
}

fn result(id: &str) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        tool_name: "ls".to_owned(),
        content: vec![ContentBlock::text("r")],
        is_error: false,
        details: None,
        timestamp: 6,
    })
}

#[test]
fn the_end_of_the_log_decides_the_next_step_also_after_reopening() {
    let runs = |ids: &[&str], message_was_cut| {
        NextStep::RunTools(PendingCalls {
            calls: ids.iter().map(|id| call(id)).collect(),
            message_was_cut,
            model: "builtin/demo".to_owned(),
            asked_at: 5,
            are_asked_again: false,
        })
    };
    let cases: Vec<(Vec<Message>, NextStep)> = vec![
        (vec![], NextStep::Finish),
        (vec![Message::User(user("u"))], NextStep::CallModel),
        (vec![Message::User(user("u")), assistant(&[], StopReason::Stop)], NextStep::Finish),
        (
            vec![Message::User(user("u")), assistant(&["a", "b"], StopReason::ToolUse)],
            runs(&["a", "b"], false),
        ),
        (
            vec![
                Message::User(user("u")),
                assistant(&["a", "b"], StopReason::ToolUse),
                result("a"),
            ],
            runs(&["b"], false),
        ),
        (
            vec![
                Message::User(user("u")),
                assistant(&["a", "b"], StopReason::ToolUse),
                result("a"),
                result("b"),
            ],
            NextStep::CallModel,
        ),
        (vec![Message::User(user("u")), assistant(&["a"], StopReason::Length)], runs(&["a"], true)),
        (vec![Message::User(user("u")), assistant(&["a"], StopReason::Aborted)], NextStep::Finish),
        (vec![Message::User(user("u")), assistant(&["a"], StopReason::Stop)], runs(&["a"], false)),
    ];
    for (messages, expected) in cases {
        let fixture = Fixture::new();
        let (mut log, _) = fixture.open(u64::MAX);
        for message in messages.clone() {
            log.append(message).unwrap();
        }
        assert_eq!(log.next_step(), expected, "{messages:?}");
        drop(log);
        assert_eq!(fixture.open(u64::MAX).0.next_step(), expected, "reopened: {messages:?}");
    }
}

#[test]
fn the_list_in_memory_equals_what_a_later_run_reads() {
    let fixture = Fixture::new();
    let (mut log, _) = fixture.open(u64::MAX);
    log.append_user(user("list")).unwrap();
    log.append(assistant(&["a"], StopReason::ToolUse)).unwrap();
    log.append(result("a")).unwrap();
    let in_memory = log.messages().to_vec();
    drop(log);

    assert_eq!(fixture.open(u64::MAX).0.messages(), in_memory);
}

#[test]
fn a_compaction_replaces_the_messages_before_it() {
    let fixture = Fixture::new();
    let (mut log, _) = fixture.open(u64::MAX);
    for text in ["one", "two"] {
        log.append_user(user(text)).unwrap();
        log.append(assistant(&[], StopReason::Stop)).unwrap();
    }
    let first_kept_id = log.tail().unwrap().messages[2].id;

    log.append_change(CompactionEntry {
        id: EntryId::generate(),
        ts: 9,
        summary: "They counted.".to_owned(),
        first_kept_id,
        tokens_before: 1,
        old_count: 4,
        new_count: 3,
    })
    .unwrap();

    let Message::User(summary) = &log.messages()[0] else {
        panic!("the summary is a user message")
    };
    assert_eq!(summary.content, [ContentBlock::text("[Conversation summary]\nThey counted.")]);
    assert_eq!(log.messages().len(), 3);
    let Message::Assistant(kept) = &log.messages()[2] else { panic!("the last answer") };
    assert_eq!(
        kept.usage.total_tokens, 0,
        "a count of the larger request says nothing about the next"
    );
    let in_memory = log.messages().to_vec();
    drop(log);
    assert_eq!(fixture.open(u64::MAX).0.messages(), in_memory);
}

#[test]
fn only_the_end_that_fits_is_loaded_and_it_begins_with_a_user() {
    let fixture = Fixture::new();
    let (mut log, _) = fixture.open(u64::MAX);
    for turn in 0..50 {
        log.append_user(user(&format!("{turn} {}", "x".repeat(400)))).unwrap();
        log.append(assistant(&[], StopReason::Stop)).unwrap();
    }
    drop(log);

    let (mut log, opening) = fixture.open(1_000);

    let kept = log.tail().unwrap();
    assert_eq!((opening.skipped_lines, opening.cut_before.is_some()), (0, true));
    assert!(kept.messages.iter().any(|row| Some(row.id) == opening.cut_before));
    assert_eq!(log.messages().len() % 2, 0);
    let Message::User(first) = &log.messages()[0] else { panic!("a user message") };
    assert_ne!(first.content[0], ContentBlock::text(format!("0 {}", "x".repeat(400))));
    assert!((2..10).contains(&log.messages().len()), "half of the budget is left for the turn");
}
