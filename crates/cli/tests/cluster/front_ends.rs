//! `myclaw run` and the chat on sessions that gateways share: through a gateway, never through the database.

use myclaw_testkit::{Signal, Step, Terminal};

use super::*;

/// The environment variable with the token of a gateway elsewhere.
const TOKEN: &str = "MYCLAW_GATEWAY_TOKEN";

#[test]
fn a_run_goes_through_the_gateway_of_this_machine() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    let said = machine.run(&["run", "say <m0>"]);
    said.assert_code(1);
    assert!(said.stderr().contains("no gateway runs"), "{}", said.stderr());
    let gateway = machine.start();
    let said = machine.run(&["run", "say <m1>"]);
    said.assert_code(0);
    assert_eq!(said.stdout(), "re: <m1>\n");
    assert!(said.stderr().contains("1 iteration, "), "{}", said.stderr());
    let said = machine.run(&["run", "--json", "-s", "work", "say <m2>"]);
    said.assert_code(0);
    let events: Vec<Value> =
        said.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    for kind in ["run_start", "taken", "llm_start", "llm_end", "done"] {
        assert_eq!(kinds.iter().filter(|other| **other == kind).count(), 1, "{kind}: {kinds:?}");
    }
    for kind in ["accepted", "reply", "message"] {
        assert!(!kinds.contains(&kind), "{kinds:?}");
    }
    let said = machine.run(&["run", "-q", "--agent", "main", "-s", "work", "say <m3>"]);
    said.assert_code(0);
    assert_eq!((said.stdout().as_str(), said.stderr().as_str()), ("re: <m3>\n", ""));
    for arguments in [
        &["run", "--model", "a/b", "x"][..],
        &["run", "--max-turns", "3", "x"],
        &["run", "-c", "x"],
        &["run", "--mode", "plan", "x"],
        &["run", "-C", "/", "x"],
        &["run", "--goal", "x"],
    ] {
        let said = machine.run(arguments);
        said.assert_code(2);
        assert!(said.stderr().contains("of a gateway"), "{arguments:?}: {}", said.stderr());
    }
    gateway.stop();
    let logs = exported(&machine);
    for mark in ["<m1>", "<m2>", "<m3>"] {
        let rows = (count(&logs, "user", mark), count(&logs, "assistant", mark));
        assert_eq!(rows, (1, 1), "{mark}");
    }
    assert_eq!(count(&logs, "user", "<m0>"), 0);
    let of_work = logs.iter().find(|(name, _)| name.contains("work")).unwrap();
    assert!(of_work.1.iter().any(|row| row["content"].to_string().contains("<m3>")));
}

#[test]
fn an_answer_for_programs_and_a_failure_have_their_exit_codes_through_a_gateway() {
    let Some((_server, url)) = database() else { return };
    let model = ModelServer::spawn_blocking_thread(Script::answer_with(|request, _| {
        let asked = json!(request.messages().last()).to_string();
        match () {
            () if asked.contains("refuse") => Step::status(401, &[], "no such key"),
            () if asked.contains("want integer") => Reply::anthropic().text("{\"n\": 2}").step(),
            () => Reply::anthropic().text("{\"n\": \"two\"}").step(),
        }
    }));
    let machine = Machine::new("one", &url, &model);
    let gateway = machine.start();
    let schema = machine.home.write(
        "schema.json",
        r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#,
    );
    let said = machine.run(&["run", "--output-schema", schema.to_str().unwrap(), "count"]);
    said.assert_code(0);
    assert_eq!(said.stdout(), "{\"n\":2}\n");
    let said = machine.run(&["run", "refuse"]);
    said.assert_code(4);
    assert!(said.stderr().contains("the model does not let me in"), "{}", said.stderr());
    assert_eq!(said.stdout(), "");
    gateway.stop();
}

