//! Background jobs of sandboxed sessions: they run in the sandbox, and otherwise as outside.

use std::fs;
use std::path::Path;

use myclaw_testkit::{
    ModelServer, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome, WireFormat,
    is_running, send_signal, wait_until_gone,
};
use serde_json::{Value, json};

use crate::jobs::{all_text, pid_in, starts_job};
use crate::rpc::{Client, prompt};
use crate::sandbox::{SECRET, results_of};
use crate::{myclaw, run};

/// The session, which is sandboxed because it is not the main one.
const SESSION: &str = "trip";
/// Goes on until there is a file `go`.
const WAITING: &str = "until test -e go; do sleep 0.01; done; echo finished; exit 3";
/// Goes on forever, with processes that escape by a session of their own and by losing their parent.
const ESCAPING: &str = "(setsid bash -c '(echo $BASHPID > daemon; exec sleep 600) & exit' \
                        </dev/null >/dev/null 2>&1 &)
                        setsid bash -c 'echo $$ > escaped; sleep 600; true' &
                        echo $PPID > helper; echo $$ > root; wait";
const ESCAPED: [&str; 3] = ["daemon", "escaped", "root"];

fn home_with(server: &ModelServer, change: impl FnOnce(&mut Value)) -> TempHome {
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    change(&mut config);
    home.write_config(&config);
    home
}

/// Makes the calls one after another in one turn; gives what they returned.
fn turn(
    change: impl FnOnce(&mut Value),
    prepare: impl FnOnce(&TempHome),
    calls: &[(&str, Value)],
) -> (TempHome, Vec<String>) {
    let steps = calls.iter().enumerate().map(|(number, (tool, arguments))| {
        Reply::anthropic().tool_call(format!("call_{number}"), *tool, arguments.clone()).step()
    });
    let steps = steps.collect::<Vec<Step>>();
    let script = move |_: &RecordedRequest, number: usize| {
        // The message about the end of a job is answered, too.
        steps.get(number).cloned().unwrap_or_else(|| Reply::anthropic().text("Done.").step())
    };
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(script));
    let home = home_with(&server, change);
    prepare(&home);
    let mut command = myclaw(&home, &["run", "--session", SESSION, "go on"]);
    RunningChild::run(command.env("MY_API_KEY", SECRET)).assert_code(0);
    let results = results_of(&home, SESSION);
    assert_eq!(results.len(), calls.len());
    (home, results)
}

fn start(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command, "background": true}))
}

fn process(action: &str, mut more: Value) -> (&'static str, Value) {
    more["action"] = json!(action);
    ("process", more)
}

fn client(home: &TempHome) -> Client {
    Client { child: RunningChild::spawn_piped(&mut myclaw(home, &["rpc", "-s", SESSION])) }
}

/// How often the agent has read that the job is over.
fn reports_in(request: &RecordedRequest, job: &str) -> usize {
    all_text(request).matches(&format!("background job {job} is over")).count()
}

#[test]
fn every_action_works_in_the_sandbox() {
    let id = |more: Value| {
        let mut arguments = json!({"id": "j1"});
        arguments
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        arguments
    };
    let reader = "while read line; do echo \"got $line\"; done; echo end";
    let calls = [
        start(reader),
        process("submit", id(json!({"data": "hello", "waitMs": 60_000}))),
        process("list", json!({})),
        process("write", id(json!({"data": "a\nb\n", "eof": true, "waitMs": 0}))),
        ("bash", json!({"command": "until test -e never; do sleep 0.01; done", "yieldMs": 1})),
        process("kill", json!({"id": "j2"})),
        process("log", json!({"id": "j9"})),
        process("send-keys", json!({"id": "j1", "keys": ["enter"]})),
        process("clear", json!({})),
        process("list", json!({})),
    ];
    let (home, results) = turn(|_| {}, |_| {}, &calls);
    assert!(results[0].contains("[background job j1: running for "), "{results:?}");
    assert!(results[1].starts_with("got hello\n[job j1: running"), "{results:?}");
    assert!(results[2].starts_with("j1: running for ") && results[2].contains(reader));
    assert!(results[4].contains("[background job j2: running for "), "{results:?}");
    assert!(results[5].contains("[job j2: killed after "), "{results:?}");
    assert!(
        results[6].contains("there is no job \"j9\" in this session; there are: j1 ("),
        "{results:?}"
    );
    let refused = ["has no terminal", "does not run any more"];
    assert!(refused.iter().any(|words| results[7].contains(words)), "{results:?}");
    assert!(results[8].starts_with("removed "), "{results:?}");
    let records = home.transcript_path(SESSION).with_extension("jobs");
    assert!(records.is_dir(), "the records are beside the files that commands can write");
}

