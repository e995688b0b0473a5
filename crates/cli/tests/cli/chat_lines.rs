//! `myclaw chat` without a terminal: line by line.

use myclaw_testkit::{Reply, RunningChild, Script, Signal, TempHome};
use serde_json::json;

use crate::{always, myclaw, run, serve};

fn chat(home: &TempHome, input: &str) -> myclaw_testkit::ChildOutput {
    RunningChild::run_with_input(&mut myclaw(home, &["chat"]), input)
}

#[test]
fn each_line_is_a_message_over_one_connection() {
    let (server, home) = serve([
        Reply::anthropic().text("First."),
        Reply::anthropic().tool_call("call_1", "bash", json!({"command": "true"})),
        Reply::anthropic().text("Second."),
    ]);
    let output = chat(&home, "one\n\ntwo \\\nlines\nexit\nnever sent\n");
    output.assert_code(0);
    assert_eq!(output.stdout(), "First.\nSecond.\n");
    assert!(output.stderr().contains("tool ok bash"), "{}", output.stderr());
    server.assert_finished();
    assert_eq!(server.connections(), 1);
    let said = server.requests()[1].messages()[2]["content"].to_string();
    assert!(said.contains("two \\nlines"), "{said}");
}

#[test]
fn commands_answer_on_stdout_and_send_nothing() {
    let (server, home) = serve(Reply::anthropic().text("Hi.").usage(10, 5));
    let output = chat(
        &home,
        "hello\n/help\n/usage\n/stop\n/later\n/modle\n/model\n/new\n/sessions\n/sessions main\n/quit\n",
    );
    output.assert_code(0);
    let stdout = output.stdout();
    for expected in [
        "/model [PROVIDER/MODEL]",
        "this chat: 1 turn, 10 tokens in, 5 out",
        "/stop has nothing to stop: no turn runs",
        "/later needs a text",
        "there is no command `/modle`; did you mean `/model`?",
        "anthropic/claude-sonnet-4-20250514 answers",
        "; the one before is kept as `main`",
        "  main  ",
        "continuing `main`",
    ] {
        assert!(stdout.contains(expected), "{expected}: {stdout}");
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn cost_tells_that_of_the_chat_the_session_and_the_day() {
    let turn = |text: &str| Reply::anthropic().text(text).usage(10_000, 1_000);
    let (_server, home) = serve(Script::repeat(turn("Yes.")));
    run(&home, &["run", "-s", "other", "one"]).assert_code(0);
    run(&home, &["run", "two"]).assert_code(0);
    let output = chat(&home, "three\n/cost\n");
    output.assert_code(0);
    let stdout = output.stdout();
    let expected = "this chat: 1 turn, 10000 tokens in, 1000 out, $0.0450\n\
                    session `main`: 22000 tokens, $0.0900\n\
                    today, all sessions: 33000 tokens, $0.1350\n";
    assert!(stdout.contains(expected), "{stdout}");
}

#[test]
fn a_new_session_begins_without_the_old_one() {
    let (server, home) = always("Yes.");
    chat(&home, "one\n/new trip\ntwo\n/new trip\n/sessions main\nthree\n").assert_code(0);
    let counts: Vec<usize> =
        server.requests().iter().map(|request| request.messages().len()).collect();
    assert_eq!(counts, [1, 1, 3]);
    assert!(home.transcript_path("trip").exists());
}

#[test]
fn another_model_answers_from_now_on() {
    let (server, home) = serve(Reply::anthropic().text("From the server."));
    home.write_in_workspace("here.txt", "x");
    let output = chat(&home, "hello\n/model nothing\n/model builtin/demo\nlist the files\n");
    output.assert_code(0);
    let stdout = output.stdout();
    assert!(stdout.contains("From the server.") && stdout.contains("here.txt"), "{stdout}");
    assert!(stdout.contains("`nothing` names no provider"), "{stdout}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_failed_turn_is_reported_and_the_chat_goes_on() {
    let (_server, home) = serve([
        myclaw_testkit::Step::status(
            400,
            &[],
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
        ),
        Reply::anthropic().text("Better.").step(),
    ]);
    let output = chat(&home, "one\ntwo\n");
    output.assert_code(4);
    assert_eq!(output.stdout(), "Better.\n");
    assert!(output.stderr().contains("not every message was answered"), "{}", output.stderr());
}

#[test]
fn no_prompt_is_shown_where_nobody_types() {
    let home = TempHome::new();
    let output = chat(&home, "");
    output.assert_code(0);
    assert_eq!(output.stdout(), "");
    assert!(!output.stderr().contains("You: "), "{}", output.stderr());
}

#[test]
fn a_signal_at_the_prompt_leaves_and_during_a_turn_aborts() {
    let (server, home) = serve([Reply::anthropic().text("slow").step().stall_after(200)]);
    let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &["chat"]));
    child.send("hello\n");
    server.wait_for_requests_blocking(1);
    child.signal(Signal::Interrupt);
    let output = child.wait(std::time::Duration::from_secs(30));
    output.assert_code(130);
    assert!(output.stderr().contains("aborted"), "{}", output.stderr());
}
