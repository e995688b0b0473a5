//! Forms that an MCP server wants to have filled in: asked for field by field in every front-end, and again after a kill.

use std::time::Duration;

use myclaw_testkit::{ModelServer, RunningChild, Signal, TempHome, Terminal, send_signal};
use serde_json::{Value, json};

use crate::mcp::{approve, calls, home_of};
use crate::mcp_serve::Client;
use crate::screen::{chat, leave};
use crate::{last_message, myclaw, run};

const PATIENCE: Duration = Duration::from_secs(60);
/// The modes of the server, one for each way to ask.
const MODES: [&str; 2] = ["sessions", "stateless"];

/// A form with fields of three kinds, of which the last may be left out.
fn form() -> Value {
    json!({
        "mode": "form", "message": "Where shall it go?",
        "requestedSchema": {
            "type": "object", "required": ["branch", "size"],
            "properties": {
                "branch": {"type": "string", "title": "Branch", "minLength": 3},
                "size": {"type": "string", "enum": ["small", "large"]},
                "note": {"type": "string", "description": "For the log"},
            },
        },
    })
}

/// A form with one field.
fn short_form() -> Value {
    json!({
        "mode": "form", "message": "How many?",
        "requestedSchema": {
            "type": "object", "required": ["count"],
            "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 5}},
        },
    })
}

/// A home with a server in `mode`, and a model that calls the tool that asks this.
fn asking(mode: &str, question: &Value) -> (TempHome, ModelServer) {
    let server = calls(&[("faults__ask", json!({"text": question.to_string()}))]);
    let (home, _) = home_of(&server, mode, |_| {});
    approve(&home);
    (home, server)
}

fn check(server: &ModelServer, words: &[&str]) {
    let read = last_message(server);
    for word in words {
        assert!(read.contains(word), "{word}: {read}");
    }
}

#[test]
fn the_chat_asks_field_by_field_and_checks_each_answer() {
    for mode in MODES {
        let (home, server) = asking(mode, &form());
        let mut terminal = chat(&home);
        terminal.send_line("go");
        terminal.expect("faults__ask asks: Where shall it go?");
        terminal.expect("field 1 of 3: Branch");
        terminal.expect("Write Branch, /decline or /cancel:");
        terminal.send_line("ab");
        terminal.expect("your answer does not fit: it must be a text, at least 3 characters");
        // What looks like a command is none between quotation marks.
        terminal.send_line("\"/main\"");
        terminal.expect("field 2 of 3: size");
        terminal.expect("Write size (small, large), /decline or /cancel:");
        terminal.send_line("Large");
        terminal.expect("about it: For the log");
        terminal.expect("Write note, - for no value, /decline or /cancel:");
        terminal.send_line("-");
        terminal.expect("a yes sends Branch: /main");
        terminal.expect("a yes sends size: large");
        terminal.expect("(o)nce");
        terminal.send_line("o");
        terminal.expect("Done.");
        terminal.expect("You: ");
        leave(&mut terminal);
        check(&server, &["action: accept", "'branch': '/main'", "'size': 'large'}"]);
        assert!(run(&home, &["approvals", "list"]).stdout().contains("no approvals"));
    }
}

#[test]
fn a_form_is_declined_or_closed_in_the_chat_and_the_server_and_the_model_learn_which() {
    for (said, heard) in [
        ("/decline", &["action: decline", "before it answered, and the user said no"][..]),
        ("/cancel", &["action: cancel", "before it answered, and the user closed the question"]),
    ] {
        let (home, server) = asking("sessions", &short_form());
        let mut terminal = chat(&home);
        terminal.send_line("go");
        terminal.expect("expected: a whole number from 1 to 5");
        terminal.send_line(said);
        terminal.expect("Done.");
        terminal.expect("You: ");
        leave(&mut terminal);
        check(&server, heard);
    }
}

#[test]
fn a_run_on_a_terminal_reads_a_line() {
    let (home, server) = asking("stateless", &short_form());
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &["run", "go"]), 100, 30);
    terminal.expect("faults__ask asks: How many?");
    terminal.expect("Write count, /decline or /cancel:");
    // The key that removes a character does so.
    terminal.send("7\u{7f}9\r");
    terminal.expect("your answer does not fit: it must be a whole number from 1 to 5");
    terminal.expect("Write count, /decline or /cancel:");
    terminal.send("\r");
    terminal.expect("Write count, /decline or /cancel:");
    terminal.send("12\u{7f}\r");
    assert!(terminal.wait().success());
    check(&server, &["action: accept", "'count': 1}"]);
}

