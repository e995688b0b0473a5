//! Sessions that do not fit: every rung makes the request smaller, and an overflow never blocks a session forever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Bench, asks_for_summary, engine, run_agent};
use myclaw_config::ContextPruning;
use myclaw_engine::CompactionReport;
use myclaw_testkit::{RecordedRequest, Reply, Script, Step, WireFormat};
use serde_json::{Value, json};

const FORMAT: WireFormat = WireFormat::AnthropicMessages;

fn overflow(length: usize) -> Step {
    let message = format!("prompt is too long: {length} bytes");
    let body =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    Step::status(400, &[], body.to_string())
}

fn rows_of_type(bench: &Bench, kind: &str) -> Vec<Value> {
    bench.rows().into_iter().filter(|row| row["type"] == kind).collect()
}

#[tokio::test]
async fn every_rung_makes_the_request_smaller_and_the_ladder_ends() {
    // Answers once the pushed ones are used up.
    let script = Script::answer_with(|request, _| match asks_for_summary(request) {
        true => Reply::anthropic().text("A short summary.").into(),
        false => overflow(request.body.len()),
    });
    let bench = Bench::new(FORMAT, script).await;
    for turn in 0..8 {
        let text = if turn % 2 == 0 { "long" } else { "short" };
        bench.server.push(Reply::anthropic().tool_call("call_a", "echo", json!({ "text": text })));
        bench.server.push(Reply::anthropic().text("word ".repeat(400)).usage(0, 0));
        bench.run(&"question ".repeat(500)).await.unwrap();
    }
    let before = bench.server.requests().len();

    let error = bench.run(&"a very long task ".repeat(60_000)).await.unwrap_err();

    assert_eq!(error.class(), "context_overflow");
    let requests = bench.server.requests().split_off(before);
    let refused: Vec<usize> = requests
        .iter()
        .filter(|request| !asks_for_summary(request))
        .map(|request| request.body.len())
        .collect();
    assert!(refused.is_sorted_by(|larger, smaller| larger > smaller), "{refused:?}");
    assert!((2..=5).contains(&refused.len()), "one for each rung and one before: {refused:?}");
    let summaries = requests.len() - refused.len();
    assert!(summaries <= 8, "at most four calls for each of two summaries: {summaries}");
    let rows = bench.rows();
    let kept = rows.iter().rfind(|row| row["role"] == "user").unwrap();
    assert_eq!(kept["content"].as_str().unwrap().len(), 17 * 60_000, "the log keeps it whole");
}

#[tokio::test]
async fn a_summary_of_a_long_session_takes_a_bounded_number_of_calls() {
    let script = Script::answer_with(|request, _| match asks_for_summary(request) {
        true => Reply::anthropic().text("So far.").into(),
        false => Reply::anthropic().text("done").into(),
    });
    let mut bench = Bench::new(FORMAT, script).await;
    bench.context_window = 4_000_000;
    for _ in 0..9 {
        bench.server.push(Reply::anthropic().text("word ".repeat(20_000)).usage(0, 0));
        bench.run("tell me").await.unwrap();
    }
    let before = bench.server.requests().len();
    // The next model has a small window: the older messages are many times its size.
    bench.context_window = 60_000;
    bench.run("go on").await.unwrap();
    let requests = bench.server.requests().split_off(before);
    assert!(
        requests.iter().all(|request| request.body.len() / 4 < 60_000),
        "nothing larger is sent"
    );
    assert!(requests.len() <= 5, "{}", requests.len());
}

#[tokio::test]
async fn a_manual_compaction_summarises_the_older_messages_with_a_focus() {
    let bench = Bench::new(FORMAT, Script::new()).await;
    for turn in 0..8 {
        bench.server.push(Reply::anthropic().text(format!("answer {turn}")));
        bench.run(&format!("question {turn} {}", "word ".repeat(50))).await.unwrap();
    }
    bench.server.push(Reply::anthropic().text("They talked."));
    let report = engine().compact(bench.params(""), Some("the numbers")).await.unwrap();

    assert_eq!((report.old_count, report.new_count), (16, 11));
    assert!(report.tokens_after < report.tokens_before);
    let asked = bench.server.last_request().body_text();
    assert!(asked.contains("Pay attention to this above all: the numbers"), "{asked}");
    bench.server.push(Reply::anthropic().text("ok"));
    bench.run("next").await.unwrap();
    let first = bench.server.last_request().messages()[0]["content"].to_string();
    assert!(first.contains("[Conversation summary]\\nThey talked."), "{first}");
    assert_eq!(rows_of_type(&bench, "compaction").len(), 1);
}

