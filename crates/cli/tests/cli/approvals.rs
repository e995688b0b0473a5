//! Calls that need an approval: who is asked, what an answer covers, and what a killed program leaves.

use std::time::Duration;

use myclaw_testkit::{
    ModelServer, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome, Terminal,
    WireFormat, send_signal,
};
use serde_json::{Value, json};

use crate::screen::chat;
use crate::{myclaw, run};

const PATIENCE: Duration = Duration::from_secs(60);

/// A home in which every command needs an approval, and a model that makes this call whenever the user says something.
pub(crate) fn home_asking(
    tools: &Value,
    tool: &'static str,
    arguments: Value,
) -> (TempHome, ModelServer) {
    let answer = move |request: &RecordedRequest, number: usize| -> Step {
        let last = request.messages().last().map(|message| message["content"].to_string());
        let is_result = last.is_some_and(|last| last.contains("tool_result"));
        match is_result {
            true => Reply::anthropic().text("Done.").step(),
            false => Reply::anthropic()
                .tool_call(format!("call_{number}"), tool, arguments.clone())
                .step(),
        }
    };
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(answer));
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["tools"] = tools.clone();
    home.write_config(&config);
    (home, server)
}

/// Every command needs an approval, and leaves a line in `marker`.
fn home_asking_for_commands() -> (TempHome, ModelServer) {
    let command = json!({"command": "echo x >> marker"});
    home_asking(&json!({"exec": {"ask": "always"}}), "bash", command)
}

/// How often the command ran.
fn runs(home: &TempHome) -> usize {
    let marker = std::fs::read_to_string(home.workspace().join("marker")).unwrap_or_default();
    marker.lines().count()
}

