use std::time::Duration;

use myclaw_engine::{AgentRunEvent, ContextChange, RunResult};
use myclaw_llm::{Cost, Usage};
use serde_json::{Map, Value, json};

use super::{failure_line, first_line, narrate, summarise_arguments, usage_line};

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn result(usage: Usage) -> RunResult {
    let mut result = RunResult::default();
    result.reply = "Hi".to_owned();
    result.usage = usage;
    result.iterations = 2;
    result.provider = "anthropic".to_owned();
    result.model = "claude".to_owned();
    result
}

#[test]
fn the_usage_line_says_what_there_is_and_no_more() {
    let elapsed = Duration::from_millis(1_234);
    let plain = Usage { input: 512, output: 45, ..Usage::default() };
    assert_eq!(
        usage_line(&result(plain), elapsed),
        "1.2 s, 2 iterations, 512 tokens in, 45 out, anthropic/claude"
    );
    let full = Usage {
        cache_read: 400,
        cache_write: 30,
        cost: Cost { total: 0.00123, ..Cost::default() },
        ..plain
    };
    assert_eq!(
        usage_line(&result(full), elapsed),
        "1.2 s, 2 iterations, 512 tokens in, 45 out, 400 from cache, 30 to cache, $0.0012, anthropic/claude"
    );
}

#[test]
fn calls_are_reported_by_their_most_telling_argument() {
    for (arguments, summary) in [
        (json!({"timeout": 5, "command": "ls -la\nrm x"}), "ls -la …"),
        (json!({"path": "src", "pattern": "fn main"}), "fn main"),
        (json!({"path": "a.txt", "content": "x"}), "a.txt"),
        (json!({"n": 1}), "{\"n\":1}"),
        (json!({}), ""),
    ] {
        assert_eq!(summarise_arguments(&object(&arguments)), summary);
    }
}

#[test]
fn a_failure_without_output_is_described_by_its_cause() {
    assert_eq!(failure_line("(no output)\n[exit code 3]"), "[exit code 3]");
    assert_eq!(failure_line("(no output)"), "(no output)");
    assert_eq!(failure_line("no such file\n[exit code 1]"), "no such file …");
}

#[test]
fn long_lines_are_cut() {
    let line = first_line(&"x".repeat(500));
    assert_eq!(line.chars().count(), 100);
    assert!(line.ends_with('…'));
}

#[test]
fn a_smaller_context_is_reported() {
    let line = |old_count, new_count, change| {
        let event = AgentRunEvent::Compaction { old_count, new_count, change };
        let (_, line) = narrate(&event).expect("a line");
        line.strip_prefix("context made smaller: ").expect("what it is about").to_owned()
    };
    assert_eq!(line(50, 11, ContextChange::Summary), "50 messages became 11");
    assert_eq!(line(11, 11, ContextChange::Summary), "a summary replaced the oldest message");
    assert_eq!(
        line(50, 11, ContextChange::LeftOut),
        "older messages were left out without a summary (50 messages became 11)"
    );
    assert_eq!(line(11, 11, ContextChange::LeftOut), "the oldest message was left out");
    assert_eq!(line(50, 50, ContextChange::ResultsCut), "long tool results were cut");
    assert_eq!(line(50, 50, ContextChange::TextsCut), "long texts were cut");
}
