//! Permission modes, through the program: what they forbid and ask about, where they are shown, and that they last.

use std::fs;
use std::process::Command;

use myclaw_testkit::{ModelServer, TempHome};
use serde_json::{Value, json};

use crate::approvals::home_asking;
use crate::rpc::Client;
use crate::run;
use crate::screen::{ask, chat, leave, prompt_after};

const WRITE: &str = "write";

fn writing() -> Value {
    json!({"path": "made.txt", "content": "x"})
}

/// A home whose model answers each message with a call of `write`.
fn home_writing() -> (TempHome, ModelServer) {
    home_asking(&json!({}), WRITE, writing())
}

/// Ends a program at once, as a crash does.
fn kill(id: u32) {
    assert!(Command::new("kill").args(["-9", &id.to_string()]).status().expect("kill").success());
}

/// The last result that the model got.
fn last_result(server: &ModelServer) -> String {
    json!(server.last_request().messages().last()).to_string()
}

fn is_made(home: &TempHome) -> bool {
    home.workspace().join("made.txt").exists()
}

#[test]
fn a_mode_refuses_by_its_name_and_lasts_beyond_kills_and_a_lost_list() {
    let (home, server) = home_writing();
    let output = run(&home, &["run", "--mode", "read-only", "--json", "go"]);
    output.assert_code(0);
    assert!(!is_made(&home));
    let result = last_result(&server);
    assert!(result.contains("mode read-only") && result.contains("only the user"), "{result}");
    let events: Vec<Value> =
        output.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(events.iter().all(|event| event["mode"] == "read-only"), "{}", output.stdout());
    let rows = home.only_transcript();
    let said = rows.iter().find(|row| row["role"] == "user").expect("a message");
    assert_eq!(said["meta"]["mode"], "read-only");
    // The model reads it with the message.
    let first = json!(server.requests()[0].messages()).to_string();
    assert!(first.contains("<mode>read-only: "), "{first}");
    // It is that of the session from then on.
    run(&home, &["run", "go"]).assert_code(0);
    assert!(!is_made(&home));
    // Even if the list of sessions is lost: the log has it.
    for entry in fs::read_dir(home.sessions_directory()).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|end| end != "jsonl") && path.is_file() {
            fs::remove_file(path).expect("removed");
        }
    }
    run(&home, &["run", "go"]).assert_code(0);
    assert!(!is_made(&home), "{}", last_result(&server));
    // Until it is changed. The prompt and the tools are the same in all modes.
    run(&home, &["run", "--mode", "auto", "go"]).assert_code(0);
    assert!(is_made(&home));
    let requests = server.requests();
    let (before, after) = (requests[0].json(), requests[requests.len() - 1].json());
    assert_eq!(before["tools"], after["tools"]);
    assert_eq!(before["system"], after["system"]);
}

#[test]
fn no_mode_allows_what_the_config_denies() {
    let (home, server) = home_asking(&json!({"deny": [WRITE]}), WRITE, writing());
    for mode in ["auto", "ask", "sandbox"] {
        run(&home, &["run", "--mode", mode, "go"]).assert_code(0);
        let result = last_result(&server);
        assert!(result.contains("tools.deny"), "{mode}: {result}");
    }
    assert!(!is_made(&home));
}

#[test]
fn ask_asks_where_somebody_can_answer_and_reading_is_free() {
    let (home, server) = home_writing();
    run(&home, &["run", "--mode", "ask", "go"]).assert_code(0);
    assert!(!is_made(&home));
    assert!(last_result(&server).contains("cannot ask anybody"), "{}", last_result(&server));
    let mut terminal = chat(&home);
    prompt_after(&mut terminal, "mode ask: ");
    terminal.send_line("go");
    terminal.expect("the mode ask asks before each change");
    terminal.expect("your answer, and Enter");
    terminal.send_line("o");
    prompt_after(&mut terminal, "Done.");
    assert!(is_made(&home));
    leave(&mut terminal);
    let (home, _server) = home_asking(&json!({}), "ls", json!({"path": "."}));
    run(&home, &["run", "--mode", "ask", "go"]).assert_code(0);
    run(&home, &["run", "--mode", "read-only", "go"]).assert_code(0);
    let rows = home.only_transcript();
    let results: Vec<&Value> = rows.iter().filter(|row| row["role"] == "tool").collect();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|row| row["meta"]["isError"] == false), "{results:?}");
}

