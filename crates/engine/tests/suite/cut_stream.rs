//! A stream with a tool call, cut after every single byte: each run ends in the same message or in one classified
//! error, no call runs twice, and the session continues.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::StreamExt as _;

use crate::common::{Bench, EchoTool, run_agent};
use myclaw_engine::{RunError, RunParams, RunResult};
use myclaw_testkit::{Reply, Script, Step, TempHome, WireFormat};
use serde_json::{Value, json};

/// What the model says before its call; short, because every byte of it is a run.
const WORDS: &str = "Hm.";

/// Runs at the same time: they also wait, for the socket and for the blocking threads.
const AT_ONCE: usize = 8;

fn call(format: WireFormat) -> Reply {
    Reply::new(format)
        .text(WORDS)
        .in_deltas(1)
        .tool_call("call_1", "echo", json!({"text": "one"}))
        .in_deltas(1)
}

/// Cuts the first answer, and answers whole from then on.
fn script(format: WireFormat, cut: usize) -> Script {
    Script::answer_with(move |request, number| {
        let text = request.body_text();
        let whole = Step::from(call(format));
        if number == 0 {
            whole.cut_after(cut)
        } else if text.contains("go on") {
            Reply::new(format).text("Fine.").into()
        } else if text.contains("echo: one") {
            Reply::new(format).text("Done.").into()
        } else {
            whole
        }
    })
}

/// One run. Returns the outcome and how often the tool ran.
async fn run(bench: &Bench, message: &str) -> (Result<RunResult, RunError>, u64) {
    let tool = EchoTool::new("echo");
    let runs = Arc::clone(&tool.runs);
    let params = RunParams {
        tools: vec![Arc::new(tool)],
        on_event: Some(Arc::new(|_| {})),
        ..bench.params(message)
    };
    (run_agent(params).await, runs.load(Ordering::SeqCst))
}

fn roles(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["role"].as_str().unwrap()).collect()
}

/// The outcome of one cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fate {
    /// Nothing had been shown, so the call was made again.
    Repeated,
    /// Something had been shown, so the run ended with an error.
    Failed,
    /// The message was whole already.
    Whole,
}

async fn cut_at(format: WireFormat, cut: usize) -> Fate {
    let mut bench = Bench::new(format, script(format, cut)).await;
    bench.home = TempHome::in_memory();
    let (outcome, runs) = run(&bench, "begin").await;
    let rows_then = bench.rows();
    let fate = match outcome {
        Ok(result) => {
            assert_eq!(result.reply, "Done.", "cut at {cut}");
            assert_eq!(runs, 1, "cut at {cut}: the call ran once");
            assert_eq!(
                roles(&rows_then),
                ["user", "assistant", "tool", "assistant"],
                "cut at {cut}"
            );
            assert_eq!(rows_then[1]["content"], WORDS, "cut at {cut}");
            match bench.server.requests().len() {
                2 => Fate::Whole,
                3 => Fate::Repeated,
                count => panic!("cut at {cut}: {count} requests"),
            }
        }
        Err(error) => {
            assert_eq!(error.class(), "network", "cut at {cut}: {error}");
            assert_eq!(runs, 0, "cut at {cut}: half a call ran");
            assert_eq!(bench.server.requests().len(), 1, "cut at {cut}");
            assert_eq!(roles(&rows_then), ["user", "assistant"], "cut at {cut}");
            let partial = &rows_then[1];
            assert_eq!(partial["meta"]["stopReason"], "error", "cut at {cut}");
            assert!(WORDS.starts_with(partial["content"].as_str().unwrap()), "cut at {cut}");
            Fate::Failed
        }
    };

    let (next, runs_again) = run(&bench, "go on").await;
    assert_eq!(next.unwrap().reply, "Fine.", "cut at {cut}");
    assert_eq!(runs_again, 0, "cut at {cut}: the call ran again");
    let request = bench.server.last_request();
    let results = request.body_text().matches("echo: one").count() as u64;
    assert_eq!(results, runs, "cut at {cut}: one result for each call that ran");
    assert!(bench.rows().starts_with(&rows_then), "cut at {cut}: nothing is rewritten");
    // The server refuses requests that break the provider's rules; a refusal fails here.
    bench.server.assert_finished();
    fate
}

/// Cuts a stream of `format` after every byte. Returns the outcomes in order, without repetitions.
async fn fates(format: WireFormat) -> Vec<Fate> {
    let length = call(format).stream_body("test-model").len();
    let mut fates: Vec<Fate> = futures_util::stream::iter(0..length)
        .map(|cut| cut_at(format, cut))
        .buffered(AT_ONCE)
        .collect()
        .await;
    fates.dedup();
    fates
}

#[tokio::test]
async fn an_anthropic_stream_cut_at_every_byte() {
    let fates = fates(WireFormat::AnthropicMessages).await;
    // Its last event ends it, and without the line end behind that the event is not there.
    assert_eq!(fates, [Fate::Repeated, Fate::Failed]);
}

#[tokio::test]
async fn an_openai_stream_cut_at_every_byte() {
    let fates = fates(WireFormat::OpenAiCompletions).await;
    // The counters and `[DONE]` follow a message that is whole.
    assert_eq!(fates, [Fate::Repeated, Fate::Failed, Fate::Whole]);
}

#[tokio::test]
async fn a_responses_stream_cut_at_every_byte() {
    let fates = fates(WireFormat::OpenAiResponses).await;
    // As in the first: the whole response is its last event.
    assert_eq!(fates, [Fate::Repeated, Fate::Failed]);
}
