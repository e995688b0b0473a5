use myclaw_agent::{AgentError, FailureClass};
use serde_json::{Map, Value, json};

use super::*;

fn translator(notices: bool) -> Translator {
    let abilities = Abilities { notices, compaction: notices, ..Abilities::default() };
    Translator::new(abilities, PathBuf::from("/project"), 1_000, Some(0.0))
}

fn json_of(updates: &[SessionUpdate]) -> Vec<Value> {
    updates.iter().map(|update| serde_json::to_value(update).unwrap()).collect()
}

fn tool_start(id: &str) -> AgentRunEvent {
    AgentRunEvent::ToolStart {
        tool_name: "bash".to_owned(),
        tool_call_id: id.to_owned(),
        arguments: Map::new(),
    }
}

fn text(delta: &str) -> AgentRunEvent {
    AgentRunEvent::LlmStream { event: StreamEvent::TextDelta { index: 0, delta: delta.to_owned() } }
}

#[test]
fn a_call_that_never_ends_has_failed_when_the_turn_is_over() {
    let mut translator = translator(true);
    translator.begin(SessionWork::Turn);
    let started = json_of(&translator.translate(&tool_start("call_1")));
    let over = json_of(
        &translator.end(&Err(AgentError::new(FailureClass::Aborted, "aborted")), Next::Idle),
    );
    assert_eq!(over.len(), 1);
    assert_eq!(
        (&over[0]["toolCallId"], &over[0]["status"]),
        (&started[0]["toolCallId"], &json!("failed"))
    );
    assert_eq!(
        translator.end(&Err(AgentError::new(FailureClass::Aborted, "aborted")), Next::Idle),
        []
    );
}

#[test]
fn each_attempt_is_a_message_of_its_own_and_blocks_stand_apart() {
    let mut translator = translator(true);
    translator.begin(SessionWork::Turn);
    let mut ids = Vec::new();
    for _attempt in 0..2 {
        let start = AgentRunEvent::LlmStart {
            iteration: 0,
            provider: "p".to_owned(),
            model: "m".to_owned(),
        };
        let block = AgentRunEvent::LlmStream { event: StreamEvent::TextStart { index: 0 } };
        assert_eq!(translator.translate(&start), []);
        assert_eq!(translator.translate(&block), []);
        ids.push(json_of(&translator.translate(&text("Hello")))[0]["messageId"].clone());
        assert_eq!(json_of(&translator.translate(&block))[0]["content"]["text"], "\n\n");
    }
    assert!(ids[0].is_string() && ids[0] != ids[1], "{ids:?}");
}

#[test]
fn a_failure_before_another_turn_is_reported() {
    let failure = || Err(AgentError::new(FailureClass::Internal, "it broke"));
    for (next, reported) in [(Next::GoesOn, 1), (Next::Idle, 0)] {
        let mut translator = translator(true);
        translator.begin(SessionWork::Turn);
        let updates = json_of(&translator.end(&failure(), next));
        assert_eq!(updates.len(), reported, "{updates:?}");
        assert!(updates.iter().all(|update| update["severity"] == "error"));
    }
}

#[test]
fn notices_wait_for_a_turn_where_the_client_has_no_place_for_them() {
    let mut plain = translator(false);
    assert_eq!(plain.notice(NoticeSeverity::Warning, "careful".to_owned()), None);
    let updates = json_of(&plain.begin(SessionWork::Turn));
    assert_eq!(updates[0]["sessionUpdate"], "agent_thought_chunk");
    assert_eq!(updates[0]["content"]["text"], "careful\n\n");
    assert_eq!(plain.begin(SessionWork::Turn), []);
}

#[test]
fn a_compaction_that_is_aborted_or_fails_says_so() {
    for (error, status) in [
        (AgentError::new(FailureClass::Aborted, "aborted"), "cancelled"),
        (AgentError::new(FailureClass::Internal, "no model"), "failed"),
    ] {
        let mut translator = translator(true);
        let begun = json_of(&translator.begin(SessionWork::Compaction));
        assert_eq!(begun[0]["status"], "in_progress");
        let over = json_of(&translator.end(&Err(error), Next::Idle));
        assert_eq!(over[0]["compactionId"], begun[0]["compactionId"]);
        assert_eq!(over[0]["status"], status);
    }
}