#[test]
fn a_program_answers_with_words_and_not_with_a_yes() {
    let (home, server) = asking("sessions", &short_form());
    let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &["rpc"]));
    child.send("{\"type\":\"prompt\",\"message\":\"go\"}\n");
    let asked: Value =
        serde_json::from_str(&child.wait_for_stdout_line("approval_requested")).unwrap();
    assert_eq!(asked["wants"], json!({"label": "count"}), "{asked}");
    let mut answer = |id: &str, decision: &str, words: Option<&str>| {
        let line = json!({"id": id, "type": "approve", "toolCallId": asked["toolCallId"], "decision": decision, "words": words});
        child.send(&format!("{line}\n"));
        child.wait_for_stdout_line(&format!("\"id\":\"{id}\""))
    };
    assert!(answer("one", "once", None).contains("wants words"));
    assert!(answer("two", "words", Some("3")).contains("\"success\":true"));
    child.wait_for_stdout("Done.");
    drop(child);
    check(&server, &["action: accept", "'count': 3}"]);
}

#[test]
fn another_agent_that_asked_is_shown_a_form_with_one_field() {
    for (said, heard) in [
        (json!({"action": "accept", "content": {"answer": "4"}}), "'count': 4}"),
        (json!({"action": "cancel"}), "action: cancel"),
    ] {
        let (home, server) = asking("stateless", &short_form());
        let mut client = Client::begin(&home, &json!({"elicitation": {}}));
        let go = json!({"name": "ask", "arguments": {"message": "go", "session": "main"}});
        let id = client.request("tools/call", &go);
        let asked = client.question();
        let schema = &asked["params"]["requestedSchema"];
        let fields = json!({"answer": {"type": "string", "title": "count"}});
        assert_eq!((&schema["properties"], &schema["required"]), (&fields, &json!(["answer"])));
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": said}));
        client.answer(id);
        check(&server, &[heard]);
        client.end();
    }
}

#[test]
fn a_question_ends_with_its_call_when_the_turn_is_stopped() {
    let (home, _server) = asking("sessions", &short_form());
    let mut terminal = chat(&home);
    terminal.send_line("go");
    terminal.expect("Write count, /decline or /cancel:");
    assert!(run(&home, &["approvals", "list"]).stdout().starts_with("waiting"));
    terminal.send("\u{1b}");
    terminal.expect("You: ");
    leave(&mut terminal);
    assert!(run(&home, &["approvals", "list"]).stdout().contains("no approvals"));
}

#[test]
fn nobody_to_ask_means_no() {
    let (home, server) = asking("stateless", &form());
    run(&home, &["run", "go"]).assert_code(0);
    check(&server, &["action: decline", "which is not possible; the question was declined"]);
}

/// The call of a server with sessions begins again, with the answer that the user gives first; that of one without sessions
/// continues with what the server wanted to see again.
#[test]
fn a_question_survives_a_kill_and_its_call_goes_on_with_the_answer() {
    for mode in MODES {
        for (said, heard) in [
            ("2", &["action: accept, state: opaque, content: {'count': 2}"][..]),
            ("/decline", &["before it answered, and the user said no"]),
        ] {
            let (home, server) = asking(mode, &short_form());
            let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &["rpc"]));
            child.send("{\"type\":\"prompt\",\"message\":\"go\"}\n");
            child.wait_for_stdout("approval_requested");
            send_signal(child.id(), Signal::Kill);
            child.wait(PATIENCE);
            let waiting = run(&home, &["approvals", "list"]);
            assert!(waiting.stdout().contains("How many?"), "{}", waiting.stdout());
            let mut terminal = chat(&home);
            terminal.send_line("and now?");
            terminal.expect("faults__ask asks: How many?");
            terminal.expect("Write count, /decline or /cancel:");
            let again = terminal.text().contains("again: this was asked when MyClaw ended.");
            assert_eq!(again, mode == "sessions", "{}", terminal.text());
            terminal.send_line(said);
            terminal.expect("Done.");
            terminal.expect("You: ");
            leave(&mut terminal);
            let asked = server.last_request().json().to_string();
            for words in heard {
                assert!(asked.contains(words), "{mode} {words}: {asked}");
            }
            let rows = home.only_transcript();
            let roles: Vec<&str> = rows.iter().filter_map(|row| row["role"].as_str()).collect();
            assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"], "{mode}");
            assert!(run(&home, &["approvals", "list"]).stdout().contains("no approvals"));
        }
    }
}

/// A program that cannot ask anybody reports the call as interrupted.
#[test]
fn a_question_that_nobody_can_be_asked_again_ends_with_the_next_run() {
    let (home, server) = asking("sessions", &short_form());
    let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &["rpc"]));
    child.send("{\"type\":\"prompt\",\"message\":\"go\"}\n");
    child.wait_for_stdout("approval_requested");
    send_signal(child.id(), Signal::Kill);
    child.wait(PATIENCE);
    run(&home, &["run", "and now?"]).assert_code(0);
    let asked = server.last_request().json().to_string();
    assert!(asked.contains("session was interrupted"), "{asked}");
    assert!(run(&home, &["approvals", "list"]).stdout().contains("no approvals"));
}
