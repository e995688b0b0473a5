//! `myclaw sessions fork`, `title`, `label`, and what `show` prints about branches and summaries.

use std::fs;

use myclaw_testkit::{ModelServer, Reply, Script, TempHome, validate_pairing};
use serde_json::{Value, json};

use crate::{run, serve};

/// A session with a tool call, in a home whose server then answers `later`.
fn home_with_tool_call(later: &[&str]) -> (TempHome, ModelServer) {
    let arguments = json!({"command": "echo 1"});
    let script = Script::new()
        .then(Reply::anthropic().text("Looking.").tool_call("call_1", "bash", arguments))
        .then(Reply::anthropic().text("One."));
    let script =
        later.iter().fold(script, |script, text| script.then(Reply::anthropic().text(*text)));
    let (server, home) = serve(script);
    run(&home, &["run", "What does it print?"]).assert_code(0);
    (home, server)
}

fn rows(home: &TempHome, arguments: &[&str]) -> Vec<Value> {
    let output = run(home, arguments);
    output.assert_code(0);
    output.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn texts(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["content"].as_str().or(row["summary"].as_str()).expect("a text"))
        .collect()
}

fn shown(home: &TempHome, name: &str) -> Vec<Value> {
    rows(home, &["sessions", "show", name, "--json"])
}

#[test]
fn a_fork_goes_on_by_itself_with_calls_and_results_paired() {
    let (home, server) = home_with_tool_call(&["Two ways.", "Third way."]);
    let id = shown(&home, "main")[1]["id"].as_str().expect("an id").to_owned();
    let output = run(&home, &["sessions", "fork", "main", "other", "--at", &id]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "");
    assert!(output.stderr().contains("after the results of the tools"), "{}", output.stderr());

    run(&home, &["run", "--session", "other", "And another way?"]).assert_code(0);
    let request = server.last_request();
    validate_pairing(&request).expect("a valid request");
    let results = request.messages()[2]["content"].to_string();
    assert!(results.contains("call_1") && results.contains("And another way?"), "{results}");
    run(&home, &["run", "And here?"]).assert_code(0);
    assert_eq!(
        texts(&shown(&home, "other")),
        ["What does it print?", "Looking.", "1", "And another way?", "Two ways."]
    );
    assert_eq!(shown(&home, "main").len(), 6);
    let text = run(&home, &["sessions", "show", "other"]).stdout();
    assert!(text.starts_with("(a fork of agent:main:"), "{text}");
    server.assert_finished();
}

#[test]
fn a_fork_of_a_running_tool_call_goes_on_with_a_result_that_says_so() {
    let (home, server) = home_with_tool_call(&["Never mind."]);
    // The parent is at its call: the result is only half written.
    let path = home.transcript_path("main");
    let text = fs::read_to_string(&path).expect("a transcript");
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("\"role\":\"tool\"")).expect("a result");
    fs::write(&path, lines[..at].join("\n") + "\n" + &lines[at][..20]).expect("written");
    run(&home, &["sessions", "fork", "main", "other"]).assert_code(0);
    run(&home, &["run", "--session", "other", "Still there?"]).assert_code(0);
    validate_pairing(&server.last_request()).expect("a valid request");
    assert_eq!(
        texts(&shown(&home, "other")),
        [
            "What does it print?",
            "Looking.",
            "[Tool result missing — session was interrupted]",
            "Still there?",
            "Never mind.",
        ]
    );
}

#[test]
fn a_fork_stays_when_its_parent_goes() {
    let (home, _server) = home_with_tool_call(&[]);
    run(&home, &["sessions", "fork", "main", "other"]).assert_code(0);
    let before = shown(&home, "other");
    run(&home, &["sessions", "delete", "main", "--yes"]).assert_code(0);
    assert_eq!(shown(&home, "other"), before);
    let listed = rows(&home, &["sessions", "list", "--json"]);
    assert_eq!(listed.len(), 1);
    assert_eq!(
        listed[0]["extra"]["forkedFrom"],
        "agent:main:channel:cli:account:default:peer:direct:main"
    );
    run(&home, &["sessions", "delete", "other", "--yes"]).assert_code(0);
    let left: Vec<_> = fs::read_dir(home.sessions_directory()).expect("a directory").collect();
    assert_eq!(left.len(), 1, "only the index: {left:?}");
}

#[test]
fn a_fork_that_is_not_possible_is_reported_and_changes_nothing() {
    let (home, _server) = home_with_tool_call(&[]);
    run(&home, &["sessions", "fork", "main", "other"]).assert_code(0);
    for (arguments, code, message) in [
        (&["maim", "new"][..], 1, "did you mean `main`?"),
        (&["main", "other"], 1, "already"),
        (&["main", "main"], 1, "already"),
        (&["main", "new", "--at", "0000"], 1, "has no entry 0000"),
        (&["main", "new", "--at", " "], 2, "is empty"),
        (&["main", "a:b:c:d:e"], 2, "a:b:c:d:e"),
    ] {
        let output = run(&home, &[&["sessions", "fork"], arguments].concat());
        output.assert_code(code);
        assert!(output.stderr().contains(message), "{arguments:?}: {}", output.stderr());
    }
    assert_eq!(rows(&home, &["sessions", "list", "--json"]).len(), 2);
}

