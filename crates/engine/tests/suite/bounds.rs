//! The limits of a run: each ends the run with a summary, and the result names it.

use crate::common::Bench;
use myclaw_engine::{Bound, RunResult};
use myclaw_testkit::{RecordedRequest, Reply, Script, Step, WireFormat, validate_pairing};
use serde_json::json;

/// Calls a tool again and again, each time with another text, and writes a summary on request. Each call takes 100
/// tokens and gives 10.
fn endless(request: &RecordedRequest, number: usize) -> Step {
    let last = request.messages().last().unwrap().to_string();
    let reply = match last.contains("The program stops this run here") {
        true => Reply::anthropic().text("Summed up."),
        false => Reply::anthropic().tool_call(
            format!("call_{number}"),
            "echo",
            json!({"text": number.to_string()}),
        ),
    };
    reply.usage(100, 10).step()
}

async fn bench(set: impl FnOnce(&mut Bench)) -> Bench {
    let mut bench = Bench::new(WireFormat::AnthropicMessages, Script::answer_with(endless)).await;
    bench.config.agent.max_iterations = 0.into();
    set(&mut bench);
    bench
}

fn assert_ended(bench: &Bench, result: &RunResult, bound: Bound, iterations: u32) {
    assert_eq!(
        (result.reply.as_str(), result.bound, result.iterations),
        ("Summed up.", Some(bound), iterations)
    );
    assert!(!result.max_iterations_reached);
    assert_eq!(bench.events_named("bound_reached")[0]["bound"], json!(bound));
    let rows = bench.rows();
    assert_eq!(rows[rows.len() - 2]["meta"]["bound"], json!(bound));
    validate_pairing(&bench.server.last_request()).unwrap();
}

#[tokio::test]
async fn tokens_and_money_end_a_run() {
    let tokens = bench(|bench| bench.config.agents.defaults.limits.run_tokens = 250).await;
    assert_ended(&tokens, &tokens.run("go").await.unwrap(), Bound::RunTokens, 3);

    // A dollar for a million tokens in, two for as many out: 120 millionths for each call.
    let cost = bench(|bench| bench.config.agents.defaults.limits.run_cost = 0.000_36).await;
    assert_ended(&cost, &cost.run("go").await.unwrap(), Bound::RunCost, 3);
}

#[tokio::test]
async fn a_limit_on_money_says_that_it_cannot_apply_to_a_model_without_a_price() {
    let notices = async |set: fn(&mut Bench)| {
        let bench = bench(|bench| {
            bench.config.agent.max_iterations = 3.into();
            set(bench);
        })
        .await;
        let mut params = bench.params("go");
        params.models[0].model.price = None;
        let result = crate::common::run_agent(params).await.unwrap();
        assert_eq!(result.bound, Some(Bound::MaxIterations));
        assert_eq!(result.usage.cost.unpriced_calls, 4, "three calls and the summary");
        let notices = bench.events_named("notice");
        let messages = notices.iter().map(|notice| notice["message"].as_str().unwrap().to_owned());
        messages.filter(|message| message.contains("price")).collect::<Vec<_>>()
    };
    // Both have a limit by default.
    let reported = notices(|bench| bench.config.agents.defaults.limits.run_cost = 0.000_001).await;
    assert_eq!(
        reported,
        [
            "the price of anthropic/test-model is unknown, so limits.runCost and limits.dayCost cannot apply: set `price` for the model in models.providers.anthropic.models"
        ]
    );
    let none = notices(|bench| {
        let limits = &mut bench.config.agents.defaults.limits;
        (limits.run_cost, limits.day_cost) = (0.0, 0.0);
    })
    .await;
    assert_eq!(none, [""; 0], "no limit, no notice");
}

