//! Two processes that run, compact and answer one session at the same time, a third that talks into it, and kills
//! at random moments. Afterwards every message that was acknowledged is in the session exactly once.

use std::time::Duration;

use myclaw_testkit::{
    ModelServer, Random, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome,
    WireFormat, validate_pairing,
};
use serde_json::json;

use crate::transcript::Transcript;
use crate::{DEADLINE, SESSION, Speaker, kills, myclaw, narrow, on_this_machine, run, seed};

/// Longest time between the starts of two processes, and between the second start and a kill, on a fast
/// machine.
const LONGEST: Duration = Duration::from_millis(60);

/// A few tools, an answer, and so on; summaries when they are asked for.
fn some_work(request: &RecordedRequest, number: usize) -> Step {
    let reply = Reply::anthropic().usage(0, 0);
    if request.json()["tools"].is_null() {
        return reply.text("A summary of the work. ".repeat(3)).step().event_by_event();
    }
    match number % 4 {
        0 => reply.text(format!("answer {number}")).step(),
        _ => {
            // Never the same twice: a run that takes much of what was said would be stopped for going in circles.
            let (short, long) =
                (format!("true {number}"), format!("sleep 0.01; seq {number} {}", number + 299));
            reply
                .tool_call(format!("a_{number}"), "bash", json!({"command": short}))
                .tool_call(format!("b_{number}"), "bash", json!({"command": long}))
                .step()
                .event_by_event()
        }
    }
}

/// One of two that want the session.
fn rival(home: &TempHome, random: &mut Random, kill: u64) -> RunningChild {
    match random.below(3) {
        0 => myclaw(home, &["sessions", "compact", SESSION]),
        _ => run(home, &format!("work {kill}")),
    }
}

#[test]
fn what_is_said_is_taken_once_whoever_runs_and_whatever_is_killed() {
    let (kills, seed) = (kills(), seed());
    let mut random = Random::new(seed ^ 7);
    let home = TempHome::new();
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(some_work));
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    narrow(&mut config, &json!({"keepMessages": 4}));
    config["messages"] = json!({"queue": {"debounceMs": 5}});
    home.write_config(&config);
    let longest = on_this_machine(&home, LONGEST);
    let mut speaker = Speaker::new(&home);
    let mut transcript = Transcript::new(home.transcript_path(SESSION));

    let mut kill = 0;
    let mut survivor: Option<RunningChild> = None;
    while kill < kills {
        let first = survivor.take().unwrap_or_else(|| run(&home, &format!("work {kill}")));
        random.pause(longest);
        let second = rival(&home, &mut random, kill);
        for _ in 0..random.below(3) {
            random.pause(longest);
            speaker.say(&mut random);
        }
        random.pause(longest);
        let mut pair = [Some(first), Some(second)];
        // One of them, whichever has the session, or both.
        let spared = random.below(3) as usize;
        for (number, child) in pair.iter_mut().enumerate() {
            if number != spared {
                let child = child.take().unwrap();
                child.signal(Signal::Kill);
                child.wait(DEADLINE);
                kill += 1;
            }
        }
        survivor = pair.into_iter().flatten().next();
        transcript.read_on(&format!("seed {seed}, kill {kill}"));
    }
    if let Some(survivor) = survivor {
        survivor.wait(DEADLINE);
    }
    let waiting = speaker.inbox.pending().unwrap().len();
    run(&home, "the last").wait(DEADLINE).assert_code(0);

    let context = format!("seed {seed}, the end");
    transcript.read_on(&context);
    transcript.assert_complete(&speaker.acknowledged, &context);
    assert_eq!(transcript.taken(), speaker.acknowledged.len(), "{context}");
    assert_eq!(speaker.inbox.pending().unwrap(), []);
    for request in server.all_requests() {
        validate_pairing(&request).unwrap();
    }
    println!(
        "{kill} kills, {} messages, {} compactions, {waiting} left to the last run",
        speaker.acknowledged.len(),
        transcript.compactions
    );
}
