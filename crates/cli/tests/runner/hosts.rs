//! Hosts that behave well, and hosts that do not.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use myclaw_testkit::{Reply, RunningChild, Script, Signal};
use serde_json::{Value, json};

use crate::{Bench, START, blocks, wait_until};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

/// A model that runs a command which shows that it runs and then takes long.
fn slow(command: &str) -> Script {
    let command = format!("touch begun; {command}");
    Script::from([Reply::openai().text("Wait.").tool_call(
        "call_1",
        "Bash",
        json!({"command": command}),
    )])
    .then_repeat(Reply::openai().text("Done."))
}

fn wait_for_command(bench: &Bench) {
    wait_until("the command runs", || bench.path("w/group/begun").exists());
}

#[test]
fn a_closed_output_ends_the_job_with_its_session_saved() {
    let bench = Bench::new(slow("sleep 50"));
    let mut command = bench.command(&[]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bench.job("Go", json!({})).as_bytes()).unwrap();
    wait_for_command(&bench);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(141));
    let session = bench.only_session();
    assert_eq!(session["messages"].as_array().unwrap().len(), 3, "{session}");
}

#[test]
fn a_killed_job_goes_on_in_the_same_session() {
    let bench = Bench::new(slow("sleep 5"));
    let child = bench.start(&bench.job("Go", json!({})), &[]);
    wait_for_command(&bench);
    child.signal(Signal::Kill);
    drop(child.wait(LONG));
    let id = bench.only_session()["id"].clone();
    let output = bench.run(bench.job("And now?", json!({"sessionId": id})), &[]);
    output.assert_code(0);
    assert_eq!(blocks(&output)[0]["newSessionId"], id);
    let requests = bench.server.requests();
    let said: Vec<Value> =
        requests[1].messages()[1..].iter().map(|message| message["content"].clone()).collect();
    let interrupted = "[Tool result missing — session was interrupted]";
    assert_eq!(json!(said), json!(["Go", "Wait.", interrupted, "And now?"]));
}

#[test]
fn a_signal_ends_the_job_with_a_block() {
    let bench = Bench::new(slow("sleep 50"));
    let child = bench.start(&bench.job("Go", json!({})), &[]);
    wait_for_command(&bench);
    child.signal(Signal::Terminate);
    let output = child.wait(LONG);
    output.assert_code(1);
    let found = blocks(&output);
    assert_eq!(found[1]["status"], "error");
    assert!(found[1]["error"].as_str().unwrap().contains("stopped by a signal"));
    assert_eq!(bench.only_session()["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn a_job_that_stays_answers_further_messages_until_it_is_closed() {
    let bench =
        Bench::new(Script::from([Reply::openai().text("One."), Reply::openai().text("Two.")]));
    let child = bench.start(&bench.job("First", json!({})), &["--stay"]);
    child.wait_for_stdout("\"result\":null");
    bench.write("w/ipc/input/1-x.tmp", r#"{"type":"message","text":"Second"}"#);
    fs::rename(bench.path("w/ipc/input/1-x.tmp"), bench.path("w/ipc/input/1-x.json")).unwrap();
    child.wait_for_stdout("Two.");
    bench.write("w/ipc/input/_close", "");
    let output = child.wait(LONG);
    output.assert_code(0);
    let results: Vec<Value> = blocks(&output).iter().map(|block| block["result"].clone()).collect();
    assert_eq!(json!(results), json!(["One.", null, "Two.", null]));
    assert_eq!(bench.result(1), "Second");
    assert_eq!(fs::read_dir(bench.path("w/ipc/input")).unwrap().count(), 0);
}

#[test]
fn an_idle_job_ends_and_a_closed_one_makes_no_further_call() {
    let bench = Bench::new(Script::repeat(Reply::openai().text("One.")));
    bench.run(bench.job("Go", json!({})), &["--stay", "--idle-limit", "1s"]).assert_code(0);

    let bench = Bench::new(slow("touch ../ipc/input/_close"));
    let output = bench.run(bench.job("Go", json!({})), &[]);
    output.assert_code(0);
    assert_eq!(bench.server.requests().len(), 1);
    assert_eq!(output.stdout().matches(START).count(), 2);
}

/// A model that asks the user, after a message has come that is no reply.
fn asking() -> Bench {
    let other = r#"echo '{"type":"message","text":"other"}' > ../ipc/input/1-other.json"#;
    Bench::new(
        Script::from([
            Reply::openai().tool_call("call_1", "Bash", json!({"command": other})),
            Reply::openai().tool_call("call_2", "ask_boss", json!({"text": "May I?"})),
        ])
        .then_repeat(Reply::openai().text("Fine.")),
    )
}

fn wait_for_question(bench: &Bench) {
    wait_until("the question is asked", || !bench.sent("messages").is_empty());
}

#[test]
fn a_question_waits_for_its_reply_and_leaves_other_messages_for_the_next_turn() {
    let bench = asking();
    let child: RunningChild = bench.start(&bench.job("Go", json!({})), &["--stay"]);
    wait_for_question(&bench);
    assert_eq!(bench.sent("messages")[0]["text"], "May I?");
    bench.write("w/ipc/input/2-reply.json", r#"{"type":"message","text":"Yes, you may"}"#);
    wait_until("the other message is answered", || bench.server.requests().len() == 4);
    bench.write("w/ipc/input/_close", "");
    child.wait(LONG).assert_code(0);
    assert_eq!(bench.result(2), "Yes, you may");
    assert_eq!(bench.result(3), "other");
}

#[test]
fn a_question_ends_at_its_limit_and_when_the_job_is_closed() {
    let bench = asking();
    bench.run(bench.job("Go", json!({})), &["--ask-limit", "1s"]).assert_code(0);
    assert!(bench.result(2).contains("there was no reply within 1 seconds"), "{}", bench.result(2));
    assert!(bench.path("w/ipc/input/1-other.json").exists());

    let bench = asking();
    let child = bench.start(&bench.job("Go", json!({})), &[]);
    wait_for_question(&bench);
    bench.write("w/ipc/input/_close", "");
    child.wait(LONG).assert_code(0);
    assert_eq!(bench.server.requests().len(), 2);
    assert!(bench.only_session().to_string().contains("the job ends before the reply"));
}
