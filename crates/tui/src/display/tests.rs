use std::sync::Arc;

use myclaw_engine::AgentRunEvent;
use myclaw_llm::StreamEvent;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Display, Queued};
use crate::outputs::IsShown;
use myclaw_front::shown::Shown;
use myclaw_front::terminal::{Size, Style};

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
    let display = Display::new(CancellationToken::new(), Arc::default());
    let mut scene = display.shared.scene.lock();
    let mut written = String::new();
    for event in events {
        scene.take(event);
        scene.compose(SIZE);
        written.push_str(&std::mem::take(&mut scene.pending));
    }
    scene.finish();
    written.push_str(&scene.pending);
    written
}

#[test]
fn an_answer_is_shown_once_though_a_notice_comes_after_it() {
    let display = Display::new(CancellationToken::new(), Arc::default());
    let mut scene = display.shared.scene.lock();
    let answer = || Shown::Answer("All is well.".to_owned());
    let notice = || Shown::Line(Style::Warning, "the disk is full".to_owned());
    for shown in [Shown::Text("All is well.".to_owned()), Shown::TextEnd, notice(), answer()] {
        scene.take(shown);
    }
    assert_eq!(scene.pending.matches("All is well.").count(), 1, "{}", scene.pending);
    // The next turn, and what the model says after a call, were not shown before.
    scene.take(answer());
    scene.take(Shown::Text("I look.".to_owned()));
    scene.take(tool_start());
    scene.take(tool_end(false));
    scene.take(answer());
    assert_eq!(scene.pending.matches("All is well.").count(), 3, "{}", scene.pending);
}

/// What is left on a screen.
fn left_behind(written: &str) -> String {
    let (rows, columns) = (SIZE.rows as u16, SIZE.columns as u16);
    let mut screen = vt100::Parser::new(rows, columns, 0);
    screen.process(written.as_bytes());
    screen.screen().contents()
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
    let expected = "Let me *look*.\n\n✓ bash ls\\u{1b}[2J  1.5 s\n  no such\n  file\n\nDone.";
    assert_eq!(left_behind(&written), expected);
}

#[test]
fn a_failed_tool_says_why() {
    let written = drawn([tool_start(), tool_end(true)]);
    assert_eq!(left_behind(&written), "✗ bash ls\\u{1b}[2J  1.5 s\n  no such\n  file");
}

#[test]
fn the_live_line_counts_what_else_runs() {
    let display = Display::new(CancellationToken::new(), Arc::default());
    let mut scene = display.shared.scene.lock();
    scene.take(tool_start());
    scene.take(tool_start());
    scene.compose(SIZE);
    assert!(scene.pending.contains("bash ls\\u{1b}[2J (and 1 more)"), "{:?}", scene.pending);
    assert!(scene.is_waiting());
}

#[test]
fn the_live_line_shows_what_a_call_is_about_while_it_streams() {
    let stream = |event| AgentRunEvent::LlmStream { event };
    let piece = |index, delta: &str| {
        stream(StreamEvent::ToolCallDelta { index, delta: delta.to_owned(), arguments: None })
    };
    let display = Display::new(CancellationToken::new(), Arc::default());
    let mut scene = display.shared.scene.lock();
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
    assert!(scene.kept() < 8192, "no more is kept than is read");
}

#[test]
fn much_text_between_two_updates_is_drawn_in_parts() {
    let texts = (0..2_000).map(|number| delta(&format!("Paragraph {number}, *with* words.\n\n")));
    let display = Display::new(CancellationToken::new(), Arc::default());
    let mut scene = display.shared.scene.lock();
    for text in texts.clone() {
        scene.take(text);
        assert!(scene.kept() <= 16 * 1024, "{}", scene.kept());
    }
    scene.finish();
    assert_eq!(left_behind(&scene.pending), left_behind(&drawn(texts)));
}

#[test]
fn the_end_of_a_running_commands_output_is_shown_and_no_more_is_kept() {
    let update = |text: String| AgentRunEvent::ToolExecutionUpdate {
        tool_name: "bash".to_owned(),
        tool_call_id: "c1".to_owned(),
        text,
        details: None,
    };
    let display = Display::new(CancellationToken::new(), Arc::default());
    let mut scene = display.shared.scene.lock();
    scene.take(tool_start());
    for number in 0..1_000 {
        scene.take(update(format!("line {number}\npar")));
        scene.take(update("t \x1b[2J of a line\n".to_owned()));
    }
    scene.take(update("x".repeat(100_000)));
    scene.take(update("x".repeat(100_000)));
    scene.compose(SIZE);
    let screen = left_behind(&scene.pending);
    let lines: Vec<&str> = screen.lines().collect();
    assert_eq!(
        lines[..3],
        ["  part \\x1b[2J of a line", "  line 999", "  part \\x1b[2J of a line"]
    );
    assert!(lines[3].starts_with("  xxxx") && lines[3].ends_with('…'), "{screen}");
    assert!(lines[4].contains("bash ls"), "{screen}");
    assert!(scene.kept() < 8192, "{}", scene.kept());
}

#[test]
fn what_the_model_thinks_is_shown_on_request() {
    let thinks = |text: &str| AgentRunEvent::LlmStream {
        event: StreamEvent::ThinkingDelta { index: 0, delta: text.to_owned() },
    };
    let events = || [thinks("First I "), thinks("look.\nThen"), delta("Done.")];
    assert_eq!(left_behind(&drawn(events())), "Done.");
    let display = Display::new(CancellationToken::new(), Arc::default());
    let mut scene = display.shared.scene.lock();
    scene.common.show_thinking(IsShown::Yes);
    let mut written = String::new();
    for event in events() {
        scene.take(event);
        scene.compose(SIZE);
        written.push_str(&std::mem::take(&mut scene.pending));
    }
    scene.finish();
    written.push_str(&scene.pending);
    assert_eq!(left_behind(&written), "First I look.\nThen\n\nDone.");
}

#[test]
fn what_is_below_the_text_fits_on_a_low_screen() {
    let display = Display::new(CancellationToken::new(), Arc::default());
    let mut scene = display.shared.scene.lock();
    scene.take(tool_start());
    scene.take(AgentRunEvent::ToolExecutionUpdate {
        tool_name: "bash".to_owned(),
        tool_call_id: "c1".to_owned(),
        text: "a\nb\nc\nd\n".to_owned(),
        details: None,
    });
    let queued = |number: usize| Queued { id: number.to_string(), line: "next: more".to_owned() };
    scene.queue = (0..9).map(queued).collect();
    scene.compose(Size { columns: 60, rows: 8 });
    // With the line of text above and the status below.
    assert_eq!(scene.pending.matches("\r\n").count(), 8 - 3);
}
