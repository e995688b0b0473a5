//! What MCP servers do wrong: it fails the call in which they do it, and leaves nothing behind.

use std::path::Path;
use std::time::{Duration, Instant};

use myclaw_testkit::{
    ModelServer, Random, Reply, RunningChild, Script, Signal, TempHome, WireFormat, mcp_server,
    number_from,
};
use serde_json::json;

use crate::mcp::{approve, calls, home_of, results};
use crate::{myclaw, run};

#[test]
fn each_fault_fails_its_own_call_only() {
    let echo = ("faults__echo", json!({"text": "alive"}));
    let server = calls(&[
        ("faults__stray", json!({})),
        ("faults__half", json!({})),
        ("faults__huge", json!({"n": 20})),
        echo.clone(),
        ("faults__refuse", json!({})),
        ("faults__fail", json!({})),
        ("faults__silent", json!({})),
        echo.clone(),
        ("faults__die", json!({})),
        echo.clone(),
        ("faults__picture", json!({})),
        ("faults__data", json!({})),
        ("faults__slow", json!({"n": 80})),
        ("faults__flood", json!({})),
        echo.clone(),
        echo.clone(),
        echo.clone(),
        echo,
    ]);
    let (home, _) = home_of(&server, "sessions", |config| {
        config["mcp"]["servers"]["faults"]["timeoutSeconds"] = json!(6);
        config["agents"]["defaults"]["limits"]["repeatedCalls"] = json!(0);
    });
    approve(&home);
    run(&home, &["run", "go on"]).assert_code(0);
    let results = results(&server);
    for (index, words) in [
        (0, "still here"),
        (1, "no JSON that ends"),
        (2, "too large: it has 20 MB"),
        (3, "echo: alive"),
        (4, "not like this"),
        (5, "it did not work"),
        (6, "has not answered `tools/call` in 6 s"),
        (7, "echo: alive"),
        (8, "exit code 3"),
        (9, "echo: alive"),
        (10, "image"),
        (11, "42"),
        // Eight seconds with signs of progress.
        (12, "done"),
        // The line without an end is given up on a slow machine too; then the server starts again.
        (17, "echo: alive"),
    ] {
        assert!(results[index].contains(words), "{index} {words}: {}", results[index]);
    }
    assert!(results[8].contains("fatal: the database is gone"), "{}", results[8]);
    assert!(results[10].contains("audio of 4 bytes"), "{}", results[10]);
    let logs = run(&home, &["mcp", "logs", "faults"]);
    assert!(logs.stdout().contains("fatal: the database is gone"), "{}", logs.stdout());
}

#[test]
fn a_server_that_does_not_start_is_reported_with_its_last_lines() {
    for (mode, words) in [
        ("broken", "cannot find the module x"),
        ("old", "1999-01-01"),
        ("quitting", "no room left"),
    ] {
        let server = calls(&[]);
        let (home, _) = home_of(&server, mode, |_| {});
        let tested = run(&home, &["mcp", "test"]);
        tested.assert_code(1);
        assert!(tested.stdout().contains(words), "{mode}: {}", tested.stdout());
        assert!(tested.stdout().contains("did not start"), "{mode}: {}", tested.stdout());
    }
}

#[test]
fn a_server_that_failed_to_start_is_not_started_again_at_once() {
    let echo = ("faults__echo", json!({"text": "hello"}));
    let server = calls(&[echo.clone(), echo]);
    let (home, _) = home_of(&server, "sessions", |_| {});
    approve(&home);
    home.write("server/server.py", "import sys\nsys.exit('it is broken now')\n");
    run(&home, &["run", "go on"]).assert_code(0);
    let results = results(&server);
    assert!(results[0].contains("it is broken now"), "{}", results[0]);
    assert!(!results[0].contains("it is tried again in"), "{}", results[0]);
    assert!(results[1].contains("it is tried again in"), "{}", results[1]);
}

#[test]
fn a_long_result_is_cut_and_kept_in_a_file() {
    let server = calls(&[("faults__huge", json!({"n": 1}))]);
    let (home, _) = home_of(&server, "sessions", |_| {});
    approve(&home);
    run(&home, &["run", "go on"]).assert_code(0);
    let result = &results(&server)[0];
    assert!(result.len() < 100_000, "{}", result.len());
    let (_, rest) = result.split_once("full output: ").expect("the name of a file");
    let path: String = rest.chars().take_while(|char| !matches!(char, ']' | '"' | '\\')).collect();
    assert_eq!(std::fs::metadata(Path::new(&path)).expect("the file").len(), 1 << 20);
}

/// The processes whose command line contains `words`.
fn processes_with(words: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(words)).collect()
}

fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The number behind `words` in a text.
fn number_behind(text: &str, words: &str) -> u32 {
    let (_, rest) = text.split_once(words).expect("the words");
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn nothing_of_a_server_is_left_after_a_run_or_after_the_kill_of_the_program() {
    // After a run, with a process in a session of its own.
    let server = calls(&[("faults__child", json!({}))]);
    let (home, _) = home_of(&server, "sessions", |_| {});
    approve(&home);
    run(&home, &["run", "go on"]).assert_code(0);
    let child = number_behind(&results(&server)[0], "child ");
    wait_until("the child is left", || is_gone(child));
    let script = home.path().join("server/server.py").display().to_string();
    wait_until("the server is left", || processes_with(&script).is_empty());
    // After the kill of the program, in the middle of a call.
    killed_in_a_call();
}

fn killed_in_a_call() {
    let asleep = json!({"text": "does not read"});
    let server = calls(&[("faults__child", json!({})), ("faults__silent", asleep)]);
    let (home, _): (TempHome, _) = home_of(&server, "sessions", |_| {});
    approve(&home);
    let program = RunningChild::spawn(&mut myclaw(&home, &["run", "go on"]));
    server.wait_for_requests_blocking(2);
    let child = number_behind(&results(&server)[0], "child ");
    assert!(!is_gone(child));
    // It does not end by itself at the end of its input.
    let is_asleep = || run(&home, &["mcp", "logs", "faults"]).stdout().contains("asleep");
    wait_until("the server is not asleep", is_asleep);
    let script = home.path().join("server/server.py").display().to_string();
    assert!(!processes_with(&script).is_empty());
    program.signal(Signal::Kill);
    wait_until("the child is left", || is_gone(child));
    wait_until("the server is left", || processes_with(&script).is_empty());
}

/// The programs of the server in two turns of a program, in these sessions. Before the second one, `between` sees the first.
fn pids(idle_seconds: u64, sessions: [&str; 2], between: impl FnOnce(u32)) -> [u32; 2] {
    let call = |id: &str| Reply::anthropic().tool_call(id, "faults__pid", json!({}));
    let done = || Reply::anthropic().text("Done.");
    let script = Script::from([call("call_1"), done(), call("call_2"), done()]);
    let server = ModelServer::spawn_blocking_thread(script);
    let (home, _) = home_of(&server, "sessions", |config| {
        config["mcp"]["servers"]["faults"]["idleSeconds"] = json!(idle_seconds);
        config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    });
    approve(&home);
    let mut child = RunningChild::spawn_piped(&mut myclaw(&home, &["rpc"]));
    let mut turn = |session: &str, requests: usize| {
        let line = json!({"type": "prompt", "session": session, "message": "go"});
        child.send(&format!("{line}\n"));
        server.wait_for_requests_blocking(requests);
        let read = results(&server);
        number_behind(read.last().expect("a result"), "pid ")
    };
    let first = turn(sessions[0], 2);
    between(first);
    [first, turn(sessions[1], 4)]
}

#[test]
fn a_server_that_is_idle_ends_and_starts_again_with_the_next_call() {
    let [first, second] =
        pids(1, ["main", "main"], |pid| wait_until("the idle server is left", || is_gone(pid)));
    assert_ne!(first, second);
}

#[test]
fn the_sessions_of_a_program_share_one_server() {
    let [first, second] = pids(300, ["one", "two"], |pid| assert!(!is_gone(pid)));
    assert_eq!(first, second);
}

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 10;
/// Longest life of a run: a server has started, left a process behind and is silent by then.
const LONGEST_LIFE: Duration = Duration::from_millis(900);

#[test]
fn nothing_of_a_server_is_left_after_kills_at_random_moments() {
    let kills = number_from("MYCLAW_MCP_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_129);
    let mut random = Random::new(seed);
    let home = TempHome::new();
    let (entry, _) = mcp_server(&home, "sessions");
    let script = home.path().join("server/server.py").display().to_string();
    let mut begun = 0;
    for kill in 0..kills {
        let model = calls(&[("faults__child", json!({})), ("faults__silent", json!({}))]);
        let mut config = TempHome::config_for(model.url(), WireFormat::AnthropicMessages);
        config["mcp"]["servers"]["faults"] = entry.clone();
        // The processes of a server without a sandbox end too.
        config["mcp"]["servers"]["faults"]["sandbox"]["enabled"] = json!(kill % 2 == 0);
        home.write_config(&config);
        if kill == 0 {
            approve(&home);
        }
        let program = RunningChild::spawn(&mut myclaw(&home, &["run", "go on"]));
        random.pause(LONGEST_LIFE);
        begun += u64::from(!processes_with(&script).is_empty());
        program.signal(Signal::Kill);
        drop(program);
        wait_until(&format!("seed {seed}, kill {kill}: a process is left"), || {
            processes_with(&script).is_empty()
        });
        eprint!("\rseed {seed}, kill {}, {begun} with a server", kill + 1);
    }
    assert!(begun > 0, "no run came as far as its server");
}
