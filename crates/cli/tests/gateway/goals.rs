//! Goals at the gateway: how a session looks while one is looked at, and what a kill leaves of one.

use std::sync::atomic::{AtomicUsize, Ordering};

use myclaw_testkit::Terminal;

use super::*;

/// Beginning of the message that says that a goal is continued.
const RESTARTED: &str = "The program was restarted while it worked on this goal";

/// What a request asks last.
fn last(request: &RecordedRequest) -> String {
    json!(request.messages().last()).to_string()
}

/// A model that says `more` for each turn of a goal, and that it is reached when it is asked with `stop_at`. Answers wait at
/// the gate from the request with the number `from` on.
fn pursuing(gate: &Gate, from: usize, stop_at: &'static str) -> Script {
    let gate = gate.clone();
    shared(move |request, number| {
        let text = if last(request).contains(stop_at) { "There.\nGOAL REACHED" } else { "More." };
        let step = Reply::anthropic().text(text).usage(1_000, 10).step();
        if number >= from { step.hold_after(0, &gate) } else { step }
    })
}

impl Bench {
    /// Attaches to a session that works on a goal again, which shows no prompt: what was said is there with the connection.
    fn attach_at_work(&self, session: &str) -> Terminal {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let mut terminal = Terminal::spawn(command.args(["attach", "--session", session]));
        terminal.expect("> The program was restarted");
        terminal
    }

    /// How often the user's messages of a session have this text.
    fn told(&self, session: &str, text: &str) -> usize {
        self.said(session).iter().filter(|said| said.contains(text)).count()
    }
}

#[test]
fn a_session_rests_while_its_goal_is_looked_at() {
    let bench = Bench::new(answering("One more."));
    bench.unconfined(|_| {});
    let gateway = bench.start();
    let (looking, go) = (bench.home.workspace().join("looking"), bench.home.workspace().join("go"));
    let mut first = bench.attach(&[]);
    let check = "touch looking; while [ ! -e go ]; do sleep 0.02; done";
    first.send_line(&format!("/goal !{check}"));
    until("the look", || looking.exists());
    // Who watched the run has seen its end, and who comes now is told the same.
    let (_, history) = gateway.client.get("/api/sessions/main/history").unwrap();
    assert_eq!(history["busy"], false, "{history}");
    let (_, listed) = gateway.client.get("/api/sessions").unwrap();
    assert_eq!(listed["sessions"][0]["busy"], false, "{listed}");
    let mut second = bench.attach(&[]);
    second.send_line("/goal");
    second.expect("(at work, 19 turns left");
    std::fs::write(&go, "").unwrap();
    for terminal in [&mut first, &mut second] {
        terminal.expect("the goal is reached");
        terminal.send_line("/quit");
        assert!(terminal.wait().success());
    }
    gateway.stop();
}

#[test]
fn a_goal_goes_on_after_a_kill_says_so_once_and_its_bounds_go_on_counting() {
    let gate = Gate::closed();
    // The second turn waits when the gateway is killed.
    let bench = Bench::new(pursuing(&gate, 1, RESTARTED));
    bench.unconfined(|_| {});
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    terminal.send_line("/goal three lines");
    terminal.expect("19 turns left");
    bench.model.wait_for_requests_blocking(2);
    gateway.kill();
    drop(terminal);
    let gateway = bench.start();
    bench.model.wait_for_requests_blocking(3);
    let asked = last(&bench.model.last_request());
    assert!(asked.contains(RESTARTED) && asked.contains("three lines"), "{asked}");
    let mut terminal = bench.attach_at_work("main");
    terminal.send_line("/goal");
    // Two turns were begun before, and this one.
    terminal.expect("three lines (at work, 17 turns left");
    gate.open();
    terminal.expect("the goal is reached: three lines");
    terminal.send_line("/goal");
    terminal.expect("there is no goal");
    terminal.send_line("/quit");
    terminal.wait();
    assert_eq!(bench.told("main", RESTARTED), 1);
    gateway.kill();
    // It is over, and the next start takes up nothing.
    let gateway = bench.start();
    let message = gateway.client.send("main", "hello", "hello").unwrap();
    gateway.client.outcome(&message).unwrap();
    assert_eq!(bench.told("main", RESTARTED), 1);
    gateway.stop();
}

#[test]
fn a_goal_that_is_killed_in_the_first_turn_of_a_new_session_goes_on_there() {
    let gate = Gate::closed();
    let bench = Bench::new(pursuing(&gate, 0, RESTARTED));
    bench.unconfined(|_| {});
    for kill in 0..2 {
        let gateway = bench.start();
        if kill == 0 {
            let mut terminal = bench.attach(&["--session", "new"]);
            terminal.send_line("/goal !test -e done");
            terminal.expect("works until this holds");
        }
        bench.model.wait_for_requests_blocking(kill + 1);
        gateway.kill();
    }
    let gateway = bench.start();
    bench.model.wait_for_requests_blocking(3);
    let asked = last(&bench.model.last_request());
    assert!(asked.contains("test -e done") && asked.contains(RESTARTED), "{asked}");
    std::fs::write(bench.home.workspace().join("done"), "").unwrap();
    let mut terminal = bench.attach_at_work("new");
    gate.open();
    terminal.expect("the goal is reached");
    terminal.send_line("/goal");
    terminal.expect("there is no goal");
    assert_eq!(bench.told("new", RESTARTED), 2);
    gateway.stop();
}