#[test]
fn a_run_is_answered_once_when_its_gateway_is_killed() {
    let Some((_server, url)) = database() else { return };
    let gate = Gate::closed();
    let held = gate.clone();
    let model = ModelServer::spawn_blocking_thread(Script::answer_with(move |request, number| {
        let reply = echo(request).in_deltas(4);
        let body = String::from_utf8(reply.stream_body("m")).unwrap();
        let (second, _) = body.match_indices("event: content_block_delta").nth(2).unwrap();
        let step = reply.step();
        if number == 0 { step.hold_after(second, &held) } else { step }
    }));
    let machine = Machine::new("one", &url, &model);
    let gateway = machine.start();
    let running = RunningChild::spawn(&mut machine.command(&["run", "say <m1>"]));
    // It is shown as it arrives.
    running.wait_for_stdout("re: ");
    gateway.kill();
    running.wait_for_stderr("trying again");
    let gateway = machine.start();
    let said = running.wait(PATIENCE);
    gate.open();
    said.assert_code(0);
    // Printed text is not printed again, unless the answer came while the connection was lost: then it is printed whole.
    let shown = said.stdout();
    assert!(shown == "re: <m1>\n" || shown == "re: \nre: <m1>\n", "{shown:?}");
    gateway.stop();
    let logs = exported(&machine);
    assert_eq!((count(&logs, "user", "<m1>"), count(&logs, "assistant", "<m1>")), (1, 1));
}

#[test]
fn a_run_works_on_a_gateway_elsewhere() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    let gateway = machine.start();
    let elsewhere = TempHome::new();
    let address = format!("ws://127.0.0.1:{}", machine.port);
    let run = |token: Option<&str>, arguments: &[&str]| {
        let mut command = elsewhere.command(env!("CARGO_BIN_EXE_myclaw"));
        command.args(["run", "--url", &address]).args(arguments);
        RunningChild::run(command.envs(token.map(|token| (TOKEN, token))))
    };
    let said = run(Some(&"t".repeat(40)), &["say <m1>"]);
    said.assert_code(0);
    assert_eq!(said.stdout(), "re: <m1>\n");
    let said = run(None, &["say <m2>"]);
    said.assert_code(2);
    assert!(said.stderr().contains("--token-file"), "{}", said.stderr());
    let said = run(Some(&"x".repeat(40)), &["say <m3>"]);
    said.assert_code(1);
    assert!(said.stderr().contains("does not accept the token"), "{}", said.stderr());
    gateway.stop();
    assert!(!elsewhere.state_directory().exists(), "the run wrote where it has no session");
}

#[test]
fn the_chat_goes_through_the_gateway_of_this_machine() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    let gateway = machine.start();
    let mut terminal = Terminal::spawn(&machine.command(&["chat", "say <m1>"]));
    terminal.expect("re: <m1>");
    terminal.send_line("say <m2>");
    terminal.expect("re: <m2>");
    terminal.send_line("/quit");
    assert_eq!(terminal.wait().code(), Some(0));
    gateway.stop();
    let logs = exported(&machine);
    for mark in ["<m1>", "<m2>"] {
        assert_eq!((count(&logs, "user", mark), count(&logs, "assistant", mark)), (1, 1), "{mark}");
    }
}

