//! Compaction by hand: `myclaw sessions compact` and `/compact` in the chat.

use std::time::Duration;

use myclaw_session::{LockWait, SessionKey, SessionStore};
use myclaw_testkit::{ModelServer, Reply, RunningChild, Script, Signal, Step, TempHome};
use serde_json::{Value, json};

use crate::screen::{ask, chat_of, prompt_after};
use crate::{myclaw, run, serve};

/// A model that answers at length, and a home in which it has done so `turns` times in the session `trip`.
fn long_session(turns: usize) -> (ModelServer, TempHome) {
    let (server, home) = serve(Script::new());
    for turn in 0..turns {
        server.push(Reply::anthropic().text(format!("Answer {turn}. {}", "word ".repeat(100))));
        run(&home, &["run", "--session", "trip", &format!("question {turn}")]).assert_code(0);
    }
    (server, home)
}

fn summary() -> Reply {
    Reply::anthropic().text("They spoke of Rome.").usage(900, 8)
}

fn rows_of_type(home: &TempHome, kind: &str) -> Vec<Value> {
    home.only_transcript().into_iter().filter(|row| row["type"] == kind).collect()
}

#[test]
fn older_messages_become_a_summary_and_stay_readable() {
    let (server, home) = long_session(8);
    server.push(summary());
    let output = run(&home, &["sessions", "compact", "trip", "--focus", "the trains"]);
    output.assert_code(0);
    let stderr = output.stderr();
    assert_eq!((output.stdout(), stderr.lines().count()), (String::new(), 1), "{stderr}");
    assert!(stderr.starts_with("6 messages of `trip` became a summary: the model is sent about "));
    assert!(stderr.contains("`myclaw sessions show trip --all` shows them"), "{stderr}");
    let asked = server.last_request().body_text();
    assert!(asked.contains("Pay attention to this above all: the trains"), "{asked}");

    server.push(Reply::anthropic().text("Yes."));
    run(&home, &["run", "--session", "trip", "and now?"]).assert_code(0);
    let sent = server.last_request().body_text();
    assert!(sent.contains("They spoke of Rome.") && !sent.contains("question 2"), "{sent}");
    let all = run(&home, &["sessions", "show", "trip", "--all"]).stdout();
    assert!(all.contains("question 0") && all.contains("They spoke of Rome."), "{all}");
}

#[test]
fn the_status_line_of_the_chat_shows_the_smaller_context_and_the_price_of_the_summary() {
    let (server, home) = long_session(8);
    let mut terminal = chat_of(&myclaw(&home, &["--session", "trip"]), 120);
    server.push(Reply::anthropic().text("Yes.").usage(100_000, 8));
    terminal.send_line("go on");
    // With what the session has cost before.
    prompt_after(&mut terminal, " 50% of 200k · $0.3049");
    server.push(Reply::anthropic().text("They spoke of Rome.").usage(100_000, 8));
    terminal.send_line("/compact");
    terminal.expect_screen(|screen| {
        let status = screen.lines().rev().nth(1).unwrap_or_default();
        let percent = status.split("% of 200k").next().and_then(|text| text.rsplit(' ').next());
        percent.and_then(|text| text.parse::<u32>().ok()).is_some_and(|percent| percent < 10)
            && status.contains(" · $0.6050")
            && screen.ends_with("You:")
    });
}

#[test]
fn the_built_in_planner_says_that_it_is_no_model() {
    let home = TempHome::new();
    for _ in 0..7 {
        run(&home, &["run", "-q", "hello"]).assert_code(0);
    }
    let output = run(&home, &["sessions", "compact", "main", "--focus", " "]);
    output.assert_code(0);
    let stderr = output.stderr();
    assert!(stderr.starts_with("myclaw: builtin/demo answers: "), "{stderr}");
    assert!(stderr.contains("4 messages of `main` became a summary"), "{stderr}");
}

#[test]
fn the_result_is_reported_as_json() {
    let (server, home) = long_session(8);
    server.push(summary());
    let output = run(&home, &["sessions", "compact", "trip", "--json"]);
    output.assert_code(0);
    assert_eq!(output.stderr(), "");
    let mut line: Value = serde_json::from_str(&output.stdout()).expect("one JSON object");
    let entry = &rows_of_type(&home, "compaction")[0];
    assert_eq!(line["tokensBefore"], entry["tokensBefore"]);
    assert!(line["tokensAfter"].as_u64() < line["tokensBefore"].as_u64(), "{line}");
    for estimate in ["tokensBefore", "tokensAfter"] {
        line.as_object_mut().expect("an object").remove(estimate);
    }
    let expected = json!({
        "sessionKey": "agent:main:channel:cli:account:default:peer:direct:trip",
        "outcome": "done", "oldCount": 16, "newCount": 11, "summary": "They spoke of Rome.",
    });
    assert_eq!(line, expected);
    // What the summary cost counts for the day.
    let day = std::fs::read_to_string(home.state_directory().join("usage.json")).expect("a file");
    let day: Value = serde_json::from_str(&day).expect("JSON");
    assert_eq!(day["tokens"], 8 * 120 + 908);
}

#[test]
fn where_there_is_nothing_to_compact_nothing_changes() {
    let (server, home) = long_session(1);
    let before = home.only_transcript();
    let output = run(&home, &["sessions", "compact", "trip"]);
    output.assert_code(0);
    assert_eq!(
        output.stderr(),
        "nothing to compact: `trip` holds no message before the last one and its answer\n"
    );
    server.push(Reply::anthropic().text("Yes."));
    run(&home, &["run", "--session", "trip", "and now?"]).assert_code(0);
    server.push(Reply::anthropic().text("word ".repeat(900)));
    let output = run(&home, &["sessions", "compact", "trip", "--json"]);
    output.assert_code(0);
    let line: Value = serde_json::from_str(&output.stdout()).expect("one JSON object");
    assert_eq!((&line["outcome"], &line["summary"]), (&json!("not_shorter"), &Value::Null));
    assert_eq!(home.only_transcript().len(), before.len() + 2);
}