#[test]
fn lines_of_a_long_output_are_found_by_their_numbers() {
    let calls = [
        start("seq 200000"),
        process("poll", json!({"id": "j1", "waitMs": 60_000})),
        (
            "bash",
            json!({"command": "until tail -n 1 $TMPDIR/../bash-*-call_0.log | grep -qx 200000; do sleep 0.01; done"}),
        ),
        process("log", json!({"id": "j1", "offset": 5, "limit": 2})),
        process("log", json!({"id": "j1", "offset": 199_999})),
    ];
    let (_home, results) = turn(|_| {}, |_| {}, &calls);
    assert!(results[3].starts_with("5\n6\n[job j1: "), "{}", results[3]);
    assert!(results[4].starts_with("199999\n200000\n[job j1: "), "{}", results[4]);
}

#[test]
fn a_job_is_held_and_sees_the_variables_of_other_commands() {
    let attempts = format!(
        "cat ~/outside/secret && echo REACHED; echo x > ~/outside/new && echo REACHED; \
         kill -0 {} && echo REACHED; exec 9<>/dev/tcp/127.0.0.1/9 && echo REACHED; \
         cat ~/.myclaw/myclaw.json && echo REACHED; echo x > /dev/pts/0 && echo REACHED; \
         for fd in 3 4 5 6 7 8; do {{ echo x >&$fd; }} 2>/dev/null && echo \"REACHED $fd\"; done; \
         env | grep -v '^MYCLAW_PROCESS_TREE=\\|^TERM=' | sort > NAME; echo over",
        std::process::id()
    );
    let in_file = |name: &str| attempts.replace("NAME", name);
    let calls = [
        ("bash", json!({"command": in_file("foreground")})),
        start(&in_file("job")),
        ("bash", json!({"command": in_file("terminal"), "background": true, "pty": true})),
        ("bash", json!({"command": "until test -s job -a -s terminal; do sleep 0.01; done"})),
        process("poll", json!({"id": "j1", "waitMs": 60_000})),
        process("log", json!({"id": "j1"})),
        process("log", json!({"id": "j2"})),
    ];
    let prepare = |home: &TempHome| drop(home.write("outside/secret", SECRET));
    let (home, results) = turn(|_| {}, prepare, &calls);
    for result in &results {
        assert!(!result.contains("REACHED") && !result.contains(SECRET), "{result}");
    }
    let variables = |name: &str| fs::read_to_string(home.workspace().join(name)).expect(name);
    let expected = variables("foreground");
    assert!(expected.contains("TMPDIR=") && !expected.contains(SECRET), "{expected}");
    assert_eq!(variables("job"), expected);
    assert_eq!(variables("terminal"), expected);
    assert_eq!(fs::read_dir(home.path().join("outside")).expect("the directory").count(), 1);
}

#[test]
fn a_job_with_a_terminal_is_talked_to_by_its_keys() {
    let id = |more: &str| json!({"id": "j1", "data": more, "waitMs": 500});
    let calls = [
        ("bash", json!({"command": "exec bash --norc -i", "background": true, "pty": true})),
        process("submit", id("tty; echo $((40 + 2)) > sum")),
        ("bash", json!({"command": "until test -s sum; do sleep 0.01; done; cat sum"})),
        process("submit", id("echo $$ > shell; sleep 600; echo sle''pt > slept")),
        ("bash", json!({"command": "until test -s shell; do sleep 0.01; done"})),
        process("send-keys", json!({"id": "j1", "keys": ["ctrl-c"], "waitMs": 500})),
        process("paste", id("echo alive > alive")),
        process("send-keys", json!({"id": "j1", "keys": ["enter"], "waitMs": 500})),
        ("bash", json!({"command": "until test -s alive; do sleep 0.01; done; cat alive; ls"})),
        process("kill", json!({"id": "j1"})),
    ];
    let (home, results) = turn(|_| {}, |_| {}, &calls);
    assert_eq!(results[2], "42", "{results:?}");
    assert!(results[8].starts_with("alive\n") && !results[8].contains("slept"), "{results:?}");
    assert!(results[9].contains("[job j1: killed after "), "{results:?}");
    wait_until_gone(pid_in(&home, "shell"));
}