#[tokio::test]
async fn a_manual_compaction_leaves_an_empty_session_unchanged() {
    let bench = Bench::new(FORMAT, Script::new()).await;
    let CompactionReport { old_count, new_count, .. } =
        engine().compact(bench.params(""), None).await.unwrap();
    assert_eq!((old_count, new_count), (0, 0));
    assert!(bench.server.requests().is_empty());
}

/// The messages of each request must begin with those of the request before, unless something was pruned or
/// compacted in between. How many times it was.
fn check_prefixes(bench: &Bench) -> usize {
    let requests = bench.server.requests();
    let events = bench
        .events
        .lock()
        .unwrap()
        .iter()
        .map(|event| json!(event)["type"].clone())
        .collect::<Vec<_>>();
    let calls = events.split(|name| name == "llm_start").skip(1);
    let changed_before_next =
        calls.map(|call| call.iter().any(|name| name == "pruning" || name == "compaction"));
    let mut changes = 0;
    for ((number, pair), changed) in requests.windows(2).enumerate().zip(changed_before_next) {
        let (earlier, later) = (without_cache_points(&pair[0]), without_cache_points(&pair[1]));
        let grows = later.len() >= earlier.len() && later[..earlier.len()] == earlier[..];
        assert!(grows || changed, "request {} without a reason", number + 1);
        changes += usize::from(!grows);
    }
    changes
}

fn without_cache_points(request: &RecordedRequest) -> Vec<String> {
    let messages = request.messages().iter();
    messages
        .map(|message| message.to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, ""))
        .collect()
}

#[tokio::test]
async fn pruning_changes_what_is_sent_only_where_the_log_says_so() {
    for (mode, prunes) in [
        (ContextPruning::Off, false),
        (ContextPruning::Adaptive, true),
        (ContextPruning::Aggressive, true),
        (ContextPruning::CacheTtl, false),
    ] {
        let mut bench = Bench::new(FORMAT, Script::new()).await;
        bench.context_window = 260_000;
        bench.config.agents.defaults.context_pruning = mode;
        for number in 0..6 {
            let id = format!("call_{number}");
            let call = Reply::anthropic().tool_call(&id, "echo", json!({"text": "long"}));
            let sent = number * 25_000;
            bench.server.push(call.usage(sent, 50));
            bench.server.push(Reply::anthropic().text("Done.").usage(sent + 25_000, 5));
            bench.run("go").await.unwrap();
        }
        assert_eq!(check_prefixes(&bench) > 0, prunes, "{mode:?}");
        assert_eq!(!bench.events_named("pruning").is_empty(), prunes, "{mode:?}");
        assert_eq!(
            rows_of_type(&bench, "reduction").len(),
            bench.events_named("pruning").len(),
            "{mode:?}: the log says each time"
        );
        let results = bench.rows().into_iter().filter(|row| row["role"] == "tool");
        assert!(
            results.map(|row| row["content"].as_str().unwrap().len()).all(|length| length > 50_000)
        );
    }
}

