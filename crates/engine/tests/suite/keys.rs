//! State that outlives a run: the outcomes of keys, and the key and the model with which the next run begins.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::{Bench, EchoTool, run_agent};
use myclaw_auth::{AuthFile, AuthStore, FailureReason};
use myclaw_engine::{ActiveModel, AuthProfile, RunError, RunParams, RunResult};
use myclaw_llm::Model;
use myclaw_testkit::{Reply, Script, Step, WireFormat};
use serde_json::json;

const FORMAT: WireFormat = WireFormat::AnthropicMessages;

fn refused(status: u16, headers: &[(&str, &str)], kind: &str) -> Step {
    let body = json!({"type": "error", "error": {"type": kind, "message": "no"}});
    Step::status(status, headers, body.to_string())
}

fn limited(seconds: &str) -> Step {
    refused(429, &[("retry-after", seconds)], "rate_limit_error")
}

fn store(bench: &Bench) -> AuthFile {
    AuthStore::in_agent_dir(&bench.home.state_directory().join("agents/main/agent")).load().unwrap()
}

/// A model of the server with one key, `key-of-ID` unless another is given.
fn choice(bench: &Bench, provider: &str, id: &str, keys: &[&str]) -> ActiveModel {
    let profiles = keys.iter().map(|key| AuthProfile::with_key(*key, (*key).to_owned().into()));
    let model = Model { id: id.to_owned(), provider: provider.to_owned(), ..bench.model() };
    ActiveModel::new(model, profiles.collect())
}

async fn run(bench: &Bench, choices: &[ActiveModel]) -> Result<RunResult, RunError> {
    run_agent(RunParams { models: choices.to_vec(), ..bench.params("go") }).await
}

/// `key model` of each request.
fn seen(bench: &Bench) -> Vec<String> {
    let requests = bench.server.requests();
    let request = |request: &myclaw_testkit::RecordedRequest| {
        let model = request.json()["model"].as_str().unwrap().to_owned();
        format!("{} {model}", request.header("x-api-key").unwrap())
    };
    requests.iter().map(|recorded| request(recorded)).collect()
}

fn pass(bench: &Bench, seconds: u64) {
    bench.clock.now_ms.fetch_add(seconds * 1_000, Ordering::SeqCst);
}

#[tokio::test]
async fn a_limit_of_one_model_lets_the_same_key_serve_another() {
    let script = Script::new()
        .then(limited("3600"))
        .then(Reply::anthropic().text("Other key."))
        .then(Reply::anthropic().text("Same key."))
        .then(Reply::anthropic().text("Rested."));
    let bench = Bench::new(FORMAT, script).await;
    let keys = ["k1", "k2"];

    run(&bench, &[choice(&bench, "p", "big", &keys)]).await.unwrap();
    let file = store(&bench);
    let usage = file.usage("p", "k1").unwrap();
    assert_eq!(usage.failure_counts.get(&FailureReason::RateLimit), Some(&1));
    assert_eq!(usage.models["big"][&FailureReason::RateLimit].error_count, 1);

    // The key that is in cooldown for the big model is first for the small one.
    run(&bench, &[choice(&bench, "p", "small", &keys)]).await.unwrap();
    run(&bench, &[choice(&bench, "p", "big", &keys)]).await.unwrap();
    assert_eq!(seen(&bench), ["k1 big", "k2 big", "k1 small", "k2 big"]);

    pass(&bench, 3_700);
    bench.server.push(Reply::anthropic().text("Back."));
    run(&bench, &[choice(&bench, "p", "big", &keys)]).await.unwrap();
    assert_eq!(seen(&bench)[4], "k1 big");
    assert_eq!(
        store(&bench).usage("p", "k1").unwrap().models.len(),
        0,
        "a success clears the failures"
    );
}

