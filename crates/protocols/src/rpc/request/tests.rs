use serde_json::{Value, json};

use super::{Block, COMMANDS, Command, Request, Spoken};

fn parse(line: &Value) -> Command {
    Request::parse(&line.to_string()).1.expect("a request").command
}

#[test]
fn every_name_is_a_command() {
    for (name, _) in COMMANDS {
        let (_, outcome) = Request::parse(&json!({"type": name}).to_string());
        // What it needs may be missing, but it is known.
        let is_known = outcome.as_ref().map_or_else(
            |bad| bad.class == "usage" && bad.message.contains("missing field"),
            |request| request.name == name,
        );
        assert!(is_known, "{name}: {outcome:?}");
    }
}

#[test]
fn a_message_has_two_names_and_two_forms() {
    for field in ["message", "content"] {
        let Command::Steer(message) = parse(&json!({"type": "steer", field: "Stop"})) else {
            panic!("no steer");
        };
        assert!(matches!(message.message, Spoken::Text(text) if text == "Stop"));
    }
    let blocks = json!([{"type": "text", "text": "See"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]);
    let Command::FollowUp(message) = parse(&json!({"type": "follow_up", "content": blocks})) else {
        panic!("no follow-up");
    };
    let Spoken::Blocks(blocks) = message.message else { panic!("no blocks") };
    assert!(matches!(&blocks[..], [Block::Text { .. }, Block::Image(_)]));
}

#[test]
fn a_model_is_named_whole_or_in_parts() {
    for (line, provider) in [
        (json!({"type": "set_model", "model": "anthropic/claude-sonnet-4"}), None),
        (json!({"type": "set_model", "provider": "openai", "modelId": "gpt-5"}), Some("openai")),
    ] {
        let Command::SetModel(wanted) = parse(&line) else { panic!("no set_model") };
        assert_eq!(wanted.provider.as_deref(), provider);
    }
}

#[test]
fn a_bad_line_is_reported_with_its_id() {
    let cases = [
        ("nonsense", "parse", "not JSON", Value::Null),
        ("[1]", "parse", "no object", Value::Null),
        (r#"{"id":1}"#, "parse", "`type`", json!(1)),
        (r#"{"id":"a","type":"sterr"}"#, "unknown_command", "did you mean `steer`", json!("a")),
        (r#"{"id":2,"type":"prompt"}"#, "usage", "missing field", json!(2)),
        (r#"{"id":3,"type":"prompt","message":7}"#, "usage", "neither text nor", json!(3)),
        (r#"{"id":4,"type":"abort","session":7}"#, "usage", "`session`", json!(4)),
        (r#"{"id":5,"type":"prompt","message":"x","mode":"soon"}"#, "usage", "soon", json!(5)),
        (
            r#"{"id":6,"type":"prompt","message":"x","modes":"steer"}"#,
            "usage",
            "did you mean `mode`",
            json!(6),
        ),
        (r#"{"id":7,"type":"abort","force":true}"#, "usage", "it has none", json!(7)),
    ];
    for (line, class, words, id) in cases {
        let (found_id, outcome) = Request::parse(line);
        let bad = outcome.expect_err(line);
        let kind = serde_json::from_str::<Value>(line)
            .ok()
            .and_then(|line| line["type"].as_str().map(str::to_owned));
        assert_eq!(bad.name, kind.unwrap_or_else(|| "parse".to_owned()), "{line}");
        assert_eq!(bad.class, class, "{line}: {}", bad.message);
        assert!(bad.message.contains(words), "{line}: {}", bad.message);
        assert_eq!(found_id.unwrap_or_default(), id, "{line}");
    }
}

#[test]
fn every_field_of_the_list_is_one_of_its_command() {
    // A field that no command reads would be accepted and ignored.
    let source = include_str!("../request.rs");
    for field in COMMANDS.iter().flat_map(|(_, fields)| *fields) {
        let snake: String = field
            .chars()
            .flat_map(
                |c| if c.is_uppercase() { vec!['_', c.to_ascii_lowercase()] } else { vec![c] },
            )
            .collect();
        let is_read = source.contains(&format!("pub(super) {snake}:"))
            || source.contains(&format!("alias = \"{field}\""));
        assert!(is_read, "{field}");
    }
}
