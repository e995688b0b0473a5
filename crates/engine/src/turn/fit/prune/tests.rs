use myclaw_llm::{AssistantMessage, ContentBlock, StopReason, ToolCall, Usage};
use serde_json::json;

use super::*;
use crate::transcript::message_to_row;

/// Steps of one `read` call each, given as the path and the length of the result.
fn steps(reads: &[(&str, usize)]) -> Vec<TranscriptMessage> {
    let mut rows = vec![TranscriptMessage::new(Role::User, "task", 0)];
    for (number, (path, length)) in reads.iter().enumerate() {
        rows.push(call(&format!("call_{number}"), path));
        let mut result = TranscriptMessage::new(Role::Tool, "x".repeat(*length), 0);
        result.tool_call_id = Some(format!("call_{number}"));
        rows.push(result);
    }
    rows
}

fn call(id: &str, path: &str) -> TranscriptMessage {
    let serde_json::Value::Object(arguments) = json!({ "path": path }) else { unreachable!() };
    message_to_row(&Message::Assistant(AssistantMessage {
        content: vec![ContentBlock::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments,
            invalid_arguments: None,
            thought_signature: None,
        })],
        api: myclaw_llm::Api::Builtin,
        provider: "builtin".to_owned(),
        model: "demo".to_owned(),
        usage: Usage::default(),
        stop_reason: StopReason::ToolUse,
        error_message: None,
        timestamp: 0,
    }))
}

/// The positions of the results in `reductions`, counted from the first result.
fn results(rows: &[TranscriptMessage], reductions: &[Reduction]) -> Vec<usize> {
    let position = |reduction: &Reduction| rows.iter().position(|row| row.id == reduction.id);
    reductions.iter().filter_map(position).map(|position| (position - 2) / 2).collect()
}

const NONE: &[Reduction] = &[];

#[test]
fn long_old_results_are_trimmed_and_the_last_three_steps_are_not() {
    let rows =
        steps(&[("one.rs", 5_000), ("two.rs", 4_000), ("a", 9_000), ("b", 9_000), ("c", 9_000)]);
    let current = HashMap::new();
    let planned = Context::new(&rows, &current).trim_long();
    assert_eq!(planned, [Reduction { id: rows[2].id, head: 1_500, tail: 1_500 }]);
    let current = HashMap::from([(planned[0].id, planned[0])]);
    assert_eq!(Context::new(&rows, &current).trim_long(), NONE, "once");
}

#[test]
fn results_that_later_messages_mention_stay() {
    let rows = steps(&[
        ("src/main.rs", 9_000),
        ("src/lib.rs", 9_000),
        ("a", 10),
        ("b", 10),
        ("src/main.rs", 10),
    ]);
    let current = HashMap::new();
    assert_eq!(results(&rows, &Context::new(&rows, &current).trim_long()), [1]);
}

#[test]
fn old_results_are_cleared_only_if_that_is_worth_it() {
    let small = steps(&[("one.rs", 20_000), ("two.rs", 20_000), ("a", 1), ("b", 1), ("c", 1)]);
    let large = steps(&[("one.rs", 30_000), ("two.rs", 30_000), ("a", 1), ("b", 1), ("c", 1)]);
    let current = HashMap::new();
    assert_eq!(Context::new(&small, &current).clear_old(), NONE);
    assert_eq!(results(&large, &Context::new(&large, &current).clear_old()), [0, 1]);
}

#[test]
fn aggressive_keeps_the_last_step_only() {
    let rows = steps(&[("one.rs", 200), ("two.rs", 200), ("three.rs", 200)]);
    let current = HashMap::new();
    assert_eq!(results(&rows, &Context::new(&rows, &current).clear_all_but_last()), [0, 1]);
}

/// The messages for these rows, as the session holds them in memory.
fn messages(rows: &[TranscriptMessage]) -> Vec<Message> {
    rows.iter().cloned().filter_map(row_to_message).collect()
}

#[test]
fn the_log_is_not_read_where_the_messages_in_memory_hold_nothing_to_prune() {
    const ADAPTIVE: ContextPruning = ContextPruning::Adaptive;
    let promises = |reads: &[(&str, usize)], mode, percent| {
        Outlook::of(&messages(&steps(reads)), mode).promises_anything(percent)
    };
    let short = [("a", 4_000), ("b", 4_000), ("c", 9_000), ("d", 9_000), ("e", 9_000)];
    assert!(!promises(&short, ADAPTIVE, 99), "the last three steps are protected");
    assert!(promises(&short, ContextPruning::Aggressive, 1));
    assert!(!promises(&short[..1], ContextPruning::Aggressive, 1));
    let long = [("a", 4_001), ("b", 1), ("c", 1), ("d", 1)];
    assert!(promises(&long, ADAPTIVE, 30));
    let many: Vec<_> = (0..16).map(|_| ("a", 4_000)).collect();
    assert!(!promises(&many, ADAPTIVE, 49) && promises(&many, ADAPTIVE, 50));
}

proptest::proptest! {
    /// The outlook from the messages in memory never misses anything that the rows would let be pruned.
    #[test]
    fn nothing_is_overlooked(lengths in proptest::collection::vec(0..30_000_usize, 0..12)) {
        let reads: Vec<(&str, usize)> = lengths.iter().map(|length| ("some/path", *length)).collect();
        let rows = steps(&reads);
        let current = HashMap::new();
        let context = Context::new(&rows, &current);
        let outlook = |mode| Outlook::of(&messages(&rows), mode);
        let adaptive = outlook(ContextPruning::Adaptive);
        proptest::prop_assert!(context.trim_long().is_empty() || adaptive.promises_anything(30));
        proptest::prop_assert!(context.clear_old().is_empty() || adaptive.promises_anything(50));
        proptest::prop_assert!(
            context.clear_all_but_last().is_empty()
                || outlook(ContextPruning::Aggressive).promises_anything(0)
        );
    }
}