#[test]
fn ending_a_job_ends_its_whole_tree_and_no_other_job() {
    let wait = "until test -s daemon -a -s escaped -a -s root -a -s other; do sleep 0.01; done";
    // The ids of processes that were killed are free a moment later.
    let check = "for name in daemon escaped root; do \
                 while kill -0 $(cat $name) 2>/dev/null; do sleep 0.01; done; done; \
                 kill -0 $(cat other) && echo other runs";
    let calls = [
        start(ESCAPING),
        start("echo $$ > other; exec sleep 600"),
        ("bash", json!({"command": wait})),
        process("kill", json!({"id": "j1"})),
        ("bash", json!({"command": check})),
        process("list", json!({})),
    ];
    let (home, results) = turn(|_| {}, |_| {}, &calls);
    assert_eq!(results[4], "other runs", "{results:?}");
    assert!(results[5].contains("j2: running for "), "{results:?}");
    // The run has ended, and the other job with it.
    for name in ["daemon", "escaped", "root", "other", "helper"] {
        wait_until_gone(pid_in(&home, name));
    }
}

#[test]
fn a_timeout_and_an_abort_leave_no_process_and_other_jobs_go_on() {
    let steps = |_: &RecordedRequest, number: usize| {
        let reply = Reply::anthropic();
        match number {
            0 => reply.tool_call("a", "bash", start("echo $$ > job; exec sleep 600").1),
            1 => reply.tool_call("b", "bash", json!({"command": ESCAPING, "timeout": 2})),
            2 => reply.tool_call(
                "c",
                "bash",
                json!({"command": ESCAPING.replace(" > ", " > second.")}),
            ),
            number => reply.text(format!("answer {number}")),
        }
        .step()
    };
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(steps));
    let home = home_with(&server, |_| {});
    let mut client = client(&home);
    client.ask(prompt("work"), 1);
    let job = pid_in(&home, "job");
    let timed_out = ESCAPED.map(|name| pid_in(&home, name));
    let aborted = ESCAPED.map(|name| pid_in(&home, &format!("second.{name}")));
    for pid in timed_out {
        wait_until_gone(pid);
    }
    assert!(aborted.iter().all(|pid| is_running(*pid)));
    client.ask(json!({"type": "abort"}), 2);
    client.wait_for("\"outcome\":\"aborted\"");
    for pid in aborted {
        wait_until_gone(pid);
    }
    assert!(is_running(job), "the job of another call goes on");
    let listed = client.ask(json!({"type": "list_jobs"}), 3);
    assert_eq!(listed["data"]["jobs"][0]["running"], true, "{listed}");
    client.finish().0.assert_code(0);
    wait_until_gone(job);
}

#[test]
fn the_end_of_a_job_reaches_the_agent_once() {
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(starts_job(WAITING)));
    let home = home_with(&server, |_| {});
    let mut client = client(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"idle\":true");
    home.write_in_workspace("go", "");
    client.wait_for("answer 2");
    let said = all_text(&server.last_request());
    assert!(said.contains("background job j1 is over: exit code 3 after "), "{said}");
    assert!(said.contains("\\n| finished"), "{said}");
    client.finish().0.assert_code(0);
    run(&home, &["run", "-s", SESSION, "and now?"]).assert_code(0);
    assert_eq!(reports_in(&server.last_request(), "j1"), 1);
}

#[test]
fn jobs_end_with_a_killed_program_and_the_next_start_reports_them() {
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(starts_job(ESCAPING)));
    let home = home_with(&server, |_| {});
    let mut client = client(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"idle\":true");
    let pids = ESCAPED.map(|name| pid_in(&home, name));
    client.child.signal(Signal::Kill);
    drop(client);
    for pid in pids {
        wait_until_gone(pid);
    }
    for _ in 0..2 {
        run(&home, &["run", "-s", SESSION, "what about the job?"]).assert_code(0);
        let said = all_text(&server.last_request());
        assert!(said.contains("j1 is over: dead, exit unknown: MyClaw ended"), "{said}");
        assert_eq!(reports_in(&server.last_request(), "j1"), 1);
    }
}

