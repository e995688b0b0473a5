//! `/goal`: the agent continues until a condition holds, within bounds, and a killed chat leaves the goal paused.

use std::time::Duration;

use myclaw_testkit::{
    Gate, ModelServer, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome,
    Terminal, WireFormat,
};
use serde_json::json;

use crate::rpc::Client;
use crate::screen::{ask, chat, leave, prompt_after};
use crate::{myclaw, run};

/// Longest wait for the end of a process.
const PATIENCE: Duration = Duration::from_secs(30);

/// A model that adds a line to a file for each message, and says at the third one that the goal is reached.
fn answer(request: &RecordedRequest, number: usize) -> Step {
    let last = json!(request.messages().last()).to_string();
    let all = json!(request.messages()).to_string();
    let reply = Reply::anthropic();
    if !last.contains("tool_result") {
        let command = json!({"command": "echo x >> lines"});
        return reply.tool_call(format!("call_{number}"), "bash", command).step();
    }
    let is_third = all.matches("\"tool_result\"").count() >= 3;
    reply.text(if is_third { "All there.\nGOAL REACHED" } else { "One more." }).step()
}

fn home_with_goal() -> (TempHome, ModelServer) {
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(answer));
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    (home, server)
}

fn lines(home: &TempHome) -> usize {
    let text = std::fs::read_to_string(home.workspace().join("lines")).unwrap_or_default();
    text.lines().count()
}

#[test]
fn the_model_or_a_command_says_when_a_goal_is_reached() {
    let (home, server) = home_with_goal();
    let mut terminal = chat(&home);
    ask(&mut terminal, "/goal", "there is no goal");
    terminal.send_line("/goal three lines");
    prompt_after(&mut terminal, "the goal is reached: three lines");
    assert_eq!(lines(&home), 3);
    let messages = json!(server.last_request().messages()).to_string();
    assert!(messages.contains("Work until this holds") && messages.contains("not reached yet"));
    ask(&mut terminal, "/goal", "there is no goal");
    terminal.send_line("/goal !echo so far; wc -l < lines; test $(wc -l < lines) -ge 5");
    prompt_after(&mut terminal, "the goal is reached: echo so far");
    assert_eq!(lines(&home), 5);
    let messages = json!(server.last_request().messages()).to_string();
    assert!(messages.contains("ended with exit 1") && messages.contains("so far"), "{messages}");
    // Nobody has said any of these messages.
    ask(&mut terminal, "/rewind", "there is no earlier message to go back to");
    leave(&mut terminal);
}

#[test]
fn a_goal_ends_with_its_turns_and_a_killed_chat_leaves_it_paused() {
    let (home, _server) = home_with_goal();
    let mut terminal = chat(&home);
    terminal.send_line("/goal !false");
    terminal.expect("goal, 18 turns left");
    prompt_after(&mut terminal, "the goal is paused: its turns are used up");
    assert_eq!(lines(&home), 20);
    ask(&mut terminal, "/goal", "false (paused, 0 turns left)");
    terminal.send_line("/goal resume");
    terminal.expect("goal, 18 turns left");
    let id = terminal.id().to_string();
    assert!(std::process::Command::new("kill").args(["-9", &id]).status().expect("kill").success());
    terminal.wait();
    let mut terminal = chat(&home);
    prompt_after(&mut terminal, "goal paused");
    ask(&mut terminal, "/goal stop", "dropped: false");
    ask(&mut terminal, "/goal", "there is no goal");
    leave(&mut terminal);
}

#[test]
fn a_script_pursues_a_goal_and_its_exit_code_says_whether_it_was_reached() {
    let (home, server) = home_with_goal();
    let reached = run(&home, &["run", "--goal", "!test $(wc -l < lines) -ge 2", "begin"]);
    reached.assert_code(0);
    assert!(reached.stderr().contains("the goal is reached"), "{}", reached.stderr());
    assert_eq!(lines(&home), 2);
    let first = json!(server.requests()[0].messages()).to_string();
    assert!(first.contains("begin") && first.contains("Work until this command"), "{first}");
    let missed = run(&home, &["run", "-q", "--session", "other", "--goal", "!false"]);
    missed.assert_code(1);
    assert!(missed.stderr().contains("its turns are used up"), "{}", missed.stderr());
    assert_eq!(lines(&home), 22);
    // What is forgotten at the end cannot be continued.
    let forgotten = run(&home, &["run", "-q", "--no-session", "--goal", "!false"]);
    forgotten.assert_code(1);
    let said = forgotten.stderr();
    assert!(said.contains("without `--no-session`") && !said.contains("/goal"), "{said}");
    let empty = run(&home, &["run", "--goal", "!"]);
    empty.assert_code(2);
    assert!(empty.stderr().contains("--goal: a goal needs a condition"), "{}", empty.stderr());
}

