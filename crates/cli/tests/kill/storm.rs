//! Tools, steering, compactions, reductions and refused requests, all in flight, and a kill at a random moment.
//!
//! An entry counts as acknowledged once the process has acted on it: a message that the model's server has received
//! in a request, or a call whose tool has left its trace on disk; and what was said into the inbox, once it is there.

use std::path::Path;
use std::time::Duration;

use myclaw_testkit::{
    AnswerEnd, ModelServer, Random, RecordedRequest, Reply, Script, Signal, Step, TempHome,
    WireFormat, validate_pairing,
};
use serde_json::json;

use crate::transcript::Transcript;
use crate::{DEADLINE, ENOUGH_KILLS, SESSION, Speaker, kills, narrow, on_this_machine, run, seed};

/// Longest time between the start of a run and its kill: some steps, and often a summary, on a
/// fast machine.
const LONGEST: Duration = Duration::from_millis(180);

/// A request for a summary offers no tools.
fn asks_for_summary(request: &RecordedRequest) -> bool {
    request.json()["tools"].is_null()
}

/// Mostly two calls: one leaves a trace in the workspace, one gives a long result. Now and then an answer, and a
/// request that is refused as too long.
fn work(request: &RecordedRequest, number: usize) -> Step {
    let reply = Reply::anthropic();
    if asks_for_summary(request) {
        let text = format!("Summary {number} of the work. ");
        let step = reply.text(text.repeat(4)).in_deltas(10).usage(0, 0).step();
        // Slow enough to be met by kills.
        return step.event_by_event().pause(Duration::from_millis(3));
    }
    match number % 12 {
        5 => {
            let error = json!({"type": "invalid_request_error", "message": "prompt is too long"});
            Step::status(400, &[], json!({"type": "error", "error": error}).to_string())
        }
        3 | 9 => reply.text(format!("Done with {number}.")).usage(0, 0).step().event_by_event(),
        _ => reply
            .text(format!("Step {number} of the work."))
            .tool_call(
                format!("mark_{number}"),
                "bash",
                json!({"command": format!("echo {number} >> marks")}),
            )
            .tool_call(
                format!("long_{number}"),
                "bash",
                // Never the same twice, or a run might be stopped for going in circles.
                json!({"command": format!("sleep 0.01; seq {number} {}", number + 1_199)}),
            )
            .usage(0, 0)
            .step()
            .event_by_event(),
    }
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let (kills, seed) = (kills(), seed());
    let mut random = Random::new(seed);
    let home = TempHome::new();
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(work));
    configure(&home, &server);
    let longest = on_this_machine(&home, LONGEST);
    let mut speaker = Speaker::new(&home);
    let mut transcript = Transcript::new(home.transcript_path(SESSION));
    let mut seen = 0;

    // On a busy machine a run comes less far before its kill, so there are more of them, and later ones.
    let has_met_all = |transcript: &Transcript| unmet(&server, transcript).is_none();
    let mut kill = 0;
    while kill < kills || (kill < 3 * kills && kills >= ENOUGH_KILLS && !has_met_all(&transcript)) {
        let longest = if kill < kills { longest } else { longest * 3 };
        kill += 1;
        let context = format!("seed {seed}, kill {kill}");
        let child = run(&home, &format!("work {kill}"));
        for _ in 0..random.below(3) {
            random.pause(longest / 3);
            speaker.say(&mut random);
        }
        random.pause(longest);
        child.signal(Signal::Kill);
        child.wait(DEADLINE);

        transcript.read_on(&context);
        let requests = server.all_requests();
        for request in &requests[seen..] {
            validate_pairing(request).unwrap_or_else(|violation| panic!("{context}: {violation}"));
            if !asks_for_summary(request) {
                for message in request.messages() {
                    transcript.assert_holds(message, &context);
                }
            }
        }
        seen = requests.len();
        for number in marks(&home.workspace().join("marks")) {
            let call = format!("mark_{number}");
            assert!(transcript.calls.contains(&call), "{context}: {call} ran before it was stored");
        }
    }
    finish(&home, &speaker, &mut transcript, &format!("seed {seed}, the end"));
    report(&server, &transcript, kill, speaker.acknowledged.len());
}

fn configure(home: &TempHome, server: &ModelServer) {
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    narrow(&mut config, &json!({"keepMessages": 4}));
    config["agents"]["defaults"]["contextPruning"] = json!("adaptive");
    config["messages"] = json!({"queue": {"debounceMs": 5}});
    home.write_config(&config);
}

/// One more turn, to its end: the session is in order, and all that was said is answered.
fn finish(home: &TempHome, speaker: &Speaker, transcript: &mut Transcript, context: &str) {
    let last = ModelServer::spawn_blocking_thread(Script::answer_with(|request, _| {
        let text = if asks_for_summary(request) { "A summary." } else { "All is well." };
        Reply::anthropic().text(text).step()
    }));
    configure(home, &last);
    let output = run(home, "well?").wait(DEADLINE);
    output.assert_code(0);
    assert!(output.stdout().ends_with("All is well.\n"), "{context}: {}", output.stdout());
    for request in last.all_requests() {
        validate_pairing(&request).unwrap();
    }
    transcript.read_on(context);
    transcript.assert_complete(&speaker.acknowledged, context);
    assert_eq!(transcript.taken(), speaker.acknowledged.len(), "{context}");
    assert_eq!(speaker.inbox.pending().unwrap(), []);
}

/// What the kills have not met; `None` if the test shows what it should.
fn unmet(server: &ModelServer, transcript: &Transcript) -> Option<&'static str> {
    let (_, cut) = summaries(server);
    let met = [
        (transcript.interrupted > 0, "the kills never met a running tool"),
        (transcript.compactions > 0, "the window was never full"),
        (transcript.reductions > 0, "a summary was always enough"),
        (cut > 0, "the kills never met a summary"),
    ];
    met.into_iter().find(|(is_met, _)| !is_met).map(|(_, what)| what)
}

/// How many summaries were written, and how many were cut.
fn summaries(server: &ModelServer) -> (usize, usize) {
    let was_cut = |request: &RecordedRequest| {
        request.answer_end().is_some_and(|(end, _)| end == AnswerEnd::ClientGone)
    };
    let requests = server.all_requests();
    let summaries = requests.iter().filter(|request| asks_for_summary(request));
    let (whole, cut): (Vec<_>, Vec<_>) = summaries.partition(|request| !was_cut(request));
    (whole.len(), cut.len())
}

/// Says what the kills have met, and makes sure that they met everything.
fn report(server: &ModelServer, transcript: &Transcript, kills: u64, said: usize) {
    let requests = server.all_requests().len();
    let (whole, cut) = summaries(server);
    let Transcript { interrupted, compactions, reductions, .. } = transcript;
    println!(
        "{kills} kills, {said} messages said, {requests} requests, {interrupted} interrupted calls, {compactions} compactions, \
         {reductions} reductions, {whole} summaries written and {cut} cut"
    );
    if kills >= ENOUGH_KILLS {
        assert_eq!(unmet(server, transcript), None);
    }
}

fn marks(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}