#[test]
fn a_goal_that_rests_is_not_taken_up_and_what_a_killed_turn_has_cost_counts() {
    let gate = Gate::closed();
    let held = gate.clone();
    // A call that costs 0.30 dollars, and an answer that waits.
    let bench = Bench::new(shared(move |request, number| {
        match last(request).contains("tool_result") || number > 2 {
            true => Reply::anthropic().text("More.").step().hold_after(0, &held),
            false => Reply::anthropic()
                .tool_call(format!("call_{number}"), "ls", json!({"path": "."}))
                .usage(100_000, 10)
                .step(),
        }
    }));
    bench.unconfined(|_| {});
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    terminal.send_line("/goal !false");
    bench.model.wait_for_requests_blocking(2);
    gateway.kill();
    drop(terminal);
    let gateway = bench.start();
    bench.model.wait_for_requests_blocking(3);
    let mut terminal = bench.attach_at_work("main");
    terminal.send_line("/goal");
    terminal.expect("18 turns left, $0.30 spent");
    terminal.send_line("/stop");
    terminal.expect("the goal is paused");
    terminal.send_line("/quit");
    terminal.wait();
    gateway.kill();
    let asked = bench.model.requests().len();
    let gateway = bench.start();
    gate.open();
    let message = gateway.client.send("main", "hello", "hello").unwrap();
    gateway.client.outcome(&message).unwrap();
    // Nothing but the answer to the message.
    assert_eq!(bench.told("main", RESTARTED), 1);
    assert!(bench.model.requests().len() > asked);
    let mut terminal = bench.attach(&[]);
    terminal.send_line("/goal");
    terminal.expect("false (paused, 18 turns left");
    gateway.stop();
}

#[test]
fn what_a_sub_agent_cost_until_a_kill_counts_too() {
    let gate = Gate::closed();
    let held = gate.clone();
    // The sub-agent makes a call that costs 0.90 dollars or more; then it waits, and so does its parent.
    let bench = Bench::new(shared(move |request, number| {
        let messages = json!(request.messages()).to_string();
        let is_task = messages.contains("[Task ") && !messages.contains("Work until this");
        let call = |tool: &str, arguments: Value| {
            Reply::anthropic().tool_call(format!("c{number}"), tool, arguments)
        };
        match last(request).contains("tool_result") || messages.contains(RESTARTED) {
            true => Reply::anthropic().text("More.").step().hold_after(0, &held),
            false if is_task => call("ls", json!({"path": "."})).usage(300_000, 10).step(),
            false => call("sessions_spawn", json!({"task": "look"})).step(),
        }
    }));
    bench.unconfined(|_| {});
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    terminal.send_line("/goal !false");
    // Two calls of each, of which the second one waits.
    bench.model.wait_for_requests_blocking(4);
    gateway.kill();
    drop(terminal);
    let gateway = bench.start();
    bench.model.wait_for_requests_blocking(6);
    let mut terminal = bench.attach_at_work("main");
    terminal.send_line("/goal");
    terminal.expect("18 turns left, $0.90 spent");
    gate.open();
    gateway.stop();
}

#[test]
fn what_sub_agents_cost_counts_for_the_goal_of_their_parent() {
    let (gate, tasks) = (Gate::closed(), AtomicUsize::new(0));
    let opening = gate.clone();
    // Two calls of the sub-agent cost 5.40 dollars. The second turn of its parent ends when they are counted.
    let bench = Bench::new(shared(move |request, number| {
        let messages = json!(request.messages()).to_string();
        if messages.contains("[Task ") && !messages.contains("Work until this") {
            let count = tasks.fetch_add(1, Ordering::SeqCst);
            if count == 2 {
                opening.open();
                return Reply::anthropic().text("done").step();
            }
            let call =
                Reply::anthropic().tool_call(format!("t{number}"), "ls", json!({"path": "."}));
            return call.usage(900_000, 10).step();
        }
        let asked = last(request);
        if asked.contains("Work until this") && !asked.contains("tool_result") {
            let order = json!({"task": "look"});
            return Reply::anthropic()
                .tool_call(format!("c{number}"), "sessions_spawn", order)
                .step();
        }
        let answer = Reply::anthropic().text("More.").step();
        if asked.contains("tool_result") { answer } else { answer.hold_after(0, &gate) }
    }));
    bench.unconfined(|_| {});
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    terminal.send_line("/goal !false");
    terminal.expect("the goal is paused: it cost $5.4");
    gateway.stop();
}
