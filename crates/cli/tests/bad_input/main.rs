//! Bad input, through the real program with its real tools: each ends in one clear message and its exit code, with a
//! session that the next run continues, and nothing lost.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test that uses it"
)]

use std::path::Path;
use std::process::Command;

use myclaw_testkit::{
    ChildOutput, ModelServer, RecordedRequest, Reply, RunningChild, Script, TempHome, WireFormat,
    validate_pairing,
};
use serde_json::{Value, json};

mod answers;
mod command_line;
mod config_file;
mod disks;
mod refusals;
mod stored;
mod streams;
mod tools;

/// The key in every config file of these tests. It must never be seen again.
const KEY: &str = "test-key";

/// What only a person who reads the source can use: none of it belongs into a message.
const INTERNALS: [&str; 14] = [
    "Error {",
    "Error(",
    "Err(",
    "Some(",
    "None)",
    "Ok(",
    "Os {",
    "Custom {",
    "kind:",
    "panicked",
    "backtrace",
    "defect",
    "reqwest",
    "serde",
];

/// The program in `home`, with nothing of this machine: no key, no config, no model server.
fn myclaw(home: &TempHome, arguments: &[&str]) -> Command {
    let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.args(arguments);
    command
}

/// Runs it to its end.
fn run(home: &TempHome, arguments: &[&str]) -> ChildOutput {
    RunningChild::run(&mut myclaw(home, arguments))
}

/// A server on a thread of its own.
fn serve(script: impl Into<Script>) -> ModelServer {
    ModelServer::spawn_blocking_thread(script)
}

/// A server that answers once, with these words.
fn serve_text(format: WireFormat, text: &str) -> ModelServer {
    serve(Reply::new(format).text(text))
}

/// A config for the server at `url` that try each call once only, so that no test waits between two.
fn config(url: &str, format: WireFormat) -> Value {
    let mut config = TempHome::config_for(url, format);
    config["agent"] = json!({"maxRetries": 0});
    config
}

/// A home with this config.
fn home_for(server: &ModelServer, format: WireFormat) -> TempHome {
    let home = TempHome::new();
    home.write_config(&config(server.url(), format));
    home
}

/// Checks that the program failed with `code` and said so in one message that holds all `words`. Returns the message.
fn assert_fails(output: &ChildOutput, code: i32, words: &[&str]) -> String {
    output.assert_code(code);
    let stderr = output.stderr();
    let starts: Vec<usize> = stderr.match_indices("myclaw: ").map(|(at, _)| at).collect();
    let [start] = starts.as_slice() else {
        panic!("expected one message, found {}:\n{stderr}", starts.len());
    };
    assert!(*start == 0 || stderr.as_bytes()[start - 1] == b'\n', "within a line:\n{stderr}");
    let message = stderr[*start..].trim_end().to_owned();
    for word in words {
        assert!(message.contains(word), "`{word}` is missing:\n{stderr}");
    }
    assert_fit_for_people(output);
    message
}

/// Checks that nothing which was printed holds the key, inner parts of the program or terminal codes.
fn assert_fit_for_people(output: &ChildOutput) {
    for printed in [output.stdout(), output.stderr()] {
        assert!(!printed.contains(KEY), "the key was printed:\n{printed}");
        assert!(!printed.contains('\u{1b}'), "terminal codes were printed:\n{printed}");
    }
    let stderr = output.stderr();
    for internal in INTERNALS {
        assert!(!stderr.contains(internal), "`{internal}` was printed:\n{stderr}");
    }
}

/// Checks that a next run continues the session `session` with a good server. Returns its request, which keeps the
/// provider's rules.
fn assert_goes_on(home: &TempHome, format: WireFormat, session: &str) -> Value {
    let server = serve_text(format, "Going on.");
    home.write_config(&config(server.url(), format));
    let output = run(home, &["run", "--session", session, "and now?"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "Going on.\n");
    assert_fit_for_people(&output);
    server.assert_finished();
    valid(&server.last_request())
}

/// The body of a request that keeps the provider's rules.
fn valid(request: &RecordedRequest) -> Value {
    validate_pairing(request).unwrap_or_else(|violation| panic!("{violation}"));
    request.json().clone()
}

/// The rows of a transcript without its header: role and text.
fn rows(home: &TempHome, session: &str) -> Vec<(String, String)> {
    rows_of(&home.transcript_path(session))
}

fn rows_of(path: &Path) -> Vec<(String, String)> {
    TempHome::read_lines(path)
        .iter()
        .skip(1)
        .map(|row| {
            let field = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            (field("role"), field("content"))
        })
        .collect()
}

/// What rows are expected to be.
fn said(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
}

/// How often `text` occurs in the messages of a request.
fn count(body: &Value, text: &str) -> usize {
    let messages = ["messages", "input", "contents"].map(|name| body[name].to_string());
    messages.concat().matches(text).count()
}
