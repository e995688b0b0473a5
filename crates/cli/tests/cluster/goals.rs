//! A goal of a gateway that was killed: another gateway on the same database continues it.

use myclaw_testkit::Terminal;

use super::*;

/// Beginning of the message that says that a goal is continued.
const RESTARTED: &str = "The program was restarted while it worked on this goal";

#[test]
fn another_gateway_goes_on_with_the_goal_of_one_that_is_gone() {
    let Some((_server, url)) = database() else { return };
    // The first turn has an answer, and the second waits until its gateway is gone. Then the goal is reached.
    let gate = Gate::closed();
    let held = gate.clone();
    let model = ModelServer::spawn_blocking_thread(Script::answer_with(move |request, _| {
        let said = json!(request.messages()).to_string();
        let last = json!(request.messages().last()).to_string();
        match () {
            () if said.contains(RESTARTED) => {
                Reply::anthropic().text("There.\nGOAL REACHED").usage(1_000, 10).step()
            }
            () if last.contains("not reached yet") => {
                Reply::anthropic().text("Late.").step().hold_after(0, &held)
            }
            () => Reply::anthropic().text("More.").usage(100_000, 10).step(),
        }
    }));
    let machines = [Machine::new("one", &url, &model), Machine::new("two", &url, &model)];
    let gone = machines[0].start();
    let mut terminal = Terminal::spawn(&machines[0].command(&["attach"]));
    terminal.expect("You: ");
    terminal.send_line("/goal the tests pass");
    terminal.expect("works until this holds: the tests pass");
    model.wait_for_requests_blocking(2);
    let left = machines[1].start();
    gone.kill();
    drop(terminal);
    let asked = || {
        let asked = model.requests();
        asked.iter().any(|request| json!(request.messages()).to_string().contains(RESTARTED))
    };
    until("the goal goes on", asked);
    let mut terminal = Terminal::spawn(&machines[1].command(&["attach"]));
    // It may be drawn in parts, and the prompt comes when the work is over.
    terminal.expect_screen(|screen| {
        screen.contains("GOAL REACHED") && screen.trim_end().ends_with("You:")
    });
    terminal.send_line("/goal");
    terminal.expect("there is no goal");
    drop(terminal);
    gate.open();
    left.stop();
    let logs = exported(&machines[1]);
    assert_eq!(count(&logs, "user", RESTARTED), 1, "it is said once");
    let late = logs.iter().flat_map(|(_, rows)| rows).filter(|row| row["content"] == "Late.");
    assert_eq!(late.count(), 0, "nothing of the gateway that is gone");
}
