//! Tests of deltas that become one event.

use myclaw_engine::RunEvent;
use serde_json::{Value, json};

use super::*;

/// What a client reads: the numbers of each event, with its block and its text.
type Shown = Vec<(RangeInclusive<u64>, Value)>;

fn delta(index: usize, delta: &str) -> RunEvent {
    let delta = delta.to_owned();
    of_run(AgentRunEvent::LlmStream { event: StreamEvent::TextDelta { index, delta } })
}

fn thought(index: usize, delta: &str) -> RunEvent {
    let delta = delta.to_owned();
    of_run(AgentRunEvent::LlmStream { event: StreamEvent::ThinkingDelta { index, delta } })
}

fn of_run(kind: AgentRunEvent) -> RunEvent {
    let key = myclaw_session::SessionKey::parse("agent:main:a\"delta\":\"b").unwrap();
    let mut event = RunEvent::notice(key, myclaw_engine::Notice::Interrupted {});
    event.kind = kind;
    event
}

fn shown(since: Since) -> Shown {
    let Since::Events(events) = since else { unreachable!("a gap: {since:?}") };
    let show = |Joined { numbers, text, .. }: Joined| {
        let event: Value = serde_json::from_str(&text).unwrap();
        let said = match event.get("event") {
            Some(event) => json!([event["type"], event["index"], event["delta"]]),
            None => event["delta"].clone(),
        };
        (numbers, said)
    };
    events.into_iter().map(show).collect()
}

/// Adds events, each of which is offered by itself as it would be without the ones before.
fn add(kept: &mut Kept, events: &[RunEvent]) {
    for event in events {
        let number = kept.newest() + 1;
        let offered = kept.add_of_run(Instant::now(), event).unwrap();
        assert_eq!(offered.numbers, number..=number);
        assert_eq!(*offered.text, serde_json::to_string(event).unwrap());
    }
}

#[test]
fn neighbours_of_one_text_become_one_event_and_are_read_from_each_of_them_on() {
    let mut kept = Kept::after(6);
    let said = ["a\"b", "\\", "", "\n\u{1F600}é", "\"delta\":\""];
    add(&mut kept, &said.map(|text| delta(0, text)));
    add(&mut kept, &[delta(1, "next"), thought(1, "hm"), thought(1, "m")]);
    kept.add(Instant::now(), Origin::Here, &json!({"type": "other", "delta": "x"})).unwrap();
    kept.add(Instant::now(), Origin::Here, &json!({"type": "other", "delta": "y"})).unwrap();
    add(&mut kept, &[delta(1, "back"), delta(1, "!")]);
    let rest = [
        (12..=12, json!(["text_delta", 1, "next"])),
        (13..=14, json!(["thinking_delta", 1, "hmm"])),
        (15..=15, json!("x")),
        (16..=16, json!("y")),
        (17..=18, json!(["text_delta", 1, "back!"])),
    ];
    for first in 0..said.len() {
        let start = (7 + first as u64..=11, json!(["text_delta", 0, said[first..].concat()]));
        let expected = [&[start], &rest[..]].concat();
        assert_eq!(shown(kept.since(6 + first as u64)), expected);
    }
    assert_eq!(shown(kept.since(13))[0], (14..=14, json!(["thinking_delta", 1, "m"])));
    assert_eq!(shown(kept.since(17)), [(18..=18, json!(["text_delta", 1, "!"]))]);
    assert_eq!(kept.since(18), Since::Events(vec![]));
    assert_eq!((kept.since(5), kept.since(19)), (Since::Gap(18), Since::Gap(18)));
}

#[test]
fn deltas_of_a_long_answer_are_several_events_with_the_form_of_one() {
    let mut kept = Kept::after(0);
    let words: Vec<String> = (0..3 * MOST_JOINED).map(|word| format!("w{word} ")).collect();
    add(&mut kept, &words.iter().map(|word| delta(0, word)).collect::<Vec<_>>());
    let events = shown(kept.since(0));
    let numbers: Vec<_> = events.iter().map(|(numbers, _)| numbers.clone()).collect();
    assert_eq!(numbers, [1..=64, 65..=128, 129..=192]);
    let said: String = events.iter().map(|(_, said)| said[2].as_str().unwrap()).collect();
    assert_eq!(said, words.concat());
    // Each of them alone would take its form too.
    let form = serde_json::to_string(&delta(0, "")).unwrap().len();
    assert_eq!(kept.bytes(), words.concat().len() + 3 * form);

    // Old ones go whole, and only while enough are left.
    kept.limit(100, usize::MAX);
    assert_eq!((kept.since(63), kept.since(64) != Since::Gap(192)), (Since::Gap(192), true));
    let large = "x".repeat(MOST_TEXT);
    add(&mut kept, &[delta(0, &large), delta(0, "y")]);
    let last = shown(kept.since(192)).into_iter().map(|(numbers, _)| numbers);
    assert_eq!(last.collect::<Vec<_>>(), [193..=193, 194..=194]);
    kept.limit(0, 0);
    assert_eq!((kept.bytes(), kept.since(194)), (0, Since::Events(vec![])));
}