#[tokio::test]
async fn a_group_chat_sends_its_newest_messages_only() {
    let mut bench = Bench::new(FORMAT, Script::new()).await;
    bench.config.channels.telegram =
        Some(serde_json::from_value(json!({"botToken": "t", "historyLimit": 8})).unwrap());
    for turn in 0..12 {
        bench.server.push(Reply::anthropic().text(format!("answer {turn}")));
        let mut params = bench.params(&format!("question {turn}"));
        let group = "agent:main:channel:telegram:account:default:peer:group:g1".parse().unwrap();
        params.rules = bench.configured(&group, Vec::new()).rules;
        params.session_key = group;
        run_agent(params).await.unwrap();
    }
    let lengths: Vec<usize> =
        bench.server.requests().iter().map(|request| request.messages().len()).collect();
    assert_eq!(lengths, [1, 3, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
    assert_eq!(bench.rows().iter().filter(|row| row["role"] == "user").count(), 12);
}

/// `MYCLAW_TURNS` sets how many turns.
#[tokio::test]
async fn a_session_goes_on_against_a_server_that_refuses_large_requests() {
    // A little less than the window that the model claims.
    const LARGEST: usize = 200_000;
    let turns: usize =
        std::env::var("MYCLAW_TURNS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let refused = Arc::new(AtomicUsize::new(0));
    let summaries = Arc::new(AtomicUsize::new(0));
    let (refusals, summarised) = (Arc::clone(&refused), Arc::clone(&summaries));
    let script = Script::answer_with(move |request, number| {
        if request.body.len() > LARGEST {
            refusals.fetch_add(1, Ordering::SeqCst);
            return overflow(request.body.len());
        }
        if asks_for_summary(request) {
            summarised.fetch_add(1, Ordering::SeqCst);
            return Reply::anthropic()
                .text("What was said until now. ".repeat(20))
                .usage(0, 0)
                .into();
        }
        let last = request.messages().last().unwrap()["content"].to_string();
        if last.contains("tool_result") {
            return Reply::anthropic().text("Done.").usage(0, 0).into();
        }
        let text = match number % 7 {
            0 => "long".to_owned(),
            1 => "fail".to_owned(),
            size => "x".repeat(size * size * 300),
        };
        let id = format!("call_{number}");
        Reply::anthropic().tool_call(&id, "echo", json!({ "text": text })).usage(0, 0).into()
    })
    .keep_last_bodies(4);
    let mut bench = Bench::new(FORMAT, script).await;
    bench.context_window = 60_000;

    for turn in 0..turns {
        let result = bench.run(&format!("task {turn}")).await.unwrap();
        assert_eq!(result.reply, "Done.", "turn {turn}");
    }

    let rows = bench.rows();
    assert_eq!(rows.iter().filter(|row| row["role"] == "user").count(), turns, "nothing is lost");
    let calls = bench.server.requests().len();
    println!(
        "{turns} turns: {calls} calls, {} of them refused, {} summaries, {} compactions, {} reductions",
        refused.load(Ordering::SeqCst),
        summaries.load(Ordering::SeqCst),
        rows_of_type(&bench, "compaction").len(),
        rows_of_type(&bench, "reduction").len(),
    );
    assert!(
        refused.load(Ordering::SeqCst) <= turns,
        "the server does not refuse a request in every turn"
    );
}

/// One turn can exceed the limit more often than there are rungs: each successful call makes all of them available again.
#[tokio::test]
async fn the_ladder_starts_at_its_first_rung_after_each_successful_call() {
    const LARGEST: usize = 80_000;
    const STEPS: usize = 150;
    let made = AtomicUsize::new(0);
    let script = Script::answer_with(move |request, _| {
        if request.body.len() > LARGEST {
            return overflow(request.body.len());
        }
        if asks_for_summary(request) {
            return Reply::anthropic().text("Much was echoed.").usage(0, 0).into();
        }
        let step = made.fetch_add(1, Ordering::SeqCst);
        if step == STEPS {
            return Reply::anthropic().text("Done.").usage(0, 0).into();
        }
        let text = format!("{step} {}", "word ".repeat(320));
        let id = format!("call_{step}");
        Reply::anthropic().tool_call(&id, "echo", json!({ "text": text })).usage(0, 0).into()
    })
    .keep_last_bodies(4);
    let mut bench = Bench::new(FORMAT, script).await;
    bench.config.agent.max_iterations = 200.into();

    assert_eq!(bench.run("go").await.unwrap().reply, "Done.");
    let compactions = rows_of_type(&bench, "compaction").len();
    assert!(compactions > 5, "{compactions} compactions");
}
