//! Child processes, homes and terminals, with a shell as the program.

use std::process::Command;
use std::time::Duration;

use myclaw_testkit::{
    ModelServer, RunningChild, Signal, TempHome, Terminal, WireFormat, is_running, peak_memory,
    wait_until_gone,
};
use serde_json::json;

fn shell(home: &TempHome, script: &str) -> Command {
    let mut command = home.command("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_child_sees_its_home_and_no_keys() {
    let home = TempHome::new();
    let output = RunningChild::run(&mut shell(&home, "env; pwd; echo error >&2; exit 3"));
    output.assert_code(3);
    let home_line = format!("HOME={}", home.path().display());
    assert!(output.stdout().lines().any(|line| line == home_line), "{}", output.stdout());
    assert!(output.stdout().lines().any(|line| line == format!("MYCLAW_{home_line}")));
    assert!(
        !output.stdout().contains("_API_KEY") && !output.stdout().contains("CARGO"),
        "{}",
        output.stdout()
    );
    assert_eq!(output.stdout().lines().last(), Some(home.path().to_str().unwrap()));
    assert_eq!(output.stderr(), "error\n");
}

#[test]
fn input_is_fed_and_output_of_any_size_is_kept() {
    let home = TempHome::new();
    let input = "0123456789abcdef\n".repeat(100_000);
    let output = RunningChild::run_with_input(&mut shell(&home, "cat; cat >&2"), input.clone());
    assert!(output.stdout() == input, "{} bytes", output.stdout.len());
}

#[test]
fn a_child_can_be_talked_to_signalled_and_measured() {
    let home = TempHome::new();
    let mut child = RunningChild::spawn_piped(&mut shell(
        &home,
        "trap 'echo interrupted; exit 5' INT; while read line; do echo \"got $line\"; done; while :; do sleep 0.01; done",
    ));
    child.send("one\n");
    child.wait_for_stdout("got one\n");
    assert!(is_running(child.id()));
    assert!(peak_memory(child.id()).is_some_and(|bytes| bytes > 100_000));
    child.signal(Signal::Interrupt);
    child.close_stdin();
    let pid = child.id();
    let output = child.wait(Duration::from_secs(60));
    output.assert_code(5);
    assert_eq!(output.stdout(), "got one\ninterrupted\n");
    wait_until_gone(pid);
}

#[test]
fn a_child_that_takes_too_long_fails_the_test_and_is_killed() {
    let home = TempHome::new();
    let child = RunningChild::spawn(&mut shell(&home, "echo waiting; exec sleep 600"));
    child.wait_for_stdout("waiting");
    let pid = child.id();
    let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        child.wait(Duration::from_millis(1))
    }));
    let message = waited.unwrap_err();
    assert!(message.downcast_ref::<String>().unwrap().contains("waiting"));
    wait_until_gone(pid);
}

#[test]
fn a_home_knows_its_paths() {
    let home = TempHome::new();
    let server = ModelServer::spawn_blocking_thread(Vec::<myclaw_testkit::Step>::new());
    home.use_server(&server, WireFormat::OpenAiCompletions);
    let config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(home.config_path()).unwrap()).unwrap();
    assert_eq!(config["provider"]["baseUrl"], format!("{}/v1", server.url()));
    assert!(home.transcripts().is_empty());
    let path = home.transcript_path("main");
    assert!(path.ends_with(
        ".myclaw/sessions/agent__main__channel__cli__account__default__peer__direct__main.jsonl"
    ));
    home.write(&path, "{\"type\":\"session\"}\n{\"role\":\"user\"}\n");
    assert_eq!(home.only_transcript(), [json!({"type": "session"}), json!({"role": "user"})]);
}

#[test]
fn a_terminal_is_one_and_passes_keys_and_signals() {
    let home = TempHome::new();
    let mut terminal = Terminal::spawn_sized(
        &shell(
            &home,
            "test -t 0 && test -t 1 && stty size; printf '\\033[1mname?\\033[0m '; read name; echo \"hello $name\"; \
             trap 'echo stopped; exit 7' INT; echo ready; while :; do sleep 0.01; done",
        ),
        90,
        20,
    );
    terminal.expect("20 90\n");
    assert_eq!(terminal.expect("name? "), "name? ");
    terminal.send_line("world");
    terminal.expect("hello world\n");
    terminal.expect("ready");
    terminal.press_ctrl_c();
    terminal.expect("stopped\n");
    assert_eq!(terminal.wait().code(), Some(7));
    assert!(terminal.raw().windows(4).any(|four| four == b"\x1b[1m"));
}
