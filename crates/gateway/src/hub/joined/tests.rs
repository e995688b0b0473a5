//! Tests of deltas that become one event.

use serde_json::{Value, json};

use super::*;

fn delta(index: u32, text: &str) -> Event {
    let event = json!({"type": "text_delta", "index": index, "delta": text});
    let event = json!({"type": "llm_stream", "event": event, "session": "a\\"});
    Event { text: event.to_string().into(), kind: EventKind::Delta }
}

fn other(text: &str) -> Event {
    Event {
        text: json!({"type": "other", "delta": text}).to_string().into(),
        kind: EventKind::Other,
    }
}

/// The numbers of each event, with its block and its text.
fn shown(events: Vec<Joined>) -> Vec<(RangeInclusive<u64>, Value)> {
    let show = |Joined { numbers, text }| {
        let event: Value = serde_json::from_str(&text).unwrap();
        let said = match event.get("event") {
            Some(event) => json!([event["index"], event["delta"]]),
            None => event["delta"].clone(),
        };
        (numbers, said)
    };
    events.into_iter().map(show).collect()
}

#[test]
fn neighbours_of_one_block_become_one_event_with_the_last_number() {
    let events = vec![
        delta(0, "a\"b"),
        delta(0, "\\"),
        delta(0, ""),
        delta(0, "\n\u{1F600}é"),
        delta(1, "next"),
        other("x"),
        other("y"),
        delta(1, "\"delta\":\""),
        delta(1, "!"),
        delta(0, "back"),
    ];
    let expected = [
        (7..=10, json!([0, "a\"b\\\n\u{1F600}é"])),
        (11..=11, json!([1, "next"])),
        (12..=12, json!("x")),
        (13..=13, json!("y")),
        (14..=15, json!([1, "\"delta\":\"!"])),
        (16..=16, json!([0, "back"])),
    ];
    assert_eq!(shown(joined(7, events)), expected);
    assert_eq!(joined(7, Vec::new()), []);
}