#[test]
fn jobs_end_with_a_killed_helper_and_the_next_command_has_another() {
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(starts_job(ESCAPING)));
    let home = home_with(&server, |_| {});
    let mut client = client(&home);
    client.ask(prompt("work"), 1);
    client.wait_for("\"idle\":true");
    let pids = ESCAPED.map(|name| pid_in(&home, name));
    send_signal(pid_in(&home, "helper"), Signal::Kill);
    client.wait_for("answer 2");
    for pid in pids {
        wait_until_gone(pid);
    }
    let said = all_text(&server.last_request());
    let reason = "j1 is over: failed: the sandboxed helper process ended (killed by signal 9";
    assert!(said.contains(reason), "{said}");
    assert_eq!(reports_in(&server.last_request(), "j1"), 1);
    let listed = client.ask(json!({"type": "list_jobs"}), 2);
    assert_eq!(listed["data"]["jobs"][0]["running"], false, "{listed}");
    client.finish().0.assert_code(0);
    let again = Reply::anthropic().tool_call("b", "bash", json!({"command": "echo here again"}));
    let script = Script::from([again, Reply::anthropic().text("Done.")]);
    let other = ModelServer::spawn_blocking_thread(script);
    home.use_server(&other, WireFormat::AnthropicMessages);
    run(&home, &["run", "-s", SESSION, "go on"]).assert_code(0);
    assert!(all_text(&other.last_request()).contains("here again"));
}

#[test]
fn a_link_in_place_of_the_output_is_not_followed() {
    let forge = "seq 200000; ln -sf ~/outside/secret $TMPDIR/../bash-*-call_0.log; \
                 mkdir -p $TMPDIR/../jobs; echo done > linked";
    let calls = [
        start(forge),
        ("bash", json!({"command": "until test -s linked; do sleep 0.01; done"})),
        process("poll", json!({"id": "j1", "waitMs": 60_000})),
        process("log", json!({"id": "j1", "offset": 1})),
        process("remove", json!({"id": "j1"})),
    ];
    let prepare = |home: &TempHome| drop(home.write("outside/secret", SECRET));
    let (home, results) = turn(|_| {}, prepare, &calls);
    assert!(results[3].starts_with("[job j1: ") && !results[3].contains(SECRET), "{results:?}");
    let secret = fs::read_to_string(home.path().join("outside/secret")).unwrap_or_default();
    assert_eq!(secret, SECRET);
}

#[test]
fn input_for_a_job_passes_the_rules_for_commands() {
    let cat = |ask: &'static str| {
        move |config: &mut Value| {
            config["tools"]["exec"] =
                json!({"security": "allowlist", "allowlist": ["cat"], "ask": ask});
        }
    };
    let calls = [
        start("cat"),
        process("submit", json!({"id": "j1", "data": "rm -rf ."})),
        process("poll", json!({"id": "j1"})),
    ];
    for (ask, words) in [
        ("off", "nothing may be written to a job: input for a running program"),
        ("on-miss", "the job runs `cat`"),
    ] {
        let (_home, results) = turn(cat(ask), |_| {}, &calls);
        assert!(results[0].contains("[background job j1: running"), "{results:?}");
        assert!(results[1].contains(words), "{ask}: {results:?}");
        assert!(results[2].starts_with("(no new output)"), "{results:?}");
    }
}

#[test]
fn jobs_work_at_the_level_bubblewrap() {
    if !Path::new("/usr/bin/bwrap").exists() {
        myclaw_testkit::skip_without("bwrap is not installed (apt install bubblewrap)");
        return;
    }
    let change = |config: &mut Value| {
        config["agents"]["defaults"]["sandbox"] = json!({"confinement": {"level": "bubblewrap"}});
    };
    let calls = [
        ("bash", json!({"command": "exec bash --norc", "background": true, "pty": true})),
        process("submit", json!({"id": "j1", "data": "setsid sleep 600 & echo $((40 + 2)) > sum"})),
        (
            "bash",
            json!({"command": "until test -s sum && pgrep -fx 'sleep 600' >seen; do sleep 0.01; done; cat sum; pgrep sleep | wc -l"}),
        ),
        process("kill", json!({"id": "j1"})),
        ("bash", json!({"command": "pgrep sleep; echo none"})),
    ];
    let (_home, results) = turn(change, |_| {}, &calls);
    assert_eq!(results[2], "42\n1", "{results:?}");
    assert!(results[3].contains("killed after"), "{results:?}");
    assert_eq!(results[4], "none");
}