/// The results that the model read.
fn results(home: &TempHome) -> Vec<String> {
    let rows = home.only_transcript();
    let rows = rows.iter().filter(|row| row["role"] == "tool");
    rows.map(|row| row["content"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn nobody_to_ask_means_no_and_the_message_says_what_to_do() {
    let (home, _server) = home_asking_for_commands();
    run(&home, &["run", "go"]).assert_code(0);
    assert_eq!(runs(&home), 0);
    let result = &results(&home)[0];
    assert!(result.contains("this run cannot ask anybody"), "{result}");
    assert!(result.contains("every command needs an approval (`tools.exec`"), "{result}");
    assert!(result.contains("myclaw chat --session"), "{result}");
}

#[test]
fn the_chat_asks_and_obeys() {
    let (home, _server) = home_asking_for_commands();
    let mut terminal = chat(&home);
    for (answer, runs_after) in [("n", 0), ("o", 1), ("once", 2)] {
        terminal.send_line("go");
        terminal.expect("bash wants to run: echo x >> marker");
        terminal.expect("(o)nce, (a)lways for exactly this command in");
        terminal.send_line(answer);
        terminal.expect("Done.");
        terminal.expect("You: ");
        assert_eq!(runs(&home), runs_after, "{answer}");
    }
    terminal.send_line("/quit");
    assert!(terminal.wait().success());
    assert!(results(&home)[0].contains("the approval for this call was denied: the user said no"));
}

#[test]
fn always_is_kept_until_it_is_revoked() {
    let (home, _server) = home_asking_for_commands();
    let mut terminal = chat(&home);
    terminal.send_line("go");
    terminal.expect("(a)lways");
    terminal.send_line("a");
    terminal.expect("Done.");
    terminal.send_line("/quit");
    terminal.wait();

    run(&home, &["run", "again"]).assert_code(0);
    assert_eq!(runs(&home), 2, "another process does not ask again");
    // The same line means something else in another directory.
    let elsewhere = home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    run(&home, &["run", "-C", elsewhere.to_str().expect("UTF-8"), "again"]).assert_code(0);
    assert!(!elsewhere.join("marker").exists());

    let list = run(&home, &["approvals", "list"]);
    assert!(
        list.stdout().contains("bash echo x >> marker: exactly this command in"),
        "{}",
        list.stdout()
    );
    let id = list.stdout().split_whitespace().next().expect("an id").to_owned();
    let revoked = run(&home, &["approvals", "revoke", &id]);
    assert_eq!(revoked.stdout(), "revoked: bash echo x >> marker\n");
    run(&home, &["run", "again"]).assert_code(0);
    assert_eq!(runs(&home), 2);
    let unknown = run(&home, &["approvals", "revoke", &id]);
    unknown.assert_code(2);
    assert!(unknown.stderr().contains("myclaw approvals list"), "{}", unknown.stderr());
}

/// A command could otherwise clear the screen, or show its end before its beginning.
#[test]
fn what_a_command_hides_is_written_out_in_the_question_and_in_the_list() {
    let command = json!({"command": "echo x >> marker # \u{1b}[2J\u{202e}"});
    let (home, _server) = home_asking(&json!({"exec": {"ask": "always"}}), "bash", command);
    let mut terminal = chat(&home);
    terminal.send_line("go");
    terminal.expect(r"echo x >> marker # \u{1b}[2J\u{202e}");
    terminal.expect("(a)lways");
    terminal.send_line("a");
    terminal.expect("Done.");
    terminal.send_line("/quit");
    terminal.wait();
    let list = run(&home, &["approvals", "list"]);
    assert!(list.stdout().contains(r"marker # \u{1b}[2J\u{202e}: exactly"), "{}", list.stdout());
}

#[test]
fn a_changed_file_is_shown_before_the_question() {
    let edit = json!({"path": "notes.txt", "oldText": "milk", "newText": "be\u{1b}[2Jer"});
    let (home, _server) = home_asking(&json!({"ask": ["edit"]}), "edit", edit);
    home.write_in_workspace("notes.txt", "buy milk\n");
    let mut terminal = chat(&home);
    terminal.send_line("go");
    terminal.expect("edit wants to run: ");
    terminal.expect("notes.txt");
    terminal.expect("-buy milk");
    terminal.expect("+buy be\\u{1b}[2Jer");
    terminal.expect("(a)lways for edit on");
    let drawn = String::from_utf8_lossy(&terminal.raw()).into_owned();
    assert!(drawn.contains("\x1b[31m-buy milk") && drawn.contains("\x1b[32m+buy"), "{drawn:?}");
    terminal.send_line("n");
    terminal.expect("You: ");
    let text = std::fs::read_to_string(home.workspace().join("notes.txt")).expect("the file");
    assert_eq!(text, "buy milk\n");
}

/// Writes a script of the agent's that leaves `word` in `marker`.
fn write_script(home: &TempHome, word: &str) {
    home.write_in_workspace("t.sh", format!("echo {word} >> marker\n"));
}

#[test]
fn always_for_a_script_holds_until_its_content_changes() {
    let command = json!({"command": "sh t.sh"});
    let (home, _server) = home_asking(&json!({"exec": {"ask": "always"}}), "bash", command);
    write_script(&home, "one");
    let mut terminal = chat(&home);
    terminal.send_line("go");
    terminal.expect("(a)lways");
    terminal.send_line("a");
    terminal.expect("Done.");
    terminal.send_line("/quit");
    terminal.wait();
    run(&home, &["run", "again"]).assert_code(0);
    assert_eq!(runs(&home), 2);
    write_script(&home, "evil");
    run(&home, &["run", "again"]).assert_code(0);
    assert_eq!(runs(&home), 2, "nobody can be asked about the new content");
}

#[test]
fn a_script_that_changes_while_the_question_waits_is_shown_and_asked_about_again() {
    let command = json!({"command": "sh t.sh"});
    let (home, _server) = home_asking(&json!({"exec": {"ask": "always"}}), "bash", command);
    write_script(&home, "one");
    let mut terminal = chat(&home);
    terminal.send_line("go");
    terminal.expect("(a)lways");
    write_script(&home, "evil");
    terminal.send_line("o");
    terminal.expect("changed: file");
    terminal.expect("-echo one >> marker");
    terminal.expect("+echo evil >> marker");
    terminal.expect("or (n)o?");
    assert_eq!(runs(&home), 0);
    terminal.send_line("n");
    terminal.expect("Done.");
    terminal.send_line("/quit");
    terminal.wait();
    assert_eq!(runs(&home), 0);
}

/// The question names what decides: the directory, and the variables that the call sets.
#[test]
fn a_question_shows_the_directory_and_the_variables_of_a_command() {
    let command =
        json!({"command": "git diff", "cwd": "/usr", "env": {"GIT_EXTERNAL_DIFF": "./evil.sh"}});
    let (home, _server) = home_asking(&json!({"exec": {"ask": "always"}}), "bash", command);
    let mut terminal = chat(&home);
    terminal.send_line("go");
    terminal.expect("bash wants to run: git diff");
    terminal.expect("directory: /usr");
    terminal.expect("variable GIT_EXTERNAL_DIFF: ./evil.sh");
    terminal.expect("(a)lways for exactly this command in /usr");
    terminal.send_line("n");
    terminal.expect("Done.");
    terminal.send_line("/quit");
    terminal.wait();
}

/// A name that only one reader of the call would see.
#[test]
fn a_call_with_arguments_of_another_tool_is_refused_before_anybody_is_asked() {
    for (tool, arguments, refusal) in [
        (
            "bash",
            json!({"command": "echo x >> marker", "directory": "/usr"}),
            "`directory`: not known here",
        ),
        (
            "web_fetch",
            json!({"url": "http://127.0.0.1:1/", "command": "ls"}),
            "`command`: not known here",
        ),
        (
            "process",
            json!({"action": "submit", "data": "x", "command": "ls"}),
            "`command`: not known here",
        ),
        ("bash", json!({"command": "ls", "cmd": "echo x >> marker"}), "are the same argument"),
    ] {
        let tools = json!({"exec": {"security": "allowlist", "allowlist": ["ls"], "ask": "off"}});
        let (home, _server) = home_asking(&tools, tool, arguments);
        run(&home, &["run", "go"]).assert_code(0);
        assert_eq!(runs(&home), 0);
        assert!(results(&home)[0].contains(refusal), "{:?}", results(&home));
    }
}

#[test]
fn run_on_a_terminal_asks_with_one_key() {
    let (home, _server) = home_asking_for_commands();
    let mut terminal = Terminal::spawn(&myclaw(&home, &["run", "go"]));
    terminal.expect("bash wants to run: echo x >> marker");
    terminal.expect("or (n)o?");
    terminal.send("o");
    terminal.expect("Done.");
    assert!(terminal.wait().success());
    assert_eq!(runs(&home), 1);
}

#[test]
fn no_answer_in_time_means_no() {
    let tools = json!({"exec": {"ask": "always"}, "approvals": {"timeoutSeconds": 1}});
    let (home, _server) = home_asking(&tools, "bash", json!({"command": "touch marker"}));
    let mut terminal = Terminal::spawn(&myclaw(&home, &["run", "go"]));
    terminal.expect("or (n)o?");
    terminal.expect("Done.");
    assert!(terminal.wait().success());
    assert!(!home.workspace().join("marker").exists());
    assert!(
        results(&home)[0].contains("nobody answered within 1 s (tools.approvals.timeoutSeconds)")
    );
    assert!(run(&home, &["approvals", "list"]).stdout().contains("no approvals"));
}

/// A program's end of `myclaw rpc`.
fn rpc(home: &TempHome) -> RunningChild {
    RunningChild::spawn_piped(&mut myclaw(home, &["rpc"]))
}

fn line_with(output: &str, text: &str) -> Value {
    let line = output.lines().find(|line| line.contains(text)).expect("it was waited for");
    serde_json::from_str(line).expect("JSON")
}

#[test]
fn a_program_answers_over_rpc() {
    let (home, _server) = home_asking_for_commands();
    let mut child = rpc(&home);
    for (decision, runs_after) in [("no", 0), ("once", 1), ("always", 2)] {
        child.send(&format!("{}\n", json!({"type": "prompt", "message": decision})));
        let name = format!(
            "call_{}",
            if decision == "no" {
                0
            } else if decision == "once" {
                2
            } else {
                4
            }
        );
        let asked = format!("\"toolCallId\":\"{name}\",\"toolName\":\"bash\",\"reason\"");
        let output = child.wait_for_stdout(&asked);
        let question = line_with(&output, &asked);
        assert_eq!(question["type"], "approval_requested");
        assert_eq!(
            question["shown"][0],
            json!({"label": "command", "text": "echo x >> marker", "form": "text", "isWhole": true})
        );
        assert_eq!(question["always"][0]["kind"], "call");
        let wider = json!({"type": "approve", "toolCallId": name, "decision": "always", "scope": "directory"});
        child.send(&format!("{wider}\n"));
        child.wait_for_stdout(&format!(
            "the question about the call `{name}` does not offer `always`"
        ));
        assert!(
            question["reason"].as_str().expect("a reason").contains("tools.exec"),
            "{question}"
        );
        let id = format!("wrong-{name}");
        let wrong =
            json!({"id": id, "type": "approve", "toolCallId": "call_99", "decision": "once"});
        child.send(&format!("{wrong}\n"));
        let begin = format!("{{\"type\":\"response\",\"id\":\"{id}\"");
        child.wait_for_stdout(&begin);
        let reply = line_with(&child.wait_for_stdout("no question about the call"), &begin);
        assert_eq!((&reply["success"], &reply["class"]), (&json!(false), &json!("usage")));
        let answer = json!({"type": "approve", "toolCallId": name, "decision": decision});
        child.send(&format!("{answer}\n"));
        let ended = format!("\"toolCallId\":\"{name}\",\"durationMs\"");
        child.wait_for_stdout(&ended);
        assert_eq!(runs(&home), runs_after, "{decision}");
    }
    child.close_stdin();
    child.wait(PATIENCE).assert_code(0);
    run(&home, &["run", "again"]).assert_code(0);
    assert_eq!(runs(&home), 3);
}

#[test]
fn a_program_that_is_killed_while_it_waits_asks_again() {
    let (home, _server) = home_asking_for_commands();
    let mut child = rpc(&home);
    child.send("{\"type\":\"prompt\",\"message\":\"go\"}\n");
    child.wait_for_stdout("approval_requested");
    send_signal(child.id(), Signal::Kill);
    child.wait(PATIENCE);
    assert_eq!(runs(&home), 0);
    let waiting = run(&home, &["approvals", "list"]);
    assert!(waiting.stdout().starts_with("waiting"), "{}", waiting.stdout());

    // The session continues with another message; the old call is asked about first, and its result comes first.
    let mut terminal = chat(&home);
    terminal.send_line("and now?");
    terminal.expect("bash wants to run: echo x >> marker");
    assert_eq!(runs(&home), 0, "it does not run unasked");
    terminal.send_line("o");
    terminal.expect("Done.");
    terminal.send_line("/quit");
    terminal.wait();
    assert_eq!(runs(&home), 1);
    let rows = home.only_transcript();
    let roles: Vec<&str> = rows.iter().filter_map(|row| row["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
    assert!(run(&home, &["approvals", "list"]).stdout().contains("no approvals"));
}

#[test]
fn a_call_that_was_approved_and_then_killed_is_not_run_again() {
    let command =
        json!({"command": "echo x >> marker; while test -e \"$PWD\"; do sleep 0.05; done"});
    let (home, _server) = home_asking(&json!({"exec": {"ask": "always"}}), "bash", command);
    let mut child = rpc(&home);
    child.send("{\"type\":\"prompt\",\"message\":\"go\"}\n");
    child.wait_for_stdout("approval_requested");
    child.send("{\"type\":\"approve\",\"toolCallId\":\"call_0\",\"decision\":\"once\"}\n");
    child.wait_for_stdout("tool_start");
    let deadline = std::time::Instant::now() + PATIENCE;
    while runs(&home) == 0 && std::time::Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    send_signal(child.id(), Signal::Kill);
    child.wait(PATIENCE);
    run(&home, &["run", "and now?"]).assert_code(0);
    assert_eq!(runs(&home), 1);
    assert!(!results(&home)[0].contains("approval"), "{:?}", results(&home));
}
