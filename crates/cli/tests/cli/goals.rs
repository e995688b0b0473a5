//! `/goal`: the agent continues until a condition holds, within bounds, and a killed chat leaves the goal paused.

use myclaw_testkit::{ModelServer, RecordedRequest, Reply, Script, Step, TempHome, WireFormat};
use serde_json::json;

use crate::run;
use crate::screen::{ask, chat, leave, prompt_after};

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
    let empty = run(&home, &["run", "--goal", "!"]);
    empty.assert_code(2);
    assert!(empty.stderr().contains("--goal needs a condition"), "{}", empty.stderr());
}