#[test]
fn a_key_changes_the_mode_at_the_prompt_and_during_a_turn_and_the_status_line_shows_it() {
    let (home, _server) = home_writing();
    let mut terminal = chat(&home);
    ask(&mut terminal, "/mode", "* auto");
    ask(&mut terminal, "/mode plann", "there is no mode `plann`; there are read-only, plan");
    terminal.send("\x1b[Z");
    prompt_after(&mut terminal, "mode sandbox: ");
    terminal.send("\x1b[Z");
    let screen = prompt_after(&mut terminal, "mode read-only: ");
    assert!(screen.contains("read-only · "), "{screen}");
    terminal.send_line("go");
    prompt_after(&mut terminal, "Done.");
    assert!(!is_made(&home));
    ask(&mut terminal, "/mode ask", "mode ask: ");
    // A question is open, and the agent works: the next call is under the mode that is chosen meanwhile.
    terminal.send_line("go");
    terminal.expect("your answer, and Enter");
    terminal.send("\x1b[Z\x1b[Z\x1b[Z");
    terminal.expect("mode read-only: ");
    kill(terminal.id());
    terminal.wait();
    let mut terminal = chat(&home);
    let screen = prompt_after(&mut terminal, "mode read-only: nothing is changed");
    assert!(screen.contains("read-only · "), "{screen}");
    leave(&mut terminal);
    assert!(!is_made(&home));
}

#[test]
fn a_fork_keeps_the_mode_and_another_session_has_its_own() {
    let (home, _server) = home_writing();
    run(&home, &["run", "-s", "one", "--mode", "read-only", "go"]).assert_code(0);
    run(&home, &["sessions", "fork", "one", "two"]).assert_code(0);
    run(&home, &["run", "-s", "two", "go"]).assert_code(0);
    assert!(!is_made(&home));
    run(&home, &["run", "-s", "three", "go"]).assert_code(0);
    assert!(is_made(&home));
}

#[test]
fn a_program_changes_the_mode_and_is_notified() {
    let (home, _server) = home_writing();
    let mut client = Client::start(&home);
    let bad = client.ask(json!({"type": "set_mode", "mode": "yolo"}), 1);
    assert_eq!(bad["success"], false, "{bad}");
    assert!(bad["error"].to_string().contains("there is no mode `yolo`"), "{bad}");
    let set = client.ask(json!({"type": "set_mode", "mode": "read-only"}), 2);
    assert_eq!(set["data"]["mode"], "read-only", "{set}");
    let event = client.wait_for("\"type\":\"mode_changed\"");
    assert_eq!((&event["to"], &event["mode"]), (&json!("read-only"), &json!("read-only")));
    let state = client.ask(json!({"type": "get_state"}), 3);
    assert_eq!(state["data"]["mode"], "read-only");
    client.ask(json!({"type": "prompt", "message": "go"}), 4);
    client.wait_for("\"type\":\"tool_end\"");
    client.finish();
    assert!(!is_made(&home));
}

#[test]
fn the_mode_sandbox_confines_a_session_and_marks_it() {
    let outside = TempHome::new();
    let target = outside.path().join("outside.txt");
    let command = json!({"command": format!("echo x > {}; echo y > inside.txt", target.display())});
    let (home, server) = home_asking(&json!({}), "bash", command);
    run(&home, &["run", "--mode", "sandbox", "go"]).assert_code(0);
    assert!(!target.exists() && home.workspace().join("inside.txt").exists());
    // A tool that the rules of the sandbox deny is still shown, so that the prompt stays; the call is refused.
    let names: Vec<Value> = server.requests()[0].json()["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert!(names.contains(&json!("grep")), "{names:?}");
    let mut terminal = chat(&home);
    let screen = prompt_after(&mut terminal, "mode sandbox: ");
    assert!(screen.contains("sandboxed · "), "{screen}");
    ask(&mut terminal, "/mode auto", "mode auto: ");
    terminal.send_line("go");
    terminal.expect("Done.");
    prompt_after(&mut terminal, "Done.");
    assert!(target.exists());
    leave(&mut terminal);
}