#[test]
fn a_model_that_fails_changes_nothing() {
    let (server, home) = long_session(8);
    let before = home.only_transcript();
    server.push(Step::status(
        401,
        &[],
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
    ));
    let output = run(&home, &["sessions", "compact", "trip"]);
    output.assert_code(4);
    assert!(output.stderr().starts_with("myclaw: anthropic/claude-sonnet-4-20250514: "));
    assert_eq!(home.only_transcript(), before);
}

#[test]
fn an_abort_leaves_the_session_as_it_was() {
    let (server, home) = long_session(8);
    let before = home.only_transcript();
    server.push(summary().step().stall_after(120));
    let child = RunningChild::spawn(&mut myclaw(&home, &["sessions", "compact", "trip"]));
    server.wait_for_requests_blocking(9);
    child.signal(Signal::Interrupt);
    let output = child.wait(Duration::from_secs(30));
    output.assert_code(130);
    assert_eq!(output.stderr(), "myclaw: aborted; the session is unchanged\n");
    assert_eq!(home.only_transcript(), before);
}

#[test]
fn a_session_that_another_process_runs_is_waited_for() {
    let (server, home) = long_session(8);
    let store = SessionStore::new(home.sessions_directory());
    let key = SessionKey::for_cli("main", "trip");
    let held = store.open(&key, LockWait::Fail).expect("the session");
    server.push(summary());
    let child = RunningChild::spawn(&mut myclaw(&home, &["sessions", "compact", "trip"]));
    child.wait_for_stderr("another process works in this session (process ");
    drop(held);
    child.wait(Duration::from_secs(30)).assert_code(0);
    assert_eq!(rows_of_type(&home, "compaction").len(), 1);
}

#[test]
fn hooks_are_asked_and_may_forbid_it() {
    let (server, home) = long_session(8);
    let mut config =
        TempHome::config_for(server.url(), myclaw_testkit::WireFormat::AnthropicMessages);
    let keep = "cat >> \"$HOME/reported\"";
    config["hooks"] = json!({
        "before_session_compact": [{"command": keep}], "session_compact": [{"command": keep}],
    });
    home.write_config(&config);
    server.push(summary());
    run(&home, &["sessions", "compact", "trip", "--focus", "trains"]).assert_code(0);
    let reported = TempHome::read_lines(&home.path().join("reported"));
    let seen: Vec<_> = reported.iter().map(|line| (&line["event"], &line["reason"])).collect();
    assert_eq!(
        seen,
        [
            (&json!("before_session_compact"), &json!("manual")),
            (&json!("session_compact"), &Value::Null)
        ]
    );
    assert_eq!(reported[0]["focus"], "trains");
    assert_eq!(reported[1]["summary"], "They spoke of Rome.");

    let forbid = r#"echo '{"decision":"block","reason":"an audit runs"}'"#;
    config["hooks"] = json!({"before_session_compact": [{"command": forbid}]});
    home.write_config(&config);
    server.push(Reply::anthropic().text("Yes."));
    run(&home, &["run", "--session", "trip", "more"]).assert_code(0);
    let output = run(&home, &["sessions", "compact", "trip"]);
    output.assert_code(1);
    let stderr = output.stderr();
    assert!(stderr.contains("forbids the compaction: an audit runs"), "{stderr}");
    assert!(stderr.ends_with("`trip` was not compacted: a hook forbids it\n"), "{stderr}");
}

#[test]
fn a_session_that_does_not_exist_is_named() {
    let output = run(&TempHome::new(), &["sessions", "compact", "nowhere"]);
    output.assert_code(1);
    assert!(output.stderr().contains("there is no session `nowhere`"), "{}", output.stderr());
}

#[test]
fn the_chat_compacts_line_by_line() {
    let (server, home) = long_session(8);
    server.push(summary());
    server.push(Reply::anthropic().text("Yes."));
    let input = "/compact the trains\nand now?\n/new other\n/compact\n";
    let output = RunningChild::run_with_input(&mut myclaw(&home, &["chat", "-s", "trip"]), input);
    output.assert_code(0);
    let stdout = output.stdout();
    assert!(stdout.starts_with("6 messages of `trip` became a summary: "), "{stdout}");
    assert!(stdout.contains("\nYes.\n"), "{stdout}");
    assert!(stdout.ends_with("nothing to compact: `other` holds no messages yet\n"), "{stdout}");
    let sent = server.last_request().body_text();
    assert!(sent.contains("They spoke of Rome.") && !sent.contains("question 2"), "{sent}");
    let listed = run(&home, &["sessions", "list"]).stdout();
    assert!(!listed.contains("other"), "{listed}");
}

#[test]
fn the_chat_shows_what_goes_on_and_survives_a_failure_and_an_abort() {
    let (server, home) = long_session(8);
    let mut terminal = chat_of(&myclaw(&home, &["chat", "-s", "trip"]), 100);
    server.push(Step::status(
        400,
        &[],
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
    ));
    ask(&mut terminal, "/compact", "myclaw: anthropic/claude-sonnet-4-20250514: ");
    server.push(summary().step().stall_after(120));
    terminal.send_line("/compact");
    terminal.expect("summarising");
    server.wait_for_requests_blocking(10);
    terminal.send("\x03");
    terminal.expect("aborted; the session is unchanged");
    terminal.expect("You: ");
    server.push(summary());
    ask(&mut terminal, "/compact", "6 messages of `trip` became a summary");
    terminal.send_line("/quit");
    assert!(terminal.wait().success());
}