#[test]
fn what_a_summary_replaced_can_still_be_read() {
    let (home, _server) = home_with_tool_call(&[]);
    let path = home.transcript_path("main");
    let mut text = fs::read_to_string(&path).expect("a transcript");
    let last = shown(&home, "main")[3]["id"].clone();
    let summary = json!({
        "type": "compaction", "id": "sum", "ts": 1, "summary": "They looked.", "firstKeptId": last,
        "tokensBefore": 9, "oldCount": 4, "newCount": 2,
    });
    text.push_str(&format!("{summary}\n"));
    fs::write(&path, text).expect("written");
    assert_eq!(texts(&shown(&home, "main")), ["They looked.", "One."]);
    let all = rows(&home, &["sessions", "show", "main", "--json", "--all"]);
    assert_eq!(texts(&all), ["What does it print?", "Looking.", "1", "One.", "They looked."]);
    let text = run(&home, &["sessions", "show", "main"]).stdout();
    assert!(
        text.starts_with("(what came before is summarised; `myclaw sessions show main --all`"),
        "{text}"
    );
    let last = rows(&home, &["sessions", "show", "main", "--json", "--last", "3"]);
    assert_eq!(texts(&last), ["Looking.", "1", "One."]);
}

#[test]
fn titles_and_labels_are_listed_and_kept_without_the_index() {
    let (home, _server) = home_with_tool_call(&[]);
    run(&home, &["sessions", "title", "main", "Rome by train"]).assert_code(0);
    let output = run(&home, &["sessions", "label", "main", "travel", "2026", "travel"]);
    output.assert_code(0);
    assert_eq!(output.stderr(), "`main` has the labels 2026, travel\n");
    fs::remove_file(home.sessions_directory().join("sessions.json")).expect("an index");
    let table = run(&home, &["sessions", "list"]).stdout();
    assert!(table.contains("Rome by train [2026] [travel]"), "{table}");
    run(&home, &["sessions", "fork", "main", "other"]).assert_code(0);
    let labelled =
        rows(&home, &["sessions", "list", "--json", "--label", "2026", "--label", "travel"]);
    assert_eq!(labelled.len(), 1, "a fork has no labels of its own yet");
    assert_eq!(
        (&labelled[0]["title"], &labelled[0]["labels"]),
        (&json!("Rome by train"), &json!(["2026", "travel"]))
    );

    run(&home, &["sessions", "label", "main", "2026", "travel", "--remove"]).assert_code(0);
    run(&home, &["sessions", "name", "main"]).assert_code(0);
    let listed = rows(&home, &["sessions", "list", "--json", "--limit", "2"]);
    assert!(listed.iter().all(|session| session.get("title").is_none()), "{listed:?}");
}

#[test]
fn bad_titles_and_labels_are_refused() {
    let (home, _server) = home_with_tool_call(&[]);
    let long = "x".repeat(201);
    let labels: Vec<String> = (0..33).map(|number| format!("l{number}")).collect();
    let mut many = vec!["label", "main"];
    many.extend(labels.iter().map(String::as_str));
    for (arguments, code, message) in [
        (&["title", "main", &long][..], 2, "at most 200 characters"),
        (&["title", "main", "a\nb"], 2, "one line"),
        (&["label", "main", " "], 2, "one line"),
        (&many, 2, "at most 32 labels"),
        (&["label", "nobody", "x"], 1, "there is no session `nobody`"),
    ] {
        let output = run(&home, &[&["sessions"], arguments].concat());
        output.assert_code(code);
        assert!(output.stderr().contains(message), "{arguments:?}: {}", output.stderr());
    }
}

#[test]
fn a_title_holds_although_the_list_cannot_be_written() {
    let (home, _server) = home_with_tool_call(&[]);
    // In the place of the journal of the list.
    let lock = home.sessions_directory().join("sessions.journal");
    drop(fs::remove_file(&lock));
    fs::create_dir(&lock).expect("a directory");
    for (arguments, reported) in [
        (&["sessions", "title", "main", "Numbers"][..], "saved, but not yet in the list"),
        (&["sessions", "label", "main", "work"], "has the labels work"),
    ] {
        let output = run(&home, arguments);
        output.assert_code(0);
        assert!(output.stderr().contains(reported), "{}", output.stderr());
    }
    fs::remove_dir(&lock).expect("removed");
    run(&home, &["sessions", "label", "main", "home"]).assert_code(0);
    let listed = rows(&home, &["sessions", "list", "--json"]);
    assert_eq!(
        (&listed[0]["title"], &listed[0]["labels"]),
        (&json!("Numbers"), &json!(["home", "work"]))
    );
}
