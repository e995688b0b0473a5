//! Talking into a turn of `myclaw chat`.

use std::time::Duration;

use myclaw_testkit::{RecordedRequest, Reply, Step, Terminal};
use serde_json::{Value, json};

use crate::screen::{ask, chat, slow_tool};
use crate::{myclaw, serve};

fn users(request: &RecordedRequest) -> String {
    let said: Vec<Value> = request
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].clone())
        .collect();
    json!(said).to_string()
}

#[test]
fn enter_steers_and_alt_enter_follows_up() {
    let (server, home) = serve([
        slow_tool("call_1").tool_call("call_2", "bash", json!({"command": "echo never"})),
        Reply::anthropic().text("Steered."),
        Reply::anthropic().text("Followed up."),
    ]);
    let mut terminal = chat(&home);
    terminal.send_line("begin");
    terminal.expect("until test -e go");
    terminal.send("not the sec");
    terminal.expect("> not the sec");
    terminal.send_line("ond one");
    terminal.expect("is read at the next step: not the second one");
    terminal.send("and then this\x1b\r");
    terminal.expect("is read when this is done: and then this");
    terminal.send_line("/queue");
    terminal.expect("1  next     not the second one");
    terminal.expect("2  later    and then this");
    terminal.send("half a line");
    home.write_in_workspace("go", "");
    terminal.expect("tool skipped bash");
    terminal.expect("read: not the second one");
    terminal.expect("Steered.");
    terminal.expect("read: and then this");
    terminal.expect("Followed up.");
    // What was typed and not sent is still there.
    terminal.expect("You: ");
    terminal.expect("half a line");
    terminal.send("\x15");
    terminal.send_line("/quit");
    assert!(terminal.wait().success());
    let requests = server.requests();
    assert!(users(&requests[1]).contains("not the second one"), "{}", users(&requests[1]));
    assert!(!users(&requests[1]).contains("and then this"));
    assert!(users(&requests[2]).contains("and then this"));
    server.assert_finished();
}

/// A terminal may deliver many keys at once, and the prompt reads them all.
#[test]
fn keys_that_come_together_with_enter_belong_to_the_turn() {
    let (server, home) = serve([
        slow_tool("call_1"),
        Reply::anthropic().text("Steered."),
        Reply::anthropic().text("Followed up."),
    ]);
    let mut terminal = chat(&home);
    terminal.send(
        "begin\rsteer ü nowx\x7f\r\x1b[200~two\nlines\x1b[201~\x1b\rdropped\x15\tgone off\x17half a li",
    );
    terminal.expect("is read at the next step: steer ü now");
    terminal.expect("is read when this is done: two");
    terminal.expect(">  gone half a li");
    home.write_in_workspace("go", "");
    terminal.expect("Followed up.");
    terminal.expect("You: ");
    terminal.send("\x15");
    terminal.send_line("/quit");
    assert!(terminal.wait().success());
    let requests = server.requests();
    let last = users(&requests[2]);
    assert!(users(&requests[1]).contains("\"steer ü now\""), "{}", users(&requests[1]));
    assert!(last.contains("\"two\\nlines\"") && !last.contains("half a li"), "{last}");
    server.assert_finished();
}

#[test]
fn what_waits_can_be_taken_back_and_the_turn_stopped() {
    let (server, home) = serve([slow_tool("call_1")]);
    let mut terminal = chat(&home);
    terminal.send_line("begin");
    terminal.expect("until test -e go");
    terminal.send_line("one");
    terminal.expect("is read at the next step: one");
    terminal.send_line("/later two");
    terminal.expect("is read when this is done: two");
    terminal.send_line("/queue drop 1");
    terminal.expect("taken back: one");
    terminal.send_line("/new");
    terminal.expect("`/new` has to wait");
    terminal.send_line("/stop");
    terminal.expect("aborted; the session is kept");
    terminal.expect("1 message waits to be answered");
    terminal.expect("You: ");
    server.push(Reply::anthropic().text("I was stopped."));
    server.push(Reply::anthropic().text("Two it is."));
    terminal.send_line("/continue");
    terminal.expect("I was stopped.");
    terminal.expect("Two it is.");
    terminal.expect("You: ");
    terminal.send_line("/continue");
    terminal.expect("nothing to continue");
}

#[test]
fn what_was_said_to_a_killed_chat_is_answered_by_the_next_one() {
    let (server, home) = serve([slow_tool("call_1")]);
    let mut terminal = chat(&home);
    terminal.send_line("begin");
    terminal.expect("until test -e go");
    terminal.send_line("stop that");
    terminal.expect("is read at the next step: stop that");
    drop(terminal);

    server.push(Reply::anthropic().text("Stopped."));
    let mut terminal = Terminal::spawn(&myclaw(&home, &[]));
    terminal.expect("the last message has no answer yet; /continue goes on with it");
    terminal.expect("1 message waits to be answered");
    terminal.expect("You: ");
    terminal.send_line("/queue");
    terminal.expect("next     stop that");
    terminal.send_line("/continue");
    terminal.expect("read: stop that");
    terminal.expect("Stopped.");
    let request = server.last_request();
    assert!(users(&request).contains("stop that"));
    assert!(request.body_text().contains("session was interrupted"));
    terminal.expect("You: ");
    terminal.send_line("/queue");
    terminal.expect("nothing waits");
}

#[test]
fn typing_while_an_answer_streams_leaves_the_answer_whole() {
    let text: String = (0..40).map(|number| format!("Line {number} of it.\n\n")).collect();
    let answer = Reply::anthropic().text(text).in_deltas(80).step().event_by_event();
    let (_server, home) = serve([
        answer.pause(Duration::from_millis(5)),
        Step::from(Reply::anthropic().text("Thanks.")),
    ]);
    // All of it stays on the screen.
    let mut terminal = Terminal::spawn_sized(&myclaw(&home, &[]), 100, 120);
    terminal.expect("You: ");
    terminal.send_line("count");
    terminal.expect("Line 2");
    terminal.send("well d");
    terminal.expect("> well d");
    terminal.send_line("one");
    terminal.expect("read: well done");
    terminal.expect("Thanks.");
    // The typed line came and went in between.
    let screen = terminal.expect_screen(|screen| screen.ends_with("You:"));
    for number in 0..40 {
        assert!(
            screen.contains(&format!("\nLine {number} of it.\n\n")),
            "line {number}:\n{screen}"
        );
    }
}

#[test]
fn another_model_takes_over_before_the_turn_is_done() {
    let (server, home) = serve([
        slow_tool("call_1"),
        Reply::anthropic().text("Taken over."),
        Reply::anthropic().text("Still here."),
    ]);
    let mut terminal = chat(&home);
    terminal.send_line("begin");
    terminal.expect("until test -e go");
    terminal.send_line("/model nobody/x");
    terminal.expect("the provider `nobody` is not known");
    terminal.send_line("/thinking deep");
    terminal.expect("deep");
    terminal.send_line("/model anthropic/another-model");
    terminal.expect("anthropic/another-model answers from now on");
    home.write_in_workspace("go", "");
    terminal.expect("Taken over.");
    terminal.expect("You: ");
    ask(&mut terminal, "and now?", "Still here.");
    terminal.send_line("/quit");
    assert!(terminal.wait().success());
    let models: Vec<Value> =
        server.requests().iter().map(|request| request.json()["model"].clone()).collect();
    assert_eq!(models[1..], ["another-model", "another-model"]);
    assert_ne!(models[0], models[1]);
    server.assert_finished();
}
