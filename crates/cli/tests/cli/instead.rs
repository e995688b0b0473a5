//! Another command in the place of the one that is asked about.

use std::os::unix::fs::PermissionsExt;

use myclaw_testkit::{TempHome, Terminal};
use serde_json::{Value, json};

use crate::approvals::home_asking;
use crate::myclaw;
use crate::rpc::Client;
use crate::screen::{chat, leave};

const SAID: &str = "The user ran another command in place of yours: echo y > other";

/// The call of the model and its result, as the log has them.
fn call_and_result(home: &TempHome) -> (String, String) {
    let rows = home.only_transcript();
    let of = |role: &str| rows.iter().find(|row| row["role"] == role).expect("a row").clone();
    let result = of("tool")["content"].as_str().expect("a text").to_owned();
    (of("assistant").to_string(), result)
}

fn commands_asked() -> Value {
    json!({"exec": {"ask": "always"}})
}

#[test]
fn a_person_runs_another_command_in_the_chat_and_the_log_says_both() {
    let command = json!({"command": "echo x >> marker"});
    let (home, _server) = home_asking(&commands_asked(), "bash", command);
    let mut terminal = chat(&home);
    terminal.send_line("go");
    terminal.expect("!COMMAND in its place");
    terminal.expect("your answer, and Enter");
    terminal.send_line("!echo y > other");
    terminal.expect("Done.");
    terminal.expect("You: ");
    leave(&mut terminal);
    assert!(home.workspace().join("other").exists() && !home.workspace().join("marker").exists());
    let (call, result) = call_and_result(&home);
    assert!(call.contains("echo x >> marker"), "{call}");
    assert!(result.starts_with(SAID), "{result}");
}

#[test]
fn a_person_runs_another_command_in_a_run_on_a_terminal() {
    let command = json!({"command": "echo x >> marker"});
    let (home, _server) = home_asking(&commands_asked(), "bash", command);
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &["run", "go"]), 100, 30);
    terminal.expect("or (n)o?");
    terminal.send("!");
    terminal.send_line("echo y > other");
    terminal.expect("Done.");
    assert!(terminal.wait().success());
    assert!(home.workspace().join("other").exists() && !home.workspace().join("marker").exists());
}

#[test]
fn the_rules_judge_the_other_command_too() {
    let command = json!({"command": "echo x >> marker"});
    let (home, _server) = home_asking(&commands_asked(), "bash", command);
    let script = home.state_directory().join("judge.sh");
    let text = "#!/bin/sh\nif grep -q forbidden; then echo 'not that one' >&2; exit 2; fi\n";
    home.write(&script, text);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("set");
    let config = std::fs::read_to_string(home.config_path()).expect("a config");
    let mut config: Value = serde_json::from_str(&config).expect("JSON");
    config["hooks"] = json!({"tool_call": [{"command": ["./judge.sh"]}]});
    home.write_config(&config);
    let mut client = Client::start(&home);
    client.send(&json!({"type": "prompt", "message": "go"}));
    let question = client.wait_for("\"type\":\"approval_requested\",\"session\"");
    let id = question["toolCallId"].clone();
    let approve = |command: &str| json!({"type": "approve", "toolCallId": id, "decision": "instead", "command": command});
    let empty = client.ask(approve(" "), 1);
    assert!(empty["error"].to_string().contains("needs a `command`"), "{empty}");
    client.ask(approve("echo forbidden > other"), 2);
    client.wait_for("\"idle\":true");
    client.finish();
    let (_, result) = call_and_result(&home);
    assert!(
        result.contains("echo forbidden > other") && result.contains("not that one"),
        "{result}"
    );
    assert!(!home.workspace().join("other").exists() && !home.workspace().join("marker").exists());
}

#[test]
fn a_call_without_a_command_is_not_made_with_one() {
    let tools = json!({"ask": ["write"]});
    let write = json!({"path": "notes.txt", "content": "new"});
    let (home, _server) = home_asking(&tools, "write", write);
    let mut client = Client::start(&home);
    client.send(&json!({"type": "prompt", "message": "go"}));
    let question = client.wait_for("\"type\":\"approval_requested\",\"session\"");
    let answer = json!({
        "type": "approve", "toolCallId": question["toolCallId"], "decision": "instead", "command": "touch made",
    });
    client.ask(answer, 1);
    client.wait_for("\"idle\":true");
    client.finish();
    let (_, result) = call_and_result(&home);
    assert!(result.contains("has no command"), "{result}");
    for file in ["made", "notes.txt"] {
        assert!(!home.workspace().join(file).exists(), "{file}");
    }
}