#[test]
fn a_program_sets_a_goal_follows_it_by_its_notices_and_takes_it_up_again() {
    let (home, _server) = home_with_goal();
    let mut client = Client::start(&home);
    let none = client.ask(json!({"type": "goal"}), 1);
    assert_eq!(none["data"]["goal"], json!(null), "{none}");
    for (id, (wrong, why)) in (20..).zip([
        (json!({"type": "goal", "condition": "!"}), "needs a condition"),
        (json!({"type": "goal", "action": "resume"}), "there is no goal to go on with"),
        (json!({"type": "goal", "condition": "x", "action": "stop"}), "write one of them"),
        (json!({"type": "goal", "action": "fly"}), "unknown variant"),
    ]) {
        let refused = client.ask(wrong, id);
        assert_eq!(refused["success"], false, "{refused}");
        assert!(refused["error"].to_string().contains(why), "{refused}");
    }
    let command = "!test $(wc -l < lines) -ge 2";
    client.ask(json!({"type": "goal", "condition": command}), 3);
    let notice = client.wait_for("the goal is reached");
    assert_eq!((&notice["type"], &notice["code"]), (&json!("notice"), &json!("goal")), "{notice}");
    client.wait_for("\"idle\":true");
    assert_eq!(lines(&home), 2);
    // One that is never reached is dropped in the middle; its turn ends, and no other begins.
    client.ask(json!({"type": "goal", "condition": "!sleep 0.5; false"}), 4);
    client.wait_for("18 turns left");
    let shown = client.ask(json!({"type": "goal"}), 5);
    assert!(shown["data"]["text"].to_string().contains("at work"), "{shown}");
    let busy = client.ask(json!({"type": "goal", "condition": "other"}), 6);
    assert_eq!(busy["class"], "busy", "{busy}");
    client.ask(json!({"type": "goal", "action": "stop"}), 7);
    let (output, all) = client.finish();
    output.assert_code(0);
    let last = all.iter().rfind(|line| line["type"] == "run_end").expect("an end");
    assert_eq!(last["outcome"], "answered", "{last}");
    assert!(lines(&home) < 20, "it went on");
    // A killed program leaves it paused.
    let mut client = Client::start(&home);
    client.ask(json!({"type": "goal", "condition": "!sleep 0.5; false"}), 1);
    client.wait_for("18 turns left");
    client.child.signal(Signal::Kill);
    client.child.wait(Duration::from_secs(30));
    let mut client = Client::start(&home);
    let left = client.ask(json!({"type": "goal"}), 1);
    assert!(left["data"]["text"].to_string().contains("sleep 0.5; false (paused"), "{left}");
    client.ask(json!({"type": "goal", "action": "resume"}), 2);
    client.wait_for("19 turns left");
    client.ask(json!({"type": "abort"}), 3);
    client.wait_for("the goal is paused");
    client.finish();
}

#[test]
fn what_sub_agents_cost_counts_for_a_goal_and_a_limit_of_the_command_replaces_that_of_the_goal() {
    // Each turn begins a sub-agent, which costs 2.70 dollars.
    let script = || {
        Script::answer_with(|request: &RecordedRequest, number| {
            let last = json!(request.messages().last()).to_string();
            if json!(request.messages().first()).to_string().contains("[Task ") {
                let done = last.contains("tool_result");
                let path = json!({"path": "."});
                let call = Reply::anthropic().tool_call(format!("t{number}"), "ls", path);
                let done_or =
                    if done { Reply::anthropic().text("done") } else { call.usage(900_000, 10) };
                return done_or.step();
            }
            if last.contains("tool_result") {
                return Reply::anthropic().text("More.").step();
            }
            let order = json!({"task": "look"});
            Reply::anthropic().tool_call(format!("c{number}"), "sessions_spawn", order).step()
        })
    };
    for (limit, tasks, says) in [
        (&["--goal", "!false"][..], 2, "the goal is not reached: it cost $5.4"),
        (&["--goal", "!false", "--max-cost", "9"][..], 4, "raise --max-cost"),
        (&["--goal", "!false", "--max-cost", "1"][..], 1, "raise --max-cost"),
    ] {
        let server = ModelServer::spawn_blocking_thread(script());
        let home = TempHome::new();
        let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
        config["agents"] = json!({"defaults": {"sandbox": {"mode": "off"}}});
        home.write_config(&config);
        let output = run(&home, &[&["run", "begin"], limit].concat());
        output.assert_code(1);
        assert!(output.stderr().contains(says), "{limit:?}: {}", output.stderr());
        let is_task = |request: &RecordedRequest| {
            request.messages().len() == 1
                && json!(request.messages().first()).to_string().contains("[Task ")
        };
        assert_eq!(server.requests().iter().filter(|it| is_task(it)).count(), tasks, "{limit:?}");
    }
}

#[test]
fn a_goal_that_is_killed_in_the_first_turn_of_a_new_session_is_kept() {
    let gate = Gate::closed();
    let script = Script::answer_with(move |_, _| {
        Reply::anthropic().text("One more.").step().hold_after(0, &gate)
    });
    let server = ModelServer::spawn_blocking_thread(script);
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    // As a script, in the chat, and by a program.
    let script =
        RunningChild::spawn(&mut myclaw(&home, &["run", "-s", "one", "--goal", "!test -e a"]));
    server.wait_for_requests_blocking(1);
    script.signal(Signal::Kill);
    script.wait(PATIENCE);
    let mut terminal = Terminal::spawn(&myclaw(&home, &["chat", "-s", "two"]));
    terminal.expect("You: ");
    terminal.send_line("/goal !test -e b");
    server.wait_for_requests_blocking(2);
    let id = terminal.id().to_string();
    assert!(std::process::Command::new("kill").args(["-9", &id]).status().expect("kill").success());
    terminal.wait();
    let mut client = Client::of(&mut myclaw(&home, &["rpc", "-s", "three"]));
    client.ask(json!({"type": "goal", "condition": "!test -e c"}), 1);
    server.wait_for_requests_blocking(3);
    client.child.signal(Signal::Kill);
    client.child.wait(PATIENCE);
    for (session, condition) in [("one", "test -e a"), ("two", "test -e b"), ("three", "test -e c")]
    {
        let mut terminal = Terminal::spawn(&myclaw(&home, &["chat", "-s", session]));
        prompt_after(&mut terminal, "goal paused");
        ask(&mut terminal, "/goal", &format!("{condition} (paused, 19 turns left"));
        leave(&mut terminal);
    }
}
