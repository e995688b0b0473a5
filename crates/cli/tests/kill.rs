//! The real process, killed at random points over many runs while the model writes and tools run. Afterwards every
//! entry that was acknowledged is there, the next request is valid, and each interrupted call has its result once.
//!
//! An entry counts as acknowledged once the process has acted on it: a message that the model's server has received
//! in a request, or a call whose tool has left its trace on disk. `MYCLAW_KILLS` sets the number of kills.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use myclaw_testkit::{
    ModelServer, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome, WireFormat,
    validate_pairing,
};
use serde_json::{Value, json};

const INTERRUPTED: &str = "[Tool result missing — session was interrupted]";

/// Kills in a quick run; `MYCLAW_KILLS` asks for more.
const DEFAULT_KILLS: usize = 40;

/// Random numbers that are the same in each run of a seed: the splitmix64 generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % limit
    }
}

/// Two calls a message, for ever: one leaves a trace in the workspace, one takes a while.
fn endless_work(request: &RecordedRequest, number: usize) -> Step {
    let _ = request;
    Reply::anthropic()
        .text(format!("Step {number} of the work."))
        .tool_call(
            format!("mark_{number}"),
            "bash",
            json!({"command": format!("echo {number} >> marks")}),
        )
        .tool_call(format!("wait_{number}"), "bash", json!({"command": "sleep 0.02"}))
        .step()
        .event_by_event()
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let kills = std::env::var("MYCLAW_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(DEFAULT_KILLS);
    let seed = std::env::var("MYCLAW_KILL_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_261_121);
    let mut random = Random(seed);
    let home = TempHome::new();
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(endless_work));
    home.use_server(&server, WireFormat::AnthropicMessages);

    for kill in 0..kills {
        let message = format!("work {kill}");
        let child = RunningChild::spawn(home.command(env!("CARGO_BIN_EXE_myclaw")).args([
            "run",
            "--session",
            "killed",
            &message,
        ]));
        std::thread::sleep(Duration::from_micros(random.below(180_000)));
        child.signal(Signal::Kill);
        child.wait(Duration::from_secs(20));
        check(&home, &server, &format!("seed {seed}, kill {kill}"));
    }

    let interrupted = rows(&home).iter().filter(|row| row["content"] == INTERRUPTED).count();
    println!(
        "{kills} kills, {} requests, {interrupted} interrupted calls",
        server.requests().len()
    );
    assert!(interrupted > 0, "the kills never met a running tool: the test shows nothing");

    // One more turn, to its end: the session is in order.
    let last =
        ModelServer::spawn_blocking_thread(Script::from(Reply::anthropic().text("All is well.")));
    home.use_server(&last, WireFormat::AnthropicMessages);
    let output = RunningChild::run(home.command(env!("CARGO_BIN_EXE_myclaw")).args([
        "run",
        "--session",
        "killed",
        "well?",
    ]));
    output.assert_code(0);
    assert_eq!(output.stdout().trim(), "All is well.");
    validate_pairing(&last.last_request()).unwrap();
}

/// What must hold after each kill.
fn check(home: &TempHome, server: &ModelServer, context: &str) {
    if !home.transcript_path("killed").exists() {
        return;
    }
    let stored = Stored::of(&rows(home));
    for (call, count) in &stored.results {
        assert_eq!(*count, 1, "{context}: {call} has one result");
    }
    if let Some(request) = server.requests().last() {
        validate_pairing(request).unwrap_or_else(|violation| panic!("{context}: {violation}"));
        for message in request.messages() {
            stored.assert_holds(message, context);
        }
    }
    for number in marks(&home.workspace().join("marks")) {
        let call = format!("mark_{number}");
        assert!(stored.calls.contains(&call), "{context}: {call} ran, so it was stored before");
    }
}

/// What a transcript holds.
#[derive(Default)]
struct Stored {
    texts: HashSet<String>,
    calls: HashSet<String>,
    /// How many results each call has.
    results: HashMap<String, usize>,
}

impl Stored {
    fn of(rows: &[Value]) -> Self {
        let mut stored = Self::default();
        for row in rows {
            stored.texts.extend(row["content"].as_str().map(str::to_owned));
            for block in row["meta"]["contentBlocks"].as_array().into_iter().flatten() {
                stored.calls.extend(block["id"].as_str().map(str::to_owned));
            }
            if row["role"] == "tool" {
                *stored
                    .results
                    .entry(row["toolCallId"].as_str().unwrap().to_owned())
                    .or_default() += 1;
            }
        }
        stored
    }

    /// Each part of a message that the server has received is in the transcript.
    fn assert_holds(&self, message: &Value, context: &str) {
        for block in message["content"].as_array().into_iter().flatten() {
            let (part, is_stored) = match block["type"].as_str().unwrap() {
                "tool_result" => {
                    let call = block["tool_use_id"].as_str().unwrap();
                    (call, self.results.contains_key(call))
                }
                "tool_use" => {
                    let call = block["id"].as_str().unwrap();
                    (call, self.calls.contains(call))
                }
                "text" => {
                    let text = block["text"].as_str().unwrap();
                    (text, text.starts_with("<sent>") || self.texts.contains(text))
                }
                other => panic!("{context}: a block of type {other}"),
            };
            assert!(is_stored, "{context}: {} {part:?} was sent but is not stored", block["type"]);
        }
    }
}

/// The rows that can be read: a torn last line is no row.
fn rows(home: &TempHome) -> Vec<Value> {
    let text = std::fs::read(home.transcript_path("killed")).unwrap();
    String::from_utf8_lossy(&text)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn marks(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}
