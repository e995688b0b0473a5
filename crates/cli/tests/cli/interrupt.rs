//! Ctrl-C: the first aborts in good order, the second quits.

use std::time::Duration;

use myclaw_session::{EntryId, Inbox, Keeper, QueuedKind, QueuedMessage, SessionKey, SessionStore};
use myclaw_testkit::{
    ModelServer, Reply, RunningChild, Script, Signal, Step, TempHome, WireFormat, validate_pairing,
    wait_until_gone,
};
use serde_json::{Value, json};

use crate::{home_with, myclaw, run, serve};

const PATIENCE: Duration = Duration::from_secs(30);

/// A model that runs a command which never ends by itself, after leaving the ids of its processes.
fn endless_command(command: &str) -> ModelServer {
    let command = format!("{command} & echo $$ $! > pids; wait");
    ModelServer::spawn_blocking_thread(Script::from(Reply::anthropic().tool_call(
        "call_1",
        "bash",
        json!({ "command": command }),
    )))
}

/// The processes of the command, once it runs.
fn processes(home: &TempHome, child: &RunningChild) -> Vec<u32> {
    child.wait_for_stderr("tool start bash");
    let file = home.workspace().join("pids");
    loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text.ends_with('\n') {
            return text.split_whitespace().map(|id| id.parse().expect("a process id")).collect();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The next turn sees a session in order, with one result for the call that was given up.
fn assert_goes_on(home: &TempHome) {
    let server =
        ModelServer::spawn_blocking_thread(Script::from(Reply::anthropic().text("Going on.")));
    home.use_server(&server, WireFormat::AnthropicMessages);
    run(home, &["run", "and now?"]).assert_code(0);
    let request = server.last_request();
    validate_pairing(&request).unwrap_or_else(|violation| panic!("{violation}"));
    let results: Vec<&Value> = request
        .messages()
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .filter(|block| block["type"] == "tool_result")
        .collect();
    assert_eq!(results.len(), 1, "{results:?}");
}

#[test]
fn a_message_from_another_process_stops_the_turn_and_is_answered_by_the_next() {
    let server = endless_command("sleep 600");
    let home = home_with(&server);
    let child = RunningChild::spawn(&mut myclaw(&home, &["run", "go"]));
    let processes = processes(&home, &child);
    let key = SessionKey::for_cli("main", "main");
    let message = QueuedMessage {
        id: EntryId::generate(),
        kind: QueuedKind::Interrupt,
        content: "stop that".to_owned(),
        ts: 1,
        meta: None,
        keeper: Keeper::Inbox,
    };
    SessionStore::new(home.sessions_directory()).inbox(&key).push(&message).expect("room");
    let output = child.wait(PATIENCE);
    output.assert_code(130);
    let stderr = output.stderr();
    assert!(stderr.contains("a message interrupted this run; the next one answers it"), "{stderr}");
    processes.into_iter().for_each(wait_until_gone);
    assert_goes_on(&home);
    let said = json!(home.only_transcript()).to_string();
    assert_eq!(said.matches("stop that").count(), 1, "{said}");
}

#[test]
fn each_signal_aborts_the_turn_and_the_tools_whole_tree() {
    for signal in [Signal::Interrupt, Signal::Terminate] {
        let server = endless_command("sleep 600");
        let home = home_with(&server);
        let child = RunningChild::spawn(&mut myclaw(&home, &["run", "wait"]));
        let processes = processes(&home, &child);
        child.signal(signal);
        let output = child.wait(PATIENCE);
        output.assert_code(130);
        assert!(
            output
                .stderr()
                .ends_with("myclaw: aborted; the session is kept, the next message continues it\n")
        );
        processes.into_iter().for_each(wait_until_gone);
        assert_goes_on(&home);
    }
}

#[test]
fn an_abort_is_the_last_line_of_json() {
    let (server, home) = serve([Reply::anthropic().text("never whole").step().stall_after(300)]);
    let child = RunningChild::spawn(&mut myclaw(&home, &["run", "--json", "wait"]));
    child.wait_for_stdout("llm_start");
    server.wait_for_requests_blocking(1);
    child.signal(Signal::Interrupt);
    let output = child.wait(PATIENCE);
    output.assert_code(130);
    let last: Value =
        serde_json::from_str(output.stdout().lines().last().expect("a line")).expect("JSON");
    assert_eq!((&last["type"], &last["class"]), (&json!("error"), &json!("aborted")));
}

#[test]
fn a_second_signal_quits_and_takes_stubborn_tools_along() {
    // Both the shell and its child outlive a polite request; the shell notes it.
    let command = "trap 'echo > asked' TERM; (trap '' TERM; exec sleep 600) & echo $$ $! > pids; \
                   while kill -0 $!; do wait; done";
    let call = Reply::anthropic().tool_call("call_1", "bash", json!({ "command": command }));
    let (_server, home) = serve(call);
    let child = RunningChild::spawn(&mut myclaw(&home, &["run", "wait"]));
    let processes = processes(&home, &child);
    child.signal(Signal::Interrupt);
    // Two signals that come before the program looks are one.
    while !home.workspace().join("asked").exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.signal(Signal::Interrupt);
    let output = child.wait(PATIENCE);
    output.assert_code(130);
    // Nothing waited for the stubborn to end by themselves.
    assert!(output.stderr().contains("myclaw: quit; "), "{}", output.stderr());
    processes.into_iter().for_each(wait_until_gone);
    assert_goes_on(&home);
}

#[test]
fn waiting_for_a_silent_server_can_be_aborted() {
    let (server, home) = serve([Step::event_stream("").stall_after(0)]);
    let child = RunningChild::spawn(&mut myclaw(&home, &["run", "hello"]));
    server.wait_for_requests_blocking(1);
    child.signal(Signal::Interrupt);
    child.wait(PATIENCE).assert_code(130);
    server.wait_for_closed_connections_blocking(1);
}

#[test]
fn a_signal_that_the_caller_ignores_stays_ignored() {
    let (server, home) = serve([Step::event_stream("").stall_after(0)]);
    // As `nohup` starts a program.
    let mut command = home.command("sh");
    command.args([
        "-c",
        "trap '' HUP; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_myclaw"),
        "run",
        "hello",
    ]);
    let child = RunningChild::spawn(&mut command);
    server.wait_for_requests_blocking(1);
    let hang_up =
        std::process::Command::new("kill").args(["-HUP", &child.id().to_string()]).status();
    assert!(hang_up.expect("kill").success());
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.closed_connections(), 0);
    child.signal(Signal::Terminate);
    child.wait(PATIENCE).assert_code(130);
}

/// SIGTERM ends a chat soon, also where something does not heed the abort of the turn.
#[test]
fn sigterm_ends_a_chat_although_a_hook_goes_on() {
    let server = ModelServer::spawn_blocking_thread(Script::from(
        Reply::anthropic().text("One moment.").step().stall_after(700),
    ));
    let home = home_with(&server);
    crate::change_config(&home, |config| {
        config["hooks"] = json!({"agent_end": [{"command": "sleep 60", "timeoutSeconds": 60}]});
    });
    let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &["chat"]));
    child.send("hello\n");
    server.wait_for_requests_blocking(1);
    child.signal(Signal::Terminate);
    let output = child.wait(Duration::from_secs(20));
    output.assert_code(130);
}
