//! Which model writes a summary, and what happens to the session if none can.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Bench, asks_for_summary, engine, run_agent};
use futures_util::future::BoxFuture;
use myclaw_engine::{
    ActiveModel, AuthProfile, CompactionOutcome, CompactionReport, CompactionVerdict, Hook,
    HookError, PendingCompaction, RunError, RunParams,
};
use myclaw_llm::Model;
use myclaw_testkit::{Reply, Script, Step, WireFormat};
use serde_json::{Value, json};

/// A failure that another attempt would repeat.
fn refused() -> Step {
    let error = json!({"type": "not_found_error", "message": "out of order"});
    Step::status(404, &[], json!({"type": "error", "error": error}).to_string())
}

fn limited(seconds: &str) -> Step {
    let error = json!({"type": "rate_limit_error", "message": "slow down"});
    let body = json!({"type": "error", "error": error}).to_string();
    Step::status(429, &[("retry-after", seconds)], body)
}

fn too_long() -> Step {
    let message = "prompt is too long";
    let body =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    Step::status(400, &[], body.to_string())
}

/// Only the model `able` writes summaries; every model answers.
fn summaries_by(able: &'static str) -> Script {
    Script::answer_with(move |request, _| match asks_for_summary(request) {
        true if request.json()["model"] == able => {
            Reply::anthropic().text(format!("Summary by {able}.")).into()
        }
        true => refused(),
        false => Reply::anthropic().text("word ".repeat(700)).usage(0, 0).into(),
    })
}

/// A session of eight turns, with fallback models `second`, `third`, …
async fn long_session(script: Script, fallbacks: &[&str]) -> (Bench, RunParams) {
    let bench = Bench::new(WireFormat::AnthropicMessages, script).await;
    for turn in 0..8 {
        bench.run(&format!("question {turn}")).await.unwrap();
    }
    let fallbacks = fallbacks.iter().map(|id| {
        let model = Model { id: (*id).to_owned(), ..bench.model() };
        ActiveModel::new(model, vec![AuthProfile::with_key("key", "key".to_owned().into())])
    });
    let mut params = bench.params("");
    params.models.extend(fallbacks);
    (bench, params)
}

/// The models that were asked for a summary, in order.
fn writers(bench: &Bench) -> Vec<Value> {
    let requests = bench.server.requests();
    let asked = requests.iter().filter(|request| asks_for_summary(request));
    asked.map(|request| request.json()["model"].clone()).collect()
}

fn summaries(bench: &Bench) -> Vec<Value> {
    let rows = bench.rows().into_iter().filter(|row| row["type"] == "compaction");
    rows.map(|row| row["summary"].clone()).collect()
}

#[tokio::test]
async fn the_next_model_writes_the_summary_and_the_first_one_goes_on_answering() {
    let (bench, params) = long_session(summaries_by("second"), &["second"]).await;
    let before = bench.server.requests().len();
    bench.server.push(too_long());

    run_agent(RunParams { user_message: bench.params("go on").user_message, ..params })
        .await
        .unwrap();

    let asked: Vec<Value> = bench.server.requests()[before..]
        .iter()
        .map(|request| request.json()["model"].clone())
        .collect();
    assert_eq!(asked, ["test-model", "test-model", "second", "test-model"]);
    assert_eq!(summaries(&bench), ["Summary by second."]);
    let notice = bench.events_named("notice")[0]["message"].as_str().unwrap().to_owned();
    assert!(
        notice.starts_with(
            "anthropic/test-model could not summarise the older messages (anthropic at "
        ) && notice.contains("): out of order")
            && notice.ends_with("); anthropic/second is asked instead"),
        "{notice}"
    );
}

#[tokio::test]
async fn a_bounded_number_of_models_is_asked_before_a_note_replaces_the_summary() {
    let (bench, params) =
        long_session(summaries_by("nobody"), &["second", "third", "fourth"]).await;
    bench.server.push(too_long());

    run_agent(RunParams { user_message: bench.params("go on").user_message, ..params })
        .await
        .unwrap();

    assert_eq!(writers(&bench), ["test-model", "second", "third"]);
    let note = summaries(&bench)[0].as_str().unwrap().to_owned();
    assert!(note.contains("later messages were left out without a summary"), "{note}");
}

