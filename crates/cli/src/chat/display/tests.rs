use std::time::Duration;

use myclaw_agent::AgentRunEvent;
use myclaw_agent::llm::StreamEvent;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Display;
use crate::terminal::Size;

const SIZE: Size = Size { columns: 60, rows: 20 };

fn delta(text: &str) -> AgentRunEvent {
    AgentRunEvent::LlmStream { event: StreamEvent::TextDelta { index: 0, delta: text.to_owned() } }
}

fn tool_start() -> AgentRunEvent {
    AgentRunEvent::ToolStart {
        tool_name: "bash".to_owned(),
        tool_call_id: "c1".to_owned(),
        arguments: json!({"command": "ls\x1b[2J"}).as_object().expect("an object").clone(),
    }
}

fn tool_end(is_error: bool) -> AgentRunEvent {
    AgentRunEvent::ToolEnd {
        tool_name: "bash".to_owned(),
        tool_call_id: "c1".to_owned(),
        duration_ms: 1_500,
        is_error,
        text: "no such\nfile".to_owned(),
        details: None,
    }
}

/// Everything that is written when the events are drawn one by one.
fn drawn(events: impl IntoIterator<Item = AgentRunEvent>) -> String {
    let display = Display::new(CancellationToken::new());
    let mut scene = display.shared.lock();
    let mut written = String::new();
    for event in events {
        scene.take(event);
        scene.compose(SIZE);
        written.push_str(&std::mem::take(&mut scene.pending));
    }
    scene.end_text();
    scene.stop_waiting();
    written.push_str(&scene.pending);
    written
}

/// What is left on a screen: the live line is drawn over and cleared.
fn left_behind(written: &str) -> String {
    written
        .split("\r\n")
        .map(|line| line.rsplit("\r\x1b[K").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn text_and_tools_stand_apart_and_the_live_line_leaves_no_trace() {
    let start =
        AgentRunEvent::LlmStart { iteration: 0, provider: "p".to_owned(), model: "m".to_owned() };
    let written = drawn([
        start.clone(),
        delta("Let me *look*."),
        tool_start(),
        tool_end(false),
        start,
        delta("Done."),
    ]);
    assert!(written.contains("p/m"), "{written:?}");
    assert_eq!(left_behind(&written), "Let me *look*.\n\n✓ bash ls\\x1b[2J  1.5 s\n\nDone.\n");
}

#[test]
fn a_failed_tool_says_why() {
    let written = drawn([tool_start(), tool_end(true)]);
    assert_eq!(left_behind(&written), "✗ bash ls\\x1b[2J  1.5 s: no such …\n");
}

#[test]
fn the_live_line_counts_what_else_runs() {
    let display = Display::new(CancellationToken::new());
    let mut scene = display.shared.lock();
    scene.take(tool_start());
    scene.take(tool_start());
    scene.compose(SIZE);
    assert!(scene.pending.contains("bash ls\\x1b[2J (and 1 more)"), "{:?}", scene.pending);
    assert!(scene.waiting.is_some_and(|since| since.elapsed() < Duration::from_secs(60)));
}

#[test]
fn the_live_line_shows_what_a_call_is_about_while_it_streams() {
    let stream = |event| AgentRunEvent::LlmStream { event };
    let piece =
        |index, delta: &str| stream(StreamEvent::ToolCallDelta { index, delta: delta.to_owned() });
    let display = Display::new(CancellationToken::new());
    let mut scene = display.shared.lock();
    let (id, name) = ("c1".to_owned(), "write".to_owned());
    scene.take(stream(StreamEvent::ToolCallStart { index: 1, id, name }));
    for delta in ["{\"pa", "th\": \"notes/todo.md\", ", "\"content\": \"milk"] {
        scene.take(piece(1, delta));
    }
    scene.take(piece(2, "{\"path\": \"another\"}"));
    scene.compose(SIZE);
    assert!(scene.pending.contains("preparing write notes/todo.md"), "{:?}", scene.pending);

    for _ in 0..1000 {
        scene.take(piece(1, &"x".repeat(100)));
    }
    assert!(scene.coming.kept() < 8192, "no more is kept than is read");
}
