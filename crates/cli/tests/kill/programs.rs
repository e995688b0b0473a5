//! A program that embeds MyClaw and is killed with it: whatever got its reply is in the session, once.

use std::time::Duration;

use myclaw_session::EntryId;
use myclaw_testkit::{
    ModelServer, Random, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome,
    WireFormat, validate_pairing,
};
use serde_json::{Value, json};

use crate::transcript::Transcript;
use crate::{DEADLINE, ENOUGH_KILLS, SESSION, kills, on_this_machine, run, seed};

/// Longest pause between two lines, and before the kill, on a fast machine.
const LONGEST: Duration = Duration::from_millis(60);

fn work(_request: &RecordedRequest, number: usize) -> Step {
    let reply = Reply::anthropic();
    match number % 3 {
        0 => reply.text(format!("Done with {number}.")).step().event_by_event(),
        _ => reply
            .tool_call(
                format!("call_{number}"),
                "bash",
                json!({"command": format!("echo {number}; sleep 0.01")}),
            )
            .step()
            .event_by_event(),
    }
}

/// Some line of a program. Not all of them can be obeyed at any time.
fn line(random: &mut Random, number: usize) -> Value {
    let text = format!("said {number}.");
    match random.below(6) {
        0 => json!({"type": "steer", "content": text}),
        1 => json!({"type": "follow_up", "content": text}),
        2 => json!({"type": "prompt", "message": text, "mode": "interrupt"}),
        3 => json!({"type": "abort"}),
        _ => json!({"type": "prompt", "message": text, "mode": "steer"}),
    }
}

/// The messages whose replies have arrived.
fn acknowledged(stdout: &str) -> impl Iterator<Item = EntryId> {
    stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|reply| reply["type"] == "response" && reply["success"] == true)
        .filter_map(|reply| reply["data"]["messageId"].as_str().map(EntryId::from_text))
}

#[test]
fn what_a_killed_program_was_told_is_kept_is_kept() {
    let (kills, seed) = (kills(), seed());
    let mut random = Random::new(seed);
    let home = TempHome::new();
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(work));
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    // On a slow machine most programs are killed before they take anything, and messages pile up. One that a full
    // queue drops is never taken; one that it refuses was never acknowledged.
    config["messages"]["queue"]["drop"] = json!("new");
    home.write_config(&config);
    let longest = on_this_machine(&home, LONGEST);
    let mut transcript = Transcript::new(home.transcript_path(SESSION));
    let mut kept: Vec<EntryId> = Vec::new();
    let mut sent = 0;

    for kill in 0..kills {
        let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
        let mut child = RunningChild::spawn_piped(command.args(["rpc", "--session", SESSION]));
        for _ in 0..=random.below(4) {
            child.send(&format!("{}\n", line(&mut random, sent)));
            sent += 1;
            random.pause(longest);
        }
        random.pause(longest);
        child.signal(Signal::Kill);
        kept.extend(acknowledged(&child.wait(DEADLINE).stdout()));
        transcript.read_on(&format!("seed {seed}, kill {kill}"));
    }
    run(&home, "well?").wait(DEADLINE).assert_code(0);
    let context = format!("seed {seed}, the end");
    transcript.read_on(&context);
    transcript.assert_complete(&kept, &context);
    for request in server.all_requests() {
        validate_pairing(&request).unwrap();
    }
    println!(
        "{kills} kills, {sent} lines, {} messages acknowledged, {} taken, {} interrupted calls",
        kept.len(),
        transcript.taken(),
        transcript.interrupted
    );
    if kills >= ENOUGH_KILLS {
        assert!(!kept.is_empty() && transcript.interrupted > 0, "the kills met nothing");
    }
}