#[test]
fn programs_control_a_session_through_the_gateway() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machine = Machine::new("one", &url, &model);
    let gateway = machine.start();
    let lines = [
        json!({"id": 1, "type": "prompt", "message": "say <m1>"}),
        json!({"id": 2, "type": "get_state"}),
        json!({"id": 3, "type": "set_mode", "mode": "ask"}),
        json!({"id": 4, "type": "bash", "command": "ls"}),
        json!({"id": 5, "type": "rename", "title": "the first"}),
        json!({"id": 6, "type": "switch_session", "name": "other"}),
        json!({"id": 7, "type": "prompt", "message": "say <m2>"}),
        json!({"id": 8, "type": "list_sessions"}),
        json!({"id": 9, "type": "nonsense"}),
    ];
    let mut child = RunningChild::spawn_piped(&mut machine.command(&["rpc"]));
    child.wait_for_stdout("\"ready\"");
    child.send(&format!("{}\n", lines[0]));
    child.wait_for_stdout("run_end");
    for line in &lines[1..] {
        child.send(&format!("{line}\n"));
    }
    child.close_stdin();
    let output = child.wait(PATIENCE);
    output.assert_code(0);
    let said: Vec<Value> =
        output.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said[0]["type"], "ready");
    assert!(said[0]["model"].as_str().unwrap().starts_with("anthropic/"), "{}", said[0]);
    let reply = |id: u64| {
        said.iter().find(|line| line["type"] == "response" && line["id"] == id).unwrap().clone()
    };
    assert_eq!(reply(1)["data"]["state"], "started");
    assert_eq!(reply(2)["data"]["idle"], true);
    assert_eq!(reply(3)["data"]["mode"], "ask");
    assert_eq!(reply(4)["class"], "usage");
    assert_eq!(reply(5)["success"], true);
    assert!(reply(6)["data"]["session"].as_str().unwrap().contains("other"));
    assert_eq!(reply(7)["success"], true);
    assert!(reply(8).to_string().contains("the first"), "{}", reply(8));
    let order: Vec<u64> = said.iter().filter_map(|line| line["id"].as_u64()).collect();
    assert_eq!(order, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(reply(9)["class"], "unknown_command");
    let answers: Vec<&Value> = said.iter().filter(|line| line["type"] == "done").collect();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[1]["result"]["reply"], "re: <m2>");
    assert!(answers[1]["session"].as_str().unwrap().contains("other"));
    gateway.stop();
    let logs = exported(&machine);
    for mark in ["<m1>", "<m2>"] {
        assert_eq!((count(&logs, "user", mark), count(&logs, "assistant", mark)), (1, 1), "{mark}");
    }
}

#[test]
fn a_run_asks_on_the_terminal_and_a_signal_stops_what_the_gateway_does() {
    let Some((_server, url)) = database() else { return };
    let gate = Gate::closed();
    let held = gate.clone();
    let model = ModelServer::spawn_blocking_thread(Script::answer_with(move |request, number| {
        let call = json!({"command": "echo made"});
        match number {
            0 => Reply::anthropic().tool_call("c1", "bash", call).step(),
            1 => Reply::anthropic().text("it is done").step(),
            _ => echo(request).step().hold_after(300, &held),
        }
    }));
    let machine = Machine::new("one", &url, &model);
    machine.configure("one", &model, |config| {
        config["tools"] = json!({"exec": {"ask": "always"}});
    });
    let gateway = machine.start();
    let mut terminal = Terminal::spawn(&machine.command(&["run", "make it"]));
    terminal.expect("(o)nce");
    assert!(terminal.text().contains("echo made"), "{}", terminal.text());
    terminal.send("o");
    terminal.expect("it is done");
    assert_eq!(terminal.wait().code(), Some(0));
    let running = RunningChild::spawn(&mut machine.command(&["run", "say <m1>"]));
    model.wait_for_requests_blocking(3);
    running.signal(Signal::Interrupt);
    let said = running.wait(PATIENCE);
    said.assert_code(130);
    assert!(said.stderr().contains("myclaw: "), "{}", said.stderr());
    let mut child = RunningChild::spawn_piped(&mut machine.command(&["rpc"]));
    child.wait_for_stdout("\"ready\"");
    child.send("{\"type\":\"prompt\",\"message\":\"say <m2>\"}\n");
    model.wait_for_requests_blocking(4);
    child.signal(Signal::Interrupt);
    let said = child.wait(PATIENCE);
    said.assert_code(130);
    assert!(said.stdout().contains("\"outcome\":\"aborted\""), "{}", said.stdout());
    gate.open();
    gateway.stop();
}
