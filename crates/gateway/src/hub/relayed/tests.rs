//! Tests of events that come from several gateways.

use serde_json::value::to_raw_value;

use myclaw_delivery::front::Front as _;
use myclaw_engine::{Notice, RunOutcome, RunWork};

use super::super::Since;
use super::*;

fn raw(event: &Value) -> Box<RawValue> {
    to_raw_value(event).unwrap()
}

fn delta(text: &str) -> Box<RawValue> {
    raw(&json!({"type": "llm_stream", "event": {"type": "text_delta", "index": 0, "delta": text}}))
}

fn of_type(kind: &str) -> Box<RawValue> {
    raw(
        &json!({"type": kind, "work": "turn", "provider": "p", "model": "m", "outcome": "answered"}),
    )
}

/// The types of the events after a number, and what is between the quotes of their deltas.
fn seen(hub: &Hub, after: u64) -> Vec<String> {
    let Since::Events(events) = hub.since("s", after) else { return vec!["gap".to_owned()] };
    let of = |text: &str| {
        let event: Value = serde_json::from_str(text).unwrap();
        let delta = event["event"]["delta"].as_str();
        delta.or(event["type"].as_str()).unwrap().to_owned()
    };
    events.iter().map(|event| of(&event.text)).collect()
}

fn state(epoch: Option<u64>, text: &str) -> PeerState {
    let live = json!({"waiting": [], "reports": [], "step": {
        "model": "p/m", "blocks": {"0": {"type": "text", "text": text}}, "isComplete": false, "tools": []}});
    serde_json::from_value(json!({"epoch": epoch, "live": live})).unwrap()
}

#[test]
fn what_a_former_holder_sends_late_is_left_out() {
    let hub = Hub::new();
    let begin = hub.newest("s");
    let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
    for event in [of_type("run_start"), of_type("llm_start"), delta("first")] {
        hub.relay("s", (&one, Some(4)), &event);
    }
    assert!(hub.is_running("s"));
    for event in [of_type("run_start"), of_type("llm_start"), delta("second")] {
        hub.relay("s", (&two, Some(7)), &event);
    }
    hub.relay("s", (&one, Some(4)), &delta("late"));
    hub.relay("s", (&one, Some(4)), &of_type("run_end"));
    hub.adopt("s", &one, state(Some(4), "late"));
    hub.adopt("s", &one, state(None, "late"));
    assert_eq!(
        seen(&hub, begin),
        ["run_start", "llm_start", "first", "run_start", "notice", "llm_start", "second"]
    );
    let live = json!(hub.watch("s").live);
    assert_eq!(live["step"]["blocks"]["0"]["text"], "second");
}

/// An event of a run of this process.
fn of_run(run: RunId, kind: AgentRunEvent) -> RunEvent {
    let key = myclaw_session::SessionKey::parse("agent:main:main").unwrap();
    let mut event = RunEvent::notice(key, Notice::Interrupted {});
    (event.kind, event.run) = (kind, Some(run));
    event
}

#[test]
fn a_run_of_this_process_that_another_gateway_has_taken_over_shows_nothing_more() {
    let hub = Hub::new();
    let begin = hub.newest("s");
    let two: Arc<str> = "two".into();
    let (old, new) = (RunId::generate(), RunId::generate());
    let start = || AgentRunEvent::RunStart { work: RunWork::Turn };
    let end = || AgentRunEvent::RunEnd { outcome: RunOutcome::Aborted };
    hub.publish_run("s", &of_run(old, start()));
    hub.relay("s", (&two, Some(3)), &of_type("run_start"));
    hub.relay("s", (&two, Some(3)), &delta("theirs"));
    hub.publish_run("s", &of_run(old, end()));
    assert_eq!(seen(&hub, begin), ["run_start", "run_start", "notice", "theirs"]);
    assert!(hub.is_running("s"));
    // The other one dies, and the session comes back.
    hub.publish_run("s", &of_run(new, start()));
    hub.publish_run("s", &of_run(new, end()));
    assert_eq!(seen(&hub, begin)[4..], ["run_start", "notice", "run_end"]);
    assert!(!hub.is_running("s"));
}

#[test]
fn what_several_gateways_show_is_shown_once() {
    let hub = Hub::new();
    let begin = hub.newest("s");
    let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
    let accepted = json!({"type": "accepted", "messageId": "m1", "text": "hello", "images": 0, "acceptedAt": 1});
    let reply = json!({"type": "reply", "part": "p1", "text": "re"});
    let end = json!({"type": "message", "messageId": "m1", "outcome": {"state": "answered", "parts": []}});
    for source in [&one, &two] {
        for event in [&accepted, &reply, &end, &accepted] {
            hub.relay("s", (source, None), &raw(event));
        }
    }
    hub.reply("s", "p1", &reply);
    assert_eq!(seen(&hub, begin), ["accepted", "reply", "message"]);
    assert!(!json!(hub.watch("s").live)["waiting"].as_array().unwrap().iter().any(|_| true));
}

#[test]
fn who_watches_reads_anew_when_a_state_comes_later() {
    let hub = Hub::new();
    let begin = hub.newest("s");
    let one: Arc<str> = "one".into();
    // Nobody watches yet.
    hub.adopt("s", &one, state(Some(1), "so far"));
    assert_eq!(seen(&hub, begin), [""; 0]);
    let watching = hub.watch("s");
    assert_eq!(json!(watching.live)["step"]["blocks"]["0"]["text"], "so far");
    hub.adopt("s", &one, state(Some(1), "so far, and more"));
    assert!(watching.news.has_changed().unwrap());
    assert_eq!(seen(&hub, begin), ["gap"]);
    assert_eq!(json!(hub.watch("s").live)["step"]["blocks"]["0"]["text"], "so far, and more");
}

#[test]
fn clients_read_anew_when_events_may_be_missing_and_other_gateways_do_not() {
    let hub = Hub::new();
    let begin = hub.newest("s");
    hub.publish("s", &json!({"type": "notice"}));
    let (news, known) = (hub.watch("s").news, hub.newest("s"));
    hub.miss("s");
    assert!(news.has_changed().unwrap());
    // Also who has all events that are here.
    assert_eq!(hub.since("s", known), Since::Gap(known + 1));
    assert_eq!(seen(&hub, known + 1), [""; 0]);
    // Otherwise two gateways would have each other read without end.
    let Since::Events(own) = hub.own_since("s", begin) else { panic!("a gap for a gateway") };
    let own = own.iter().filter(|event| event.origin != Origin::Elsewhere);
    assert_eq!(own.count(), 1);
}

#[test]
fn a_run_of_which_nothing_more_can_come_ends_with_its_message() {
    let hub = Hub::new();
    let one: Arc<str> = "one".into();
    let end = json!({"type": "message", "messageId": "m1", "outcome": {"state": "answered", "parts": []}});
    hub.relay("s", (&one, Some(1)), &of_type("run_start"));
    let begin = hub.newest("s");
    hub.cut_off(&"another".into());
    hub.cut_off(&one);
    assert!(hub.is_running("s"), "the next holder may go on");
    hub.relay("s", (&"two".into(), None), &raw(&end));
    assert_eq!(seen(&hub, begin), ["run_end", "message"]);
    assert!(!hub.is_running("s"));
    hub.relay("s", (&one, Some(1)), &of_type("run_start"));
    hub.lose_sight("s");
    assert!(!hub.is_running("s"));
}
