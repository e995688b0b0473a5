//! Failover between keys, and the overflow ladder.

use std::time::Duration;

use crate::common::Bench;
use myclaw_testkit::{Reply, Script, Step, WireFormat};
use serde_json::{Value, json};

const FORMAT: WireFormat = WireFormat::AnthropicMessages;

fn refused(status: u16, kind: &str, message: &str) -> Step {
    Step::status(
        status,
        &[],
        json!({"type": "error", "error": {"type": kind, "message": message}}).to_string(),
    )
}

fn overflow() -> Step {
    refused(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")
}

fn keys_seen(bench: &Bench) -> Vec<String> {
    bench
        .server
        .requests()
        .iter()
        .map(|request| request.header("x-api-key").unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_retriable_failure_moves_to_the_next_key() {
    for (status, kind, reason) in [
        (401, "authentication_error", "auth"),
        (403, "permission_error", "auth"),
        (429, "rate_limit_error", "rate_limit"),
        (402, "billing_error", "billing"),
        (500, "api_error", "server_error"),
        (504, "api_error", "timeout"),
        (529, "overloaded_error", "server_error"),
    ] {
        let script = Script::new()
            .then(refused(status, kind, "no"))
            .then(Reply::anthropic().text("Second key."));
        let mut bench = Bench::new(FORMAT, script).await;
        bench.profiles = vec!["key-one", "key-two"];

        let result = bench.run("go").await.unwrap();

        assert_eq!(result.reply, "Second key.");
        assert_eq!(keys_seen(&bench), ["key-one", "key-two"], "{status}");
        let retry = &bench.events_named("retry")[0];
        assert_eq!((&retry["attempt"], &retry["reason"]), (&json!(1), &json!(reason)), "{status}");
        assert_eq!(
            (&retry["profileId"], &retry["delayMs"]),
            (&json!("profile-key-two"), &json!(0))
        );
        assert!(bench.clock.sleeps.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn the_cooldown_of_a_single_key_grows_until_the_retries_are_used_up() {
    let bench = Bench::new(FORMAT, Script::repeat(refused(500, "api_error", "down"))).await;

    let error = bench.run("go").await.unwrap_err();

    assert_eq!(error.class(), "server_error");
    assert_eq!(bench.server.requests().len(), 4, "the first attempt and three retries");
    let seconds: Vec<f64> = bench
        .clock
        .sleeps
        .lock()
        .unwrap()
        .iter()
        .map(|sleep| sleep.as_secs_f64().round())
        .collect();
    assert_eq!(seconds, [1.0, 2.0, 4.0]);
    assert_eq!(bench.rows().len(), 1, "the message is kept, the failed calls leave nothing");
}

#[tokio::test]
async fn the_delay_that_the_provider_asks_for_is_waited_or_reported() {
    let limited = |seconds: &str| {
        Step::status(
            429,
            &[("retry-after", seconds)],
            r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#,
        )
    };
    let bench =
        Bench::new(FORMAT, Script::new().then(limited("7")).then(Reply::anthropic().text("ok")))
            .await;
    bench.run("go").await.unwrap();
    assert_eq!(
        bench.clock.sleeps.lock().unwrap()[0].as_secs_f64().round(),
        Duration::from_secs(7).as_secs_f64()
    );

    let bench = Bench::new(FORMAT, Script::new().then(limited("86400"))).await;
    let error = bench.run("go").await.unwrap_err().to_string();
    assert!(error.contains("slow down") && error.contains(", for 24 h)"), "{error}");
    assert!(bench.clock.sleeps.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_wrong_only_key_fails_at_once_and_is_never_shown() {
    let mut bench = Bench::new(
        FORMAT,
        refused(401, "authentication_error", "invalid x-api-key: a-long-secret-key"),
    )
    .await;
    bench.profiles = vec!["a-long-secret-key"];

    let error = bench.run("go").await.unwrap_err();

    assert_eq!((error.class(), bench.server.requests().len()), ("auth", 1));
    assert!(!error.to_string().contains("a-long-secret-key"), "{error}");
}

#[tokio::test]
async fn a_request_that_fails_with_every_key_is_not_repeated() {
    let script =
        Script::repeat(refused(400, "invalid_request_error", "temperature: must be at most 1"));
    let mut bench = Bench::new(FORMAT, script).await;
    bench.profiles = vec!["key-one", "key-two"];

    let error = bench.run("go").await.unwrap_err();

    assert_eq!((error.class(), bench.server.requests().len()), ("unknown", 1));
    assert!(error.to_string().contains("temperature: must be at most 1"), "{error}");
}

/// A session of `turns` turns, each a user message and an answer.
async fn talked(turns: usize) -> Bench {
    let bench = Bench::new(FORMAT, Script::new()).await;
    for turn in 0..turns {
        bench.server.push(Reply::anthropic().text(format!("answer {turn}")));
        bench.run(&format!("question {turn}")).await.unwrap();
    }
    bench.events.lock().unwrap().clear();
    bench
}

#[tokio::test]
async fn fifty_messages_become_eleven() {
    let bench = talked(24).await;
    bench.server.push(Reply::anthropic().tool_call("call_a", "echo", json!({"text": "x"})));
    // The refusal comes with 48 + user + assistant + result = 51 messages; one more answer makes it 52 in the log.
    bench.server.push(overflow());
    bench.server.push(Reply::anthropic().text("They asked many questions."));
    bench.server.push(Reply::anthropic().text("Fits now."));

    let result = bench.run("the last").await.unwrap();

    assert_eq!(result.reply, "Fits now.");
    assert_eq!(
        bench.events_named("compaction"),
        [json!({"type": "compaction", "oldCount": 51, "newCount": 11, "change": "summary"})]
    );
    let sent = bench.server.last_request();
    let first = sent.messages()[0]["content"].to_string();
    assert!(first.contains("[Conversation summary]\\nThey asked many questions."), "{first}");
    let summary_request = &bench.server.requests()[26];
    assert!(
        summary_request.json()["tools"].is_null() && summary_request.json()["system"].is_null()
    );
    assert!(
        summary_request.body_text().contains("question 0")
            && !summary_request.body_text().contains("the last")
    );

    // The whole turn is in the transcript, and the next run starts from the summary.
    let rows = bench.rows();
    assert_eq!(rows.iter().filter(|row| row["role"] == "user").count(), 25);
    assert_eq!(rows.iter().filter(|row| row["type"] == "compaction").count(), 1);
    bench.server.push(Reply::anthropic().text("Still fits."));
    bench.run("more").await.unwrap();
    assert_eq!(bench.server.last_request().messages()[0], sent.messages()[0]);
}

#[tokio::test]
async fn a_summary_that_fails_does_not_end_the_run() {
    let down = refused(500, "api_error", "down");
    let empty = Step::from(Reply::anthropic().text("  "));
    // Like any call, one that fails is repeated, and an empty answer is asked for once more.
    let cases = [(vec![down; 4], 1), (vec![empty; 2], 2)];
    for (attempts, notices) in cases {
        let bench = talked(8).await;
        bench.server.push(overflow());
        for attempt in attempts {
            bench.server.push(attempt);
        }
        bench.server.push(Reply::anthropic().text("Fits now."));

        assert_eq!(bench.run("the last").await.unwrap().reply, "Fits now.");

        let first = bench.server.last_request().messages()[0]["content"].to_string();
        assert!(first.contains("left out without a summary"), "{first}");
        assert_eq!(bench.events_named("notice").len(), notices);
    }
}

#[tokio::test]
async fn oversized_results_are_the_second_rung_and_a_clear_error_the_third() {
    let script = Script::new()
        .then(Reply::anthropic().tool_call("call_a", "echo", json!({"text": "long"})))
        .then_repeat(overflow());
    let bench = Bench::new(FORMAT, script).await;

    let error = bench.run("go").await.unwrap_err();

    assert_eq!(error.class(), "context_overflow");
    assert!(
        error.to_string().contains("anthropic/test-model")
            && error.to_string().contains("larger window"),
        "{error}"
    );
    let requests = bench.server.requests();
    assert_eq!(requests.len(), 4, "the call, its refusal, and one more for each of two rungs");
    let resent = requests[2].body_text();
    assert!(resent.contains("[truncated 30") && resent.len() < 60_000, "{}", resent.len());
    let shortest = requests[3].body_text();
    assert!(shortest.contains("chars left out") && shortest.len() < 12_000, "{}", shortest.len());
    assert!(
        bench.rows()[2]["content"].as_str().unwrap().chars().count() > 50_000,
        "the log keeps it whole"
    );
    let cut = |change: &str| json!({"type": "compaction", "oldCount": 3, "newCount": 3, "change": change});
    assert_eq!(bench.events_named("compaction"), [cut("results_cut"), cut("texts_cut")]);
    let reductions: Vec<Value> =
        bench.rows().into_iter().filter(|row| row["type"] == "reduction").collect();
    assert_eq!(reductions.len(), 2, "the log says what was sent");
}

#[tokio::test]
async fn an_overflow_that_no_rung_can_reduce_reports_no_compaction() {
    let bench = Bench::new(FORMAT, Script::repeat(overflow())).await;
    assert_eq!(bench.run("go").await.unwrap_err().class(), "context_overflow");
    assert_eq!(bench.server.requests().len(), 1);
    assert_eq!(bench.events_named("compaction"), Vec::<Value>::new());
}

#[tokio::test]
async fn a_window_that_fills_up_is_compacted_before_the_provider_refuses() {
    let mut bench = Bench::new(FORMAT, Script::new()).await;
    bench.context_window = 12_000;
    for turn in 0..12 {
        bench.server.push(
            Reply::anthropic()
                .text(format!("answer {turn} {}", "words ".repeat(1_200)))
                .usage(0, 0),
        );
        bench.server.push(Reply::anthropic().text("summary or answer").usage(0, 0));
    }
    while bench.events_named("compaction").is_empty() {
        bench.run("tell me more").await.unwrap();
    }
    let bodies: Vec<usize> =
        bench.server.requests().iter().map(|request| request.body.len()).collect();
    assert!(bodies.iter().all(|body| body / 4 < 12_000), "{bodies:?}");
}
