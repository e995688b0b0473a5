//! The agent's plan: shown in place, kept by restarts and summaries, and approved in the mode `plan`.

use myclaw_testkit::{ModelServer, RecordedRequest, Reply, Script, Step, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::rpc::Client;
use crate::run;
use crate::screen::{ask, chat, leave, prompt_after};

fn plan(statuses: [&str; 2]) -> Value {
    let [first, second] = statuses;
    json!({"steps": [
        {"text": "Look at the file", "status": first}, {"text": "Change the file", "status": second},
    ]})
}

/// A model that proposes a plan, proposes it again after a no, and carries it out after a yes.
fn answer(request: &RecordedRequest, number: usize) -> Step {
    let last = json!(request.messages().last()).to_string();
    let id = format!("call_{number}");
    let reply = Reply::anthropic();
    let reply = if last.contains("summar") && !last.contains("tool_result") {
        reply.text("They planned.")
    } else if last.contains("write first") || last.contains("has approved the plan") {
        reply.tool_call(id, "write", json!({"path": "made.txt", "content": "x"}))
    } else if last.contains("approval for this call was denied") || last.contains("plan it") {
        reply.tool_call(id, "update_plan", plan(["in_progress", "pending"]))
    } else {
        reply.text("Done.")
    };
    reply.step()
}

fn home_planning() -> (TempHome, ModelServer) {
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(answer));
    let home = TempHome::new();
    home.use_server(&server, WireFormat::AnthropicMessages);
    (home, server)
}

#[test]
fn the_plan_is_shown_and_outlives_restarts_and_summaries() {
    let (home, server) = home_planning();
    let output = run(&home, &["run", "--json", "plan it"]);
    output.assert_code(0);
    let ends: Vec<Value> = output
        .stdout()
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .filter(|event: &Value| event["type"] == "tool_end")
        .collect();
    assert_eq!(ends[0]["details"]["plan"], plan(["in_progress", "pending"]));
    // A new chat shows what is left to do.
    let mut terminal = chat(&home);
    let screen = prompt_after(&mut terminal, "[>] Look at the file");
    assert!(screen.contains("[ ] Change the file"), "{screen}");
    ask(&mut terminal, "/todos", "[>] Look at the file");
    ask(&mut terminal, "/new other", "new session");
    ask(&mut terminal, "/todos", "the agent has made no plan here");
    terminal.send_line("plan it");
    terminal.expect("Done.");
    let screen = prompt_after(&mut terminal, "Done.");
    assert!(screen.contains("[>] Look at the file"), "{screen}");
    leave(&mut terminal);
    // The model knows it after a summary of everything, and after a second one.
    for message in ["hello", "again"] {
        run(&home, &["run", message]).assert_code(0);
        run(&home, &["run", message]).assert_code(0);
        run(&home, &["sessions", "compact", "main"]).assert_code(0);
        run(&home, &["run", "go on"]).assert_code(0);
        let sent = json!(server.last_request().messages()).to_string();
        assert_eq!(sent.matches("The plan that the user sees").count(), 1, "{sent}");
        assert!(sent.contains("- Look at the file (in_progress)"), "{sent}");
    }
}

#[test]
fn a_plan_is_refused_with_words_and_then_approved_which_ends_the_mode() {
    let (home, server) = home_planning();
    let mut terminal = chat(&home);
    ask(&mut terminal, "/plan", "mode plan: ");
    terminal.send_line("write first");
    terminal.expect("in the mode plan");
    prompt_after(&mut terminal, "Done.");
    assert!(!home.workspace().join("made.txt").exists());
    terminal.send_line("plan it");
    terminal.expect("update_plan wants to run: a plan of 2 steps");
    terminal.expect("the plan needs your approval");
    terminal.expect("Change the file");
    terminal.expect("your answer, and Enter");
    terminal.send_line("no, one step only");
    // It plans again.
    terminal.expect("a plan of 2 steps");
    terminal.expect("your answer, and Enter");
    let refused = json!(server.last_request().messages().last()).to_string();
    assert!(refused.contains("the user said no: one step only"), "{refused}");
    terminal.send_line("o");
    let screen = prompt_after(&mut terminal, "mode auto: ");
    assert!(screen.contains("[>] Look at the file") && !screen.contains("plan · "), "{screen}");
    assert!(home.workspace().join("made.txt").exists());
    leave(&mut terminal);
}

#[test]
fn a_person_writes_other_steps_which_are_the_plan_then() {
    let (home, server) = home_planning();
    let mut terminal = chat(&home);
    ask(&mut terminal, "/plan", "mode plan: ");
    terminal.send_line("plan it");
    // The next plan is another one, so nothing is approved for good.
    terminal.expect_screen(|screen| {
        screen.contains("!STEP; STEP in its place") && !screen.contains("(a)lways")
    });
    terminal.expect("your answer, and Enter");
    terminal.send_line("! ;");
    // Nothing is no plan: the model proposes again.
    terminal.expect("no command that another one");
    terminal.expect("a plan of 2 steps");
    terminal.expect("your answer, and Enter");
    terminal.send_line("!Read it; Change it;; Test it ");
    let screen = prompt_after(&mut terminal, "mode auto: ");
    let steps = ["[ ] Read it", "[ ] Change it", "[ ] Test it"];
    assert!(steps.iter().all(|step| screen.contains(step)), "{screen}");
    assert!(home.workspace().join("made.txt").exists());
    let sent = json!(server.last_request().messages()).to_string();
    assert!(sent.contains("The user changed the plan:\\n[ ] Read it\\n[ ] Change it"), "{sent}");
    leave(&mut terminal);
}

#[test]
fn another_program_of_this_machine_changes_a_plan_with_words() {
    let (home, server) = home_planning();
    let mut terminal = chat(&home);
    ask(&mut terminal, "/plan", "mode plan: ");
    terminal.send_line("plan it");
    terminal.expect("!STEP; STEP in its place");
    terminal.expect("your answer, and Enter");
    run(&home, &["sessions", "answer", "main", "!Read it; Test it"]).assert_code(0);
    prompt_after(&mut terminal, "mode auto: ");
    let sent = json!(server.last_request().messages()).to_string();
    assert!(sent.contains("The user changed the plan:\\n[ ] Read it\\n[ ] Test it"), "{sent}");
    leave(&mut terminal);
}

#[test]
fn a_program_approves_a_plan_and_the_mode_before_comes_back() {
    let (home, _server) = home_planning();
    let mut client = Client::start(&home);
    client.ask(json!({"type": "set_mode", "mode": "ask"}), 1);
    client.ask(json!({"type": "set_mode", "mode": "plan"}), 2);
    client.ask(json!({"type": "prompt", "message": "plan it"}), 3);
    let question = client.wait_for("\"type\":\"approval_requested\"");
    let id = question["toolCallId"].clone();
    client.ask(json!({"type": "approve", "toolCallId": id, "decision": "once"}), 4);
    let event = client.wait_for("\"to\":\"ask\"");
    assert_eq!(event["type"], "mode_changed");
    // The change that the plan holds is asked about, as before.
    let asked = client.wait_for("the mode ask asks before");
    let id = asked["toolCallId"].clone();
    client.ask(json!({"type": "approve", "toolCallId": id, "decision": "no"}), 5);
    client.finish();
    assert!(!home.workspace().join("made.txt").exists());
}
