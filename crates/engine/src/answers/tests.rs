//! Tests of the search for answers.

use myclaw_llm::{Api, AssistantMessage, ContentBlock, ToolResultMessage, Usage, UserMessage};
use serde_json::json;

use super::*;
use crate::transcript::{message_to_row, taken_row};

fn id(text: &str) -> EntryId {
    EntryId::from_text(text)
}

fn taken(text: &str, ids: &[&str]) -> TranscriptMessage {
    let ids: Vec<EntryId> = ids.iter().map(|text| id(text)).collect();
    taken_row(UserMessage::text(text, 1), &ids)
}

fn answer(text: &str, stop_reason: StopReason, calls: usize) -> TranscriptMessage {
    let mut content = vec![ContentBlock::text(text)];
    content.extend((0..calls).map(|number| {
        serde_json::from_value(json!({
            "type": "toolCall", "id": format!("call_{number}"), "name": "ls", "arguments": {},
        }))
        .unwrap()
    }));
    let row = message_to_row(&Message::Assistant(AssistantMessage {
        api: Api::AnthropicMessages,
        provider: "test".to_owned(),
        model: "test".to_owned(),
        usage: Usage::default(),
        stop_reason,
        error_message: None,
        content,
        timestamp: 1,
    }));
    TranscriptMessage { id: id(text), ..row }
}

fn states(rows: Vec<TranscriptMessage>, ids: &[&str]) -> Vec<Option<TakenState>> {
    let mut search = AnswerSearch::new(ids.iter().map(|text| id(text)));
    rows.into_iter().rev().for_each(|row| search.row(row));
    let found = search.into_found();
    ids.iter().map(|text| found.get(&id(text)).cloned()).collect()
}

fn answered(text: &str) -> Option<TakenState> {
    Some(TakenState::Answered {
        row: id(text),
        text: text.to_owned(),
        calls: Vec::new(),
        stop_reason: StopReason::Stop,
        pictures: Vec::new(),
    })
}

#[test]
fn each_message_has_the_next_whole_answer() {
    let rows = vec![
        taken("one", &["a"]),
        answer("first", StopReason::Stop, 0),
        taken("two and three", &["b", "c"]),
        answer("I look", StopReason::ToolUse, 1),
        taken("steered", &["d"]),
        answer("second", StopReason::Stop, 0),
        taken("open", &["e"]),
    ];
    let found = states(rows, &["a", "b", "c", "d", "e", "nowhere"]);
    let second = answered("second");
    let expected =
        [answered("first"), second.clone(), second.clone(), second, Some(TakenState::Open), None];
    assert_eq!(found, expected);
}

#[test]
fn a_message_whose_remains_were_taken_is_dropped_and_has_no_answer() {
    let remains = id("b").of_remains();
    let rows = vec![
        taken("one", &["a"]),
        answer("first", StopReason::Stop, 0),
        taken("two, and one was dropped", &["c", remains.as_str()]),
        answer("second", StopReason::Stop, 0),
    ];
    let expected = [answered("first"), Some(TakenState::Dropped), answered("second"), None];
    assert_eq!(states(rows, &["a", "b", "c", "nowhere"]), expected);
}

#[test]
fn an_answer_that_was_cut_off_does_not_count() {
    let rows = vec![
        taken("one", &["a"]),
        answer("half an answ", StopReason::Aborted, 0),
        taken("two", &["b"]),
        answer("whole", StopReason::Stop, 0),
        taken("three", &["c"]),
        answer("half", StopReason::Error, 0),
    ];
    let broken = Some(TakenState::Broken { why: "was cut off" });
    assert_eq!(states(rows, &["a", "b", "c"]), [answered("whole"), answered("whole"), broken]);
    let silent = vec![taken("one", &["a"]), answer(" ", StopReason::Stop, 0)];
    assert_eq!(states(silent, &["a"]), [Some(TakenState::Broken { why: "is empty" })]);
}

#[test]
fn an_answer_has_the_pictures_that_were_made_for_it() {
    let made = |tool: &str, path: &str, is_error| {
        let result = ToolResultMessage {
            tool_call_id: "call_0".to_owned(),
            tool_name: tool.to_owned(),
            content: vec![ContentBlock::text("made")],
            details: Some(json!({ "path": path })),
            is_error,
            timestamp: 1,
        };
        message_to_row(&Message::ToolResult(result))
    };
    let rows = vec![
        taken("draw", &["a"]),
        answer("calls", StopReason::ToolUse, 1),
        made("image_generate", "/one.png", false),
        made("write", "/other", false),
        made("image_generate", "/failed.png", true),
        answer("calls", StopReason::ToolUse, 1),
        made("image_generate", "/two.png", false),
        answer("drawn", StopReason::Stop, 0),
        taken("thanks", &["b"]),
        answer("welcome", StopReason::Stop, 0),
    ];
    let pictures = |state: &Option<TakenState>| match state {
        Some(TakenState::Answered { pictures, .. }) => pictures.clone(),
        other => panic!("{other:?}"),
    };
    let states = states(rows, &["a", "b"]);
    assert_eq!(pictures(&states[0]), ["/one.png", "/two.png"]);
    assert!(pictures(&states[1]).is_empty());
}