/// A session in which the first request for a summary gets `first`, and a later one a summary.
async fn one_failure(first: Step, profiles: &[&'static str]) -> (Bench, RunParams) {
    let first = Mutex::new(Some(first));
    let script = Script::answer_with(move |request, _| match asks_for_summary(request) {
        true => first
            .lock()
            .unwrap()
            .take()
            .unwrap_or_else(|| Reply::anthropic().text("All of it.").usage(20, 3).into()),
        false => Reply::anthropic().text("word ".repeat(700)).usage(0, 0).into(),
    });
    let (mut bench, _) = long_session(script, &[]).await;
    bench.profiles = profiles.to_vec();
    let params = bench.params("");
    (bench, params)
}

/// The keys with which summaries were asked for, in order.
fn writing_keys(bench: &Bench) -> Vec<String> {
    let requests = bench.server.requests();
    let asked = requests.iter().filter(|request| asks_for_summary(request));
    asked.map(|request| request.header("x-api-key").unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_summary_goes_to_the_next_key_of_its_model() {
    let (bench, params) = one_failure(limited("3600"), &["key-one", "key-two"]).await;
    engine().compact(params, None).await.unwrap();

    assert_eq!(writing_keys(&bench), ["key-one", "key-two"]);
    assert_eq!(summaries(&bench), ["All of it."]);
    // As after any failed call, the answers go to the key that works.
    bench.run("go on").await.unwrap();
    assert_eq!(bench.server.requests().last().unwrap().header("x-api-key"), Some("key-two"));
}

#[tokio::test]
async fn a_summary_waits_for_the_only_key() {
    let (bench, params) = one_failure(limited("60"), &["key-one"]).await;
    engine().compact(params, None).await.unwrap();

    assert_eq!(writing_keys(&bench), ["key-one", "key-one"]);
    assert_eq!(summaries(&bench), ["All of it."]);
    let waited: Duration = bench.clock.sleeps.lock().unwrap().iter().sum();
    assert!((30..=60).contains(&waited.as_secs()), "{waited:?}");
    assert_eq!(bench.events_named("retry").len(), 1);
}

#[tokio::test]
async fn a_summary_that_breaks_off_is_requested_again_and_its_cost_counts() {
    let begun = Reply::anthropic().text("All of").usage(10, 0).step().cut_after(700);
    let (bench, _) = one_failure(begun, &["key-one"]).await;
    let rows = bench.rows().len();
    bench.server.push(too_long());
    let calls = bench.input_of_events().len();
    let result = bench.run("go on").await.unwrap();

    assert_eq!(summaries(&bench), ["All of it."]);
    let of_run: u64 = bench.input_of_events()[calls..].iter().sum();
    assert_eq!(of_run, 30, "each call is an event, also one that failed");
    assert_eq!(bench.rows().len(), rows + 3, "of the first attempt nothing is in the session");
    assert_eq!(result.usage.input, 30);
}

#[tokio::test]
async fn what_one_model_has_summarised_is_not_lost_when_the_next_goes_on() {
    // The first model sees the text in pieces and fails at the second one.
    let script = Script::answer_with(|request, _| {
        let is_second = request.body_text().contains("summary of what came before");
        match (asks_for_summary(request), request.json()["model"].as_str()) {
            (true, Some("test-model")) if is_second => refused(),
            (true, Some("test-model")) => Reply::anthropic().text("First part.").into(),
            (true, _) => Reply::anthropic().text("Both parts.").into(),
            (false, _) => {
                let length = if request.messages().len() < 6 { 4_000 } else { 10 };
                Reply::anthropic().text("word ".repeat(length)).usage(0, 0).into()
            }
        }
    });
    let (bench, mut params) = long_session(script, &["second"]).await;
    params.models[0].model.context_window = 25_000;

    engine().compact(params, None).await.unwrap();

    assert_eq!(writers(&bench), ["test-model", "test-model", "second"]);
    let requests = bench.server.requests();
    let last = requests.last().unwrap().body_text();
    assert!(last.contains("summary of what came before: First part."), "{last}");
    assert!(!last.contains("question 0"), "not from the beginning");
    assert_eq!(last.matches("assistant: word").count(), 1, "the third answer");
    assert_eq!(summaries(&bench), ["Both parts."]);
}

#[tokio::test]
async fn a_manual_compaction_that_fails_or_is_not_shorter_changes_nothing() {
    let (bench, params) = long_session(summaries_by("nobody"), &[]).await;
    let rows = bench.rows();
    let error = engine().compact(params.clone(), None).await.unwrap_err();
    assert!(matches!(error, RunError::Model(_)), "{error}");
    assert_eq!(bench.rows(), rows);

    bench.server.push(Reply::anthropic().text("word ".repeat(20_000)));
    let report = engine().compact(params, None).await.unwrap();
    assert_eq!(report.outcome, CompactionOutcome::NotShorter);
    assert_eq!((report.new_count, report.tokens_after), (report.old_count, report.tokens_before));
    assert_eq!(bench.rows(), rows);
    assert_eq!(bench.events_named("compaction"), Vec::<Value>::new());
}

/// Decides about compactions as configured, and records its questions and reports.
#[derive(Default)]
struct Judge {
    verdict: Option<CompactionVerdict>,
    heard: Mutex<Vec<String>>,
}

impl Hook for Judge {
    fn name(&self) -> &str {
        "judge"
    }

    fn before_session_compact<'a>(
        &'a self,
        compaction: &'a mut PendingCompaction<'_>,
    ) -> BoxFuture<'a, Result<CompactionVerdict, HookError>> {
        let asked = format!("{:?}, {} messages", compaction.reason, compaction.messages().count());
        self.heard.lock().unwrap().push(asked);
        let verdict = self.verdict.clone().unwrap_or(CompactionVerdict::Proceed);
        Box::pin(async move { Ok(verdict) })
    }

    fn session_compact<'a>(
        &'a self,
        report: &'a CompactionReport,
        summary: &'a str,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        let reported = format!("{} to {}: {summary}", report.old_count, report.new_count);
        self.heard.lock().unwrap().push(reported);
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn hooks_are_asked_where_the_beginning_of_a_long_session_is_left_out() {
    let summary = CompactionVerdict::Summary("They counted.".to_owned());
    let veto = CompactionVerdict::Veto { reason: "an audit runs".to_owned() };
    for (verdict, stored, heard) in [
        (Some(summary), Some("They counted."), "17 to 6: They counted."),
        (Some(veto), None, ""),
        (None, Some("12 later messages were left out without a summary"), "17 to 6: 12 later"),
    ] {
        let (bench, mut params) = long_session(summaries_by("nobody"), &[]).await;
        params.user_message = bench.params("go on").user_message;
        params.models[0].model.context_window = 6_000;
        let judge = Arc::new(Judge { verdict, ..Judge::default() });
        params.hooks = vec![judge.clone()];

        run_agent(params).await.unwrap();

        let summaries = summaries(&bench);
        let summary = summaries.first().map(|summary| summary.as_str().unwrap());
        assert_eq!(summary.is_some(), stored.is_some(), "{summary:?}");
        assert!(summary.unwrap_or_default().starts_with(stored.unwrap_or_default()));
        let reported = judge.heard.lock().unwrap().clone();
        assert_eq!(reported[0], "Estimate, 12 messages");
        assert!(reported.get(1).map_or("", String::as_str).starts_with(heard), "{reported:?}");
        let sent = bench.server.last_request().body_text();
        assert!(!sent.contains("question 0") && sent.contains("go on"), "{sent}");
    }
}