#[tokio::test]
async fn a_refused_key_is_used_for_no_model_of_its_provider_also_within_the_run() {
    let script = Script::new()
        .then(refused(401, &[], "authentication_error"))
        .then(Reply::anthropic().text("Third."));
    let bench = Bench::new(FORMAT, script).await;
    let choices = [
        choice(&bench, "p", "one", &["k"]),
        choice(&bench, "p", "two", &["k"]),
        choice(&bench, "q", "three", &["k"]),
    ];

    let result = run(&bench, &choices).await.unwrap();

    assert_eq!((result.provider.as_str(), result.model.as_str()), ("q", "three"));
    assert_eq!(seen(&bench), ["k one", "k three"], "the refused key is not tried for `two`");
    let fallbacks = bench.events_named("fallback");
    let path = |event: &serde_json::Value| (event["from"].clone(), event["to"].clone());
    assert_eq!(
        fallbacks.iter().map(path).collect::<Vec<_>>(),
        [(json!("p/one"), json!("p/two")), (json!("p/two"), json!("q/three"))]
    );
    assert_eq!(fallbacks[0]["reason"], "auth");
}

#[tokio::test]
async fn a_single_key_is_tried_even_in_a_long_cooldown() {
    let bench = Bench::new(FORMAT, Script::new().then(limited("7200"))).await;
    let only = [choice(&bench, "p", "m", &["k"])];

    let error = run(&bench, &only).await.unwrap_err().to_string();
    assert!(error.contains("asks to wait until ") && error.contains(", for 2 h)"), "{error}");
    bench.server.push(Reply::anthropic().text("It works again."));
    assert_eq!(run(&bench, &only).await.unwrap().reply, "It works again.");
    assert!(bench.clock.sleeps.lock().unwrap().is_empty());
    assert!(!store(&bench).usage("p", "k").unwrap().has_failures("m"));
}

#[tokio::test]
async fn a_run_waits_for_keys_in_cooldown_or_names_the_time() {
    let script = Script::new().then(limited("3600")).then(limited("60"));
    let mut bench = Bench::new(FORMAT, script).await;
    bench.config.agent.max_retries = 1;
    let both = [choice(&bench, "p", "m", &["k1", "k2"])];
    run(&bench, &both).await.unwrap_err();

    bench.server.push(Reply::anthropic().text("Waited."));
    bench.events.lock().unwrap().clear();
    assert_eq!(run(&bench, &both).await.unwrap().reply, "Waited.");
    assert_eq!(seen(&bench)[2], "k2 m", "the one that is free first");
    let notice = bench.events_named("notice")[0]["message"].as_str().unwrap().to_owned();
    assert!(
        notice.contains("every key is in cooldown") && notice.contains("; waiting "),
        "{notice}"
    );

    bench.server.push(limited("7200"));
    run(&bench, &both).await.unwrap_err();
    let error = run(&bench, &both).await.unwrap_err().to_string();
    assert!(error.contains("clear-cooldown") && error.contains(", for 59 min"), "{error}");
    assert_eq!(seen(&bench).len(), 4, "nothing was sent while all keys were in a long cooldown");
}

#[tokio::test]
async fn during_a_long_cooldown_the_fallback_answers_also_in_the_next_run() {
    let script = Script::new().then(limited("60")).then_repeat(Reply::anthropic().text("ok"));
    let bench = Bench::new(FORMAT, script).await;
    let choices = [choice(&bench, "p", "first", &["k"]), choice(&bench, "q", "second", &["k"])];

    for _ in 0..2 {
        assert_eq!(run(&bench, &choices).await.unwrap().model, "second");
    }
    pass(&bench, 61);
    assert_eq!(run(&bench, &choices).await.unwrap().model, "first");

    assert_eq!(seen(&bench), ["k first", "k second", "k second", "k first"]);
    assert!(
        bench.clock.sleeps.lock().unwrap().is_empty(),
        "no run waits while it can ask another model"
    );
    let reasons: Vec<_> =
        bench.events_named("fallback").iter().map(|event| event["reason"].clone()).collect();
    assert_eq!(reasons, ["rate_limit", "rate_limit"], "the second run says so too");
}

#[tokio::test]
async fn when_all_models_fail_there_is_a_line_for_each() {
    let script = Script::new().then(refused(402, &[], "billing_error")).then(limited("100"));
    let bench = Bench::new(FORMAT, script).await;
    let choices = [choice(&bench, "p", "first", &["k"]), choice(&bench, "q", "second", &["k"])];

    let error = run(&bench, &choices).await.unwrap_err();

    assert_eq!(error.class(), "all_models_failed");
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[1].starts_with("  p/first (billing): ") && lines[1].contains("402"), "{text}");
    assert!(
        lines[2].starts_with("  q/second (rate_limit): ") && lines[2].contains("100 s"),
        "{text}"
    );
}

