//! `myclaw sessions search` and `list --search`.

use std::fs;

use myclaw_testkit::TempHome;
use serde_json::{Value, json};

use crate::run;

/// Three sessions with known ids and times.
fn home_with_sessions() -> TempHome {
    let home = TempHome::new();
    for (key, rows) in [
        (
            "agent:main:channel:cli:account:default:peer:direct:trip",
            &[
                ("a1", "user", "The train to \"Rome\"", 1000),
                ("a2", "assistant", "It leaves at 9.", 2000),
            ][..],
        ),
        (
            "agent:main:channel:cli:account:default:peer:direct:work",
            &[("b1", "user", "No TRAIN today\u{1b}[2J", 3000)],
        ),
        (
            "agent:ops:channel:cli:account:default:peer:direct:ops",
            &[("c1", "user", "A train of thought", 4000)],
        ),
    ] {
        let mut text = format!(
            "{}\n",
            json!({"type": "session", "version": 1, "sessionKey": key, "createdAt": 1})
        );
        for (id, role, content, ts) in rows {
            text.push_str(&format!(
                "{}\n",
                json!({"id": id, "role": role, "content": content, "ts": ts})
            ));
        }
        home.write(format!(".myclaw/sessions/{}.jsonl", key.replace(':', "__")), text);
    }
    home
}

fn found(home: &TempHome, arguments: &[&str]) -> Vec<Value> {
    let output = run(home, &[&["sessions", "search", "--json"], arguments].concat());
    output.assert_code(0);
    output.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn ids(home: &TempHome, arguments: &[&str]) -> Vec<String> {
    found(home, arguments).iter().map(|hit| hit["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn messages_are_found_by_text_expression_and_agent() {
    let home = home_with_sessions();
    assert_eq!(ids(&home, &["train"]), ["c1", "a1"]);
    assert_eq!(ids(&home, &["train", "--ignore-case"]), ["c1", "b1", "a1"]);
    assert_eq!(ids(&home, &["train", "-i", "--agent", "Main"]), ["b1", "a1"]);
    assert_eq!(ids(&home, &["^(a|the) train", "-i", "--regex"]), ["c1", "a1"]);
    assert_eq!(ids(&home, &["to \"Rome\""]), ["a1"]);
    assert_eq!(ids(&home, &["t.ain"]), Vec::<String>::new());
    assert_eq!(
        found(&home, &["Rome"]),
        [json!({
            "name": "trip", "key": "agent:main:channel:cli:account:default:peer:direct:trip", "id": "a1",
            "role": "user", "ts": 1000, "before": "The train to \"", "matched": "Rome", "after": "\"",
        })]
    );
}

#[test]
fn more_finds_than_the_limit_are_reported() {
    let home = home_with_sessions();
    let output = run(&home, &["sessions", "search", "train", "-i", "--limit", "1"]);
    output.assert_code(0);
    assert_eq!(output.stdout().lines().nth(1), Some("  A train of thought"));
    assert_eq!(output.stderr(), "3 messages in 3 sessions match; `--limit` shows more than 1\n");
    let nothing = run(&home, &["sessions", "search", "plane"]);
    nothing.assert_code(0);
    assert_eq!(
        (nothing.stdout(), nothing.stderr()),
        (String::new(), "nothing was found\n".to_owned())
    );
}

#[test]
fn labels_and_texts_narrow_the_list() {
    let home = home_with_sessions();
    run(&home, &["sessions", "label", "trip", "travel"]).assert_code(0);
    assert_eq!(ids(&home, &["train", "-i", "--label", "travel"]), ["a1"]);
    let names = |arguments: &[&str]| -> Vec<String> {
        let output = run(&home, &[&["sessions", "list", "--json"], arguments].concat());
        let name = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["name"].clone();
        let mut names: Vec<String> = output
            .stdout()
            .lines()
            .map(|line| name(line).as_str().expect("a name").to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&["--search", "train"]).len(), 3);
    assert_eq!(names(&["--search", "rome"]), ["trip"]);
    assert_eq!(names(&["--search", "train", "--agent", "main"]), ["trip", "work"]);
    assert_eq!(names(&["--label", "travel", "--search", "thought"]), Vec::<String>::new());
    assert_eq!(names(&["--limit", "2"]).len(), 2);
}

#[test]
fn a_search_that_is_not_possible_is_reported() {
    let home = home_with_sessions();
    for (arguments, message) in
        [(&[""][..], "empty"), (&["(", "--regex"], "not a regular expression")]
    {
        let output = run(&home, &[&["sessions", "search"], arguments].concat());
        output.assert_code(2);
        assert!(output.stderr().contains(message), "{arguments:?}: {}", output.stderr());
    }
    let empty = TempHome::new();
    run(&empty, &["sessions", "search", "x"]).assert_code(0);
    assert_eq!(fs::read_dir(empty.path()).expect("the home").count(), 0);
}
