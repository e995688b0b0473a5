//! Tests of bindings and commands.

use myclaw_channels::{Chat, Sender};

use super::bindings::weight;
use super::*;

fn arrival(kind: ChatKind, account: &str) -> Arrival {
    Arrival {
        channel: "telegram".to_owned(),
        account: account.to_owned(),
        chat: Chat { id: "-5".to_owned(), kind, ..Chat::default() },
        source_id: "1".to_owned(),
        reply_id: None,
        sender: Sender {
            id: "7".to_owned(),
            name: None,
            handle: Some("Ann".to_owned()),
            other_id: None,
        },
        text: "x".to_owned(),
        attachments: Vec::new(),
        mentions_me: false,
        edits: None,
        reply_to: None,
        passages: Vec::new(),
        ..Arrival::default()
    }
}

fn binding(matches: &Value) -> myclaw_config::Binding {
    serde_json::from_value(json!({"agentId": "a", "match": matches})).expect("a binding")
}

#[test]
fn a_binding_fits_by_everything_that_it_names() {
    let direct = arrival(ChatKind::Direct, "work");
    let group = arrival(ChatKind::Group, "work");
    for (rule, of_direct, of_group) in [
        (json!({"channel": "telegram"}), Some(0), Some(0)),
        (json!({"channel": "webhook"}), None, None),
        (json!({"channel": "telegram", "account": "work"}), Some(1), Some(1)),
        (json!({"channel": "telegram", "account": "home"}), None, None),
        (json!({"channel": "telegram", "peer": 7}), Some(2), None),
        (json!({"channel": "telegram", "peer": "@ann"}), Some(2), None),
        (json!({"channel": "telegram", "peer": "@bob"}), None, None),
        (json!({"channel": "telegram", "group": -5}), None, Some(2)),
        (json!({"channel": "telegram", "group": "-5", "account": "work"}), None, Some(3)),
    ] {
        let binding = binding(&rule);
        assert_eq!(weight(&binding.matches, &direct), of_direct, "{rule}");
        assert_eq!(weight(&binding.matches, &group), of_group, "{rule}");
    }
}

#[test]
fn any_id_of_a_person_and_of_a_group_counts() {
    let mut direct = arrival(ChatKind::Direct, "work");
    direct.sender.other_id = Some("11aa".to_owned());
    let mut group = arrival(ChatKind::Group, "work");
    group.chat.other_id = Some("-1009".to_owned());
    let fits = |rule: &Value, arrival| weight(&binding(rule).matches, arrival).is_some();
    assert!(fits(&json!({"channel": "telegram", "peer": "11aa"}), &direct));
    assert!(!fits(&json!({"channel": "telegram", "peer": "22bb"}), &direct));
    for id in [-5, -1009] {
        assert!(fits(&json!({"channel": "telegram", "group": id}), &group), "{id}");
    }
    assert!(!fits(&json!({"channel": "telegram", "group": -6}), &group));
}

#[test]
fn what_is_passed_on_is_no_command() {
    let mut forward = Arrival { text: "/new".to_owned(), ..arrival(ChatKind::Direct, "work") };
    let command = |arrival: &Arrival| Command::of(arrival, &route_of(arrival), &Persona::default());
    assert_eq!(command(&forward), Some(Command::New));
    let file = myclaw_channels::Attachment::new(None, None);
    forward.attachments = vec![file.clone().of(myclaw_channels::FileOf::Answered)];
    assert_eq!(command(&forward), Some(Command::New), "the file of an answered message");
    forward.attachments = vec![file];
    assert_eq!(command(&forward), None);
    forward.attachments.clear();
    forward.passages = vec![myclaw_channels::Passage::default()];
    assert_eq!(command(&forward), None);
}

#[test]
fn a_command_may_stand_behind_a_call_of_the_agent() {
    let mut named = Persona::default();
    named.identity.name = Some("Claw".to_owned());
    let mut matched = named.clone();
    matched.group_chat.mention_patterns =
        Some(["@?robin", "(hey )?you"].map(str::to_owned).to_vec());
    let [new, stop] = [Command::New, Command::Stop].map(Some);
    for (text, of_named, of_matched) in [
        ("/new", new, new),
        (" !stop ", stop, stop),
        ("Claw, /new", new, None),
        (" @claw !stop", stop, None),
        ("CLAW: /new", new, None),
        ("@robin /new", None, new),
        ("Robin : !stop", None, stop),
        ("hey you, /new", None, new),
        ("clawfoot /new", None, None),
        ("say claw /new", None, None),
        ("Claw, robin, /new", None, None),
        ("Claw, /new please", None, None),
        ("robin", None, None),
        (":/new", None, None),
    ] {
        let arrival = Arrival { text: text.to_owned(), ..arrival(ChatKind::Group, "work") };
        let command = |persona| Command::of(&arrival, &route_of(&arrival), persona);
        assert_eq!([command(&named), command(&matched)], [of_named, of_matched], "{text}");
    }
}