#[tokio::test]
async fn the_totals_of_a_day_end_a_run_and_let_no_other_begin() {
    for (bound, set) in [
        (
            Bound::DayTokens,
            (|bench: &mut Bench| bench.config.agents.defaults.limits.day_tokens = 500)
                as fn(&mut Bench),
        ),
        (Bound::DayCost, |bench| bench.config.agents.defaults.limits.day_cost = 0.000_6),
    ] {
        let bench = bench(set).await;
        assert_ended(&bench, &bench.run("go").await.unwrap(), bound, 5);
        let requests = bench.server.requests().len();

        let next = bench.run("and now?").await.unwrap();

        assert_eq!((next.reply.as_str(), next.bound, next.iterations), ("", Some(bound), 0));
        assert_eq!(bench.server.requests().len(), requests, "nothing more is spent");
        // The next day it continues.
        bench.clock.now_ms.fetch_add(86_400_000, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(bench.run("and now?").await.unwrap().iterations, 5);
    }
}

#[tokio::test]
async fn the_same_call_again_and_again_ends_a_run() {
    let mut script: Vec<Reply> = (0..6)
        .map(|number| {
            Reply::anthropic().tool_call(format!("call_{number}"), "echo", json!({"text": "same"}))
        })
        .collect();
    script.push(Reply::anthropic().text("Summed up."));
    let bench = Bench::new(WireFormat::AnthropicMessages, script).await;

    assert_ended(&bench, &bench.run("go").await.unwrap(), Bound::RepeatedCalls, 6);
}

#[tokio::test]
async fn time_stops_a_tool_and_a_model_that_hangs() {
    let calls = Reply::anthropic().tool_call("call_a", "echo", json!({"text": "wait"})).tool_call(
        "call_b",
        "echo",
        json!({"text": "never"}),
    );
    let hangs = Reply::anthropic().text("It was a dark and stormy night.").in_deltas(6).step();
    for first in [calls.step(), hangs.stall_after(600)] {
        let mut bench = Bench::new(
            WireFormat::AnthropicMessages,
            [first, Reply::anthropic().text("Summed up.").step()],
        )
        .await;
        bench.config.agents.defaults.limits.run_seconds = 1;

        let result = bench.run("go").await.unwrap();

        assert_eq!((result.reply.as_str(), result.bound), ("Summed up.", Some(Bound::RunSeconds)));
        let rows = bench.rows();
        if rows[2]["role"] == "tool" {
            assert_eq!(
                (rows[2]["content"].as_str().unwrap(), rows[3]["content"].as_str().unwrap()),
                (
                    "half done\n\nStopped before it finished: the time limit of the run was reached.",
                    "Not run: the time limit of the run was reached before this call started."
                )
            );
        } else {
            assert_eq!(rows[1]["meta"]["stopReason"], "aborted");
        }
        validate_pairing(&bench.server.last_request()).unwrap();
    }
}

#[tokio::test]
async fn a_summary_that_fails_or_calls_tools_does_not_fail_the_run() {
    let calls = |id: &str| {
        Reply::anthropic().text("Half-way.").tool_call(id, "echo", json!({"text": "x"})).step()
    };
    let refused = Step::status(
        400,
        &[],
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
    );
    for last in [calls("call_b"), refused] {
        let mut bench = Bench::new(WireFormat::AnthropicMessages, [calls("call_a"), last]).await;
        bench.config.agent.max_iterations = 1.into();

        let result = bench.run("go").await.unwrap();

        assert_eq!(
            (result.reply.as_str(), result.max_iterations_reached, result.bound),
            ("Half-way.", true, Some(Bound::MaxIterations))
        );
        bench.server.push(Reply::anthropic().text("On we go."));
        assert_eq!(bench.run("go on").await.unwrap().reply, "On we go.");
        let stored = json!(bench.rows()).to_string();
        assert_eq!(
            stored.matches("only a summary was asked for").count()
                + bench.events_named("notice").len(),
            1
        );
    }
}

#[tokio::test]
async fn the_closing_summary_is_requested_once() {
    let error = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}});
    let limited = Step::status(429, &[("retry-after", "1")], error.to_string());
    let hangs = Reply::anthropic().text("It was a dark and stormy night.").in_deltas(6).step();
    let script = Script::new().then(hangs.stall_after(600)).then_repeat(limited);
    let mut bench = Bench::new(WireFormat::AnthropicMessages, script).await;
    bench.config.agents.defaults.limits.run_seconds = 1;

    let result = bench.run("go").await.unwrap();

    assert_eq!(result.bound, Some(Bound::RunSeconds));
    assert_eq!(bench.server.requests().len(), 2, "no retries: the limit is reached");
    let notices = bench.events_named("notice");
    assert!(notices.iter().any(|notice| notice.to_string().contains("no closing summary")));
}