#[tokio::test]
async fn a_fallback_that_breaks_off_is_named_and_no_other_model_is_asked() {
    let script = Script::new()
        .then(refused(404, &[], "not_found_error"))
        .then(Step::from(Reply::anthropic().text("Half an answer, cut.")).cut_after(700));
    let bench = Bench::new(FORMAT, script).await;
    let choices = ["first", "second", "third"].map(|id| choice(&bench, id, id, &["k"]));

    let error = run(&bench, &choices).await.unwrap_err();

    let RunError::AllModelsFailed(failures) = error else { panic!("{error}") };
    let models: Vec<&str> = failures.iter().map(|failure| failure.model.as_str()).collect();
    assert_eq!(models, ["first/first", "second/second"]);
    assert_eq!(seen(&bench), ["k first", "k second"]);
    assert_eq!(bench.rows().len(), 2, "what was shown is kept");
}

#[tokio::test]
async fn tools_run_once_though_the_model_changes_between_their_calls() {
    let script = Script::new()
        .then(Reply::anthropic().tool_call("call_a", "echo", json!({"text": "one"})))
        .then(refused(404, &[], "not_found_error"))
        .then(Reply::anthropic().text("Done."));
    let bench = Bench::new(FORMAT, script).await;
    let echo = EchoTool::new("echo");
    let runs = Arc::clone(&echo.runs);
    let params = RunParams {
        models: vec![choice(&bench, "p", "first", &["k"]), choice(&bench, "q", "second", &["k"])],
        tools: vec![Arc::new(echo)],
        ..bench.params("go")
    };

    let result = run_agent(params).await.unwrap();

    assert_eq!((result.reply.as_str(), result.model.as_str()), ("Done.", "second"));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(seen(&bench), ["k first", "k first", "k second"]);
    let last = bench.server.last_request().body_text();
    assert!(last.contains("echo: one"), "the fallback gets the history: {last}");
}

#[tokio::test]
async fn an_abort_ends_the_run_and_no_other_model_is_asked() {
    let bench = Bench::new(FORMAT, Script::repeat(Reply::anthropic().text("ok"))).await;
    let mut params = bench.params("go");
    params.models.push(choice(&bench, "q", "second", &["k"]));
    params.cancel.cancel();
    let error = run_agent(params).await.unwrap_err();
    assert_eq!((error.class(), bench.server.requests().len()), ("aborted", 0));
}

#[tokio::test]
async fn a_single_key_that_works_leaves_no_file() {
    let bench = Bench::new(FORMAT, Script::from(Reply::anthropic().text("ok"))).await;
    bench.run("go").await.unwrap();
    assert!(!bench.home.state_directory().join("agents").exists());
}

#[tokio::test]
async fn the_error_names_each_key_with_what_it_failed_with() {
    let script = Script::new()
        .then(refused(401, &[], "authentication_error"))
        .then(refused(403, &[], "permission_error"))
        .then(refused(402, &[], "billing_error"));
    let bench = Bench::new(FORMAT, script).await;

    let error = run(&bench, &[choice(&bench, "p", "big", &["k1", "k2", "k3"])]).await.unwrap_err();

    let text = error.to_string();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    for (line, beginning) in lines.iter().zip(["  k3: ", "  k2: ", "  k1: "]) {
        assert!(line.starts_with(beginning), "{text}");
    }
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].contains("402") && lines[2].contains("401"), "{text}");
}

#[tokio::test]
async fn a_retry_that_does_not_follow_is_not_announced() {
    let bench = Bench::new(FORMAT, limited("3600")).await;
    let error = run(&bench, &[choice(&bench, "p", "big", &["k1"])]).await.unwrap_err();
    assert!(error.to_string().contains("the provider asks to wait until"), "{error}");
    assert!(bench.events_named("retry").is_empty());
}
