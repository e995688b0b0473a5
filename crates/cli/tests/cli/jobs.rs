//! Background jobs, from their start to their end, in every front-end.

use myclaw_testkit::{
    RecordedRequest, Reply, Script, Signal, Step, TempHome, is_running, send_signal,
    wait_until_gone,
};
use serde_json::{Value, json};

use crate::rpc::{Client, of_type, prompt};
use crate::sandbox::until;
use crate::screen::{ask, chat};
use crate::{myclaw, run, serve};

/// A job that says its process id and continues until there is a file `go`.
pub(crate) const WAITING: &str = "echo $$ > pid; until test -e go || ! test -e \"$PWD\"; do sleep 0.01; done; \
                       echo finished; exit 3";

/// Starts `command` as a job when the first message comes, and answers everything else with text.
pub(crate) fn starts_job(
    command: &'static str,
) -> impl Fn(&RecordedRequest, usize) -> Step + Send + Sync {
    move |_, number| match number {
        0 => Reply::anthropic()
            .tool_call("a", "bash", json!({"command": command, "background": true}))
            .step(),
        number => Reply::anthropic().text(format!("answer {number}")).step(),
    }
}

pub(crate) fn all_text(request: &RecordedRequest) -> String {
    Value::from(request.messages().to_vec()).to_string()
}

/// Waits until the workspace has a file with a process id.
pub(crate) fn pid_in(home: &TempHome, name: &str) -> u32 {
    let path = home.workspace().join(name);
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    until(name, || read().ends_with('\n'));
    read().trim().parse().expect("a process id")
}

#[test]
fn the_end_of_a_job_begins_a_turn_in_an_idle_session() {
    let (server, home) = serve(Script::answer_with(starts_job(WAITING)));
    let mut client = Client::start(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"idle\":true");
    let pid = pid_in(&home, "pid");
    let listed = client.ask(json!({"type": "list_jobs"}), 2);
    let job = &listed["data"]["jobs"][0];
    assert_eq!((&job["job"], &job["running"]), (&json!("j1"), &json!(true)), "{listed}");
    assert_eq!(job["pid"], pid);
    home.write_in_workspace("go", "");
    client.wait_for("answer 2");
    let said = all_text(&server.last_request());
    assert!(
        said.contains(
            "[Message from MyClaw, not from the user: background job j1 is over: exit code 3 after "
        ),
        "{said}"
    );
    assert!(said.contains("\\n| finished"), "{said}");
    let (output, lines) = client.finish();
    output.assert_code(0);
    assert_eq!(of_type(&lines, "taken").len(), 2, "the message is taken once");
    assert!(!output.stdout().contains("jobs_ended"));
}

