//! Turns against a mock model server that was not written for this project: `@copilotkit/aimock` from npm.
//!
//! `MYCLAW_AIMOCK` names the directory of the installed package; `scripts/test` installs it and sets the variable. Without
//! these tests say that they were skipped.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use myclaw_testkit::{RunningChild, TempHome, WireFormat};
use serde_json::{Value, json};

const FORMATS: [WireFormat; 2] = [WireFormat::AnthropicMessages, WireFormat::OpenAiCompletions];

/// The mock server as a process of its own.
struct Aimock {
    process: Child,
    url: String,
}

impl Aimock {
    /// Starts it with `fixtures`; `None` (and a word about it) if it is not installed.
    fn start(home: &TempHome, fixtures: &Value, arguments: &[&str]) -> Option<Self> {
        let Some(package) = std::env::var_os("MYCLAW_AIMOCK").map(PathBuf::from) else {
            myclaw_testkit::skip_without("MYCLAW_AIMOCK is not set; scripts/test sets it");
            return None;
        };
        let fixtures = home.write("aimock/fixtures.json", fixtures.to_string());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new("node")
            .arg(package.join("dist/cli.js"))
            .args(["--strict", "--port", &port.to_string(), "--fixtures"])
            .arg(fixtures)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, url: format!("http://127.0.0.1:{port}") };
        let deadline = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "aimock did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _already_gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

fn run(
    home: &TempHome,
    url: &str,
    format: WireFormat,
    message: &str,
) -> myclaw_testkit::ChildOutput {
    home.write_config(&TempHome::config_for(url, format));
    RunningChild::run(home.command(env!("CARGO_BIN_EXE_myclaw")).args([
        "run",
        "--session",
        "mock",
        message,
    ]))
}

#[test]
fn a_plain_answer_is_streamed() {
    let home = TempHome::new();
    let fixtures = json!({"fixtures": [{"match": {"userMessage": "hello"}, "response": {"content": "Hello from elsewhere, ünïcode too."}}]});
    let Some(server) = Aimock::start(&home, &fixtures, &["--chunk-size", "3"]) else { return };
    for format in FORMATS {
        let output = run(&home, &server.url, format, "hello");
        output.assert_code(0);
        assert_eq!(output.stdout(), "Hello from elsewhere, ünïcode too.\n", "{format:?}");
    }
}

#[test]
fn a_tool_call_runs_and_its_result_is_understood() {
    let home = TempHome::new();
    let fixtures = json!({"fixtures": [
        {"match": {"toolCallId": "call_read"}, "response": {"content": "It is heron."}},
        {"match": {"userMessage": "code word"}, "response": {"toolCalls": [
            {"id": "call_read", "name": "read", "arguments": {"path": "notes.md"}},
        ]}},
    ]});
    let Some(server) = Aimock::start(&home, &fixtures, &[]) else { return };
    for format in FORMATS {
        let home_of_format = TempHome::new();
        home_of_format.write_in_workspace("notes.md", "the code word is heron\n");
        let output = run(&home_of_format, &server.url, format, "what is the code word?");
        output.assert_code(0);
        assert_eq!(output.stdout().trim(), "It is heron.", "{format:?}");
        let rows = home_of_format.only_transcript();
        let result = rows.iter().find(|row| row["role"] == "tool").unwrap();
        assert!(result["content"].as_str().unwrap().contains("the code word is heron"), "{result}");
    }
}

#[test]
fn its_error_shapes_are_classified() {
    for (status, kind, class) in
        [(401, "authentication_error", "auth"), (400, "invalid_request_error", "unknown")]
    {
        let home = TempHome::new();
        let fixtures = json!({"fixtures": [{
            "match": {"userMessage": "hello"},
            "response": {"error": {"message": "the mock says no", "type": kind}, "status": status},
        }]});
        let Some(server) = Aimock::start(&home, &fixtures, &[]) else { return };
        for format in FORMATS {
            home.write_config(&TempHome::config_for(&server.url, format));
            let output = RunningChild::run(home.command(env!("CARGO_BIN_EXE_myclaw")).args([
                "run",
                "--json",
                "--session",
                "mock",
                "hello",
            ]));
            assert_ne!(output.code(), Some(0));
            let last: Value =
                serde_json::from_str(output.stdout().lines().last().unwrap()).unwrap();
            assert_eq!(
                (&last["type"], &last["class"]),
                (&json!("error"), &json!(class)),
                "{format:?}: {last}"
            );
            assert!(last["message"].as_str().unwrap().contains("the mock says no"), "{last}");
        }
    }
}

#[test]
fn a_connection_that_it_destroys_is_reported_and_loses_nothing() {
    let home = TempHome::new();
    let fixtures = json!({"fixtures": [{"match": {"userMessage": "hello"}, "response": {"content": "never"}}]});
    let Some(server) = Aimock::start(&home, &fixtures, &["--chaos-disconnect", "1"]) else {
        return;
    };
    for format in FORMATS {
        let output = run(&home, &server.url, format, "hello");
        assert_ne!(output.code(), Some(0));
        assert_eq!(
            output.stderr().lines().filter(|line| line.starts_with("myclaw:")).count(),
            1,
            "{}",
            output.stderr()
        );
    }
    assert!(home.only_transcript().iter().any(|row| row["content"] == "hello"));
}