#[test]
fn a_job_that_a_program_kills_is_reported_to_the_agent() {
    let (server, home) = serve(Script::answer_with(starts_job(WAITING)));
    let mut client = Client::start(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"idle\":true");
    let pid = pid_in(&home, "pid");
    let killed = client.ask(json!({"type": "kill_job", "job": "j1"}), 2);
    assert_eq!(killed["data"]["job"]["end"]["how"], "killed", "{killed}");
    assert!(!is_running(pid));
    // The user knows it, so no turn is paid for it: the next message tells the agent.
    assert_eq!(server.requests().len(), 2);
    client.ask(prompt("and now?"), 5);
    client.wait_for("answer 2");
    assert!(all_text(&server.last_request()).contains("killed by the user after "));
    assert_eq!(server.requests().len(), 3);
    let again = client.ask(json!({"type": "kill_job", "job": "j1"}), 3);
    let error = again["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("job j1 does not run any more: killed by the user"), "{again}");
    let unknown = client.ask(json!({"type": "kill_job", "job": "x"}), 4);
    assert!(unknown["error"].as_str().unwrap_or_default().contains("there are: j1 ("), "{unknown}");
    client.finish().0.assert_code(0);
}

#[test]
fn a_single_run_ends_its_jobs_and_says_so() {
    let (_server, home) = serve(Script::answer_with(starts_job(WAITING)));
    let output = run(&home, &["run", "work"]);
    output.assert_code(0);
    let notice = "a background job was ended with its session: j1 (echo $$ > pid;";
    assert!(output.stderr().contains(notice), "{}", output.stderr());
    // The job may have been ended before it wrote its id.
    if let Ok(pid) = std::fs::read_to_string(home.workspace().join("pid")) {
        wait_until_gone(pid.trim().parse().expect("a process id"));
    }
    let left = std::fs::read_dir(home.state_directory().join("jobs")).expect("a directory").count();
    assert_eq!(left, 0, "the journal and its lock are gone");
}

/// Escapes by a session of its own, and by a daemon.
const ESCAPING: &str = "(setsid bash -c '(echo $BASHPID > daemon; exec sleep 600) & exit' \
                        </dev/null >/dev/null 2>&1 &)
                        setsid bash -c 'echo $$ > escaped; sleep 600; true' &
                        echo $$ > root; wait";

#[test]
fn what_a_killed_program_left_running_is_ended_at_the_next_start() {
    let (server, home) = serve(Script::answer_with(starts_job(ESCAPING)));
    let mut client = Client::start(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"idle\":true");
    let pids = ["daemon", "escaped", "root"].map(|name| pid_in(&home, name));
    client.child.signal(Signal::Kill);
    drop(client);
    assert!(pids.iter().all(|pid| is_running(*pid)), "nobody is there to end them");
    run(&home, &["run", "what about the job?"]).assert_code(0);
    for pid in pids {
        assert!(!is_running(pid), "{pid}");
    }
    let said = all_text(&server.last_request());
    assert!(said.contains("background job j1 is over: dead, exit unknown: MyClaw ended"), "{said}");
    run(&home, &["run", "and now?"]).assert_code(0);
    let said = all_text(&server.last_request());
    assert_eq!(said.matches("background job j1 is over").count(), 1, "{said}");
}

#[test]
fn a_command_of_a_killed_program_is_ended_too() {
    let waits = |_: &RecordedRequest, number: usize| match number {
        0 => Reply::anthropic().tool_call("a", "bash", json!({"command": ESCAPING})).step(),
        _ => Reply::anthropic().text("Hi.").step(),
    };
    let (_server, home) = serve(Script::answer_with(waits));
    let child = myclaw_testkit::RunningChild::spawn(&mut myclaw(&home, &["run", "work"]));
    let pids = ["daemon", "escaped", "root"].map(|name| pid_in(&home, name));
    let jobs = home.state_directory().join("jobs");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let is_noted = || {
        let entries = std::fs::read_dir(&jobs).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).any(|path| {
            path.extension().is_some_and(|end| end == "journal")
                && path.metadata().is_ok_and(|found| found.len() > 0)
        })
    };
    while !is_noted() {
        assert!(std::time::Instant::now() < until, "the command was never noted");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.signal(Signal::Kill);
    drop(child);
    run(&home, &["run", "hello"]).assert_code(0);
    for pid in pids {
        assert!(!is_running(pid), "{pid}");
    }
}

#[test]
fn a_chat_shows_jobs_and_answers_when_one_ends() {
    let (server, home) = serve(Script::answer_with(starts_job(WAITING)));
    let mut terminal = chat(&home);
    ask(&mut terminal, "work", "answer 1");
    pid_in(&home, "pid");
    ask(&mut terminal, "/jobs", "j1  running for ");
    terminal.send("half a li");
    terminal.expect("half a li");
    home.write_in_workspace("go", "");
    terminal.expect("answer 2");
    // What was typed so far is still there.
    terminal.expect("You: ");
    terminal.send_line("ne");
    terminal.expect("answer 3");
    assert!(all_text(&server.last_request()).contains("half a line"));
    terminal.send_line("/jobs kill j1");
    terminal.expect("job j1 does not run any more: exit code 3 after ");
    terminal.send_line("/quit");
    assert!(terminal.wait().success());
}

#[test]
fn a_job_that_the_user_ends_begins_no_turn_and_shows_no_text_for_the_model() {
    let (server, home) = serve(Script::answer_with(starts_job(WAITING)));
    let mut terminal = chat(&home);
    ask(&mut terminal, "work", "answer 1");
    let drawn = terminal.text();
    assert!(drawn.contains("goes on as j1; /jobs"), "{drawn}");
    assert!(!drawn.contains("[background job"), "{drawn}");
    pid_in(&home, "pid");
    ask(&mut terminal, "/jobs kill j1", "killed by the user after ");
    ask(&mut terminal, "/jobs", "killed by the user");
    assert_eq!(server.requests().len(), 2, "no turn for it");
    ask(&mut terminal, "and now?", "answer 2");
    assert_eq!(server.requests().len(), 3);
    assert!(all_text(&server.last_request()).contains("killed by the user after "));
    assert!(!terminal.text().contains("[Message from MyClaw"), "{}", terminal.text());
    terminal.send_line("/quit");
    assert!(terminal.wait().success());
}

#[test]
fn a_chat_that_is_left_or_told_to_end_ends_its_jobs() {
    for how in ["quit", "terminate"] {
        let (server, home) = serve(Script::answer_with(starts_job(WAITING)));
        let mut terminal = chat(&home);
        ask(&mut terminal, "work", "answer 1");
        let pid = pid_in(&home, "pid");
        match how {
            "quit" => {
                terminal.send_line("/quit");
                terminal.expect("a background job was ended with its session: j1 (");
            }
            _ => send_signal(terminal.id(), Signal::Terminate),
        }
        terminal.wait();
        wait_until_gone(pid);
        let listed = run(&home, &["run", "hello"]);
        listed.assert_code(0);
        let said = all_text(&server.last_request());
        assert!(!said.contains("is over"), "an end that the user wanted is no news: {said}");
    }
}
