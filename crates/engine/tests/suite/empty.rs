//! Answers without text: empty ones, those that are cut before any text, and failed attempts of which nothing was shown.
//! Their cost counts.

use std::sync::Arc;

use crate::common::{Bench, run_agent};
use myclaw_engine::RunError;
use myclaw_llm::StopReason;
use myclaw_testkit::{Reply, Script, Step, Stop, WireFormat};
use serde_json::{Value, json};

/// Tokens of the day, as they are on disk.
fn day_tokens(bench: &Bench) -> u64 {
    let path = bench.home.state_directory().join("usage.json");
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["tokens"].as_u64().unwrap()
}

fn empty_answers(format: WireFormat) -> Vec<(&'static str, Reply)> {
    let mut answers = vec![
        ("nothing", Reply::new(format)),
        ("blanks", Reply::new(format).text(" \n\t ")),
        ("thoughts", Reply::new(format).thinking("Hm.", "")),
        ("both", Reply::new(format).thinking("Hm.", "").text("\n\n")),
    ];
    // The others cannot say that tools are to run without saying which.
    if matches!(
        format,
        WireFormat::AnthropicMessages | WireFormat::OpenAiCompletions | WireFormat::BedrockConverse
    ) {
        answers.push(("no tools", Reply::new(format).thinking("Hm.", "").stop(Stop::ToolUse)));
    }
    answers
}

#[tokio::test]
async fn an_empty_answer_is_requested_once_more_and_the_cost_of_both_counts() {
    for format in WireFormat::ALL {
        for (name, empty) in empty_answers(format) {
            let script = Script::new()
                .then(empty.usage(10, 1))
                .then(Reply::new(format).text("Here.").usage(20, 2));
            let bench = Bench::new(format, script).await;
            let result = bench.run("go").await.unwrap();
            assert_eq!(
                (result.reply.as_str(), result.iterations),
                ("Here.", 1),
                "{format:?} {name}"
            );
            assert_eq!((result.usage.input, result.usage.output), (30, 3), "{format:?} {name}");
            assert_eq!(day_tokens(&bench), 33, "{format:?} {name}");
            assert_eq!(bench.input_of_events(), [10, 20], "{format:?} {name}");
            assert_eq!(bench.rows().len(), 2, "the empty answer leaves nothing: {format:?} {name}");
            let notices = bench.events_named("notice");
            assert!(json!(notices).to_string().contains("asked once more"), "{notices:?}");
        }
    }
}

#[tokio::test]
async fn a_second_empty_answer_is_the_answer() {
    for format in WireFormat::ALL {
        for (name, empty) in empty_answers(format) {
            let bench = Bench::new(format, Script::repeat(empty.usage(10, 1))).await;
            let result = bench.run("go").await.unwrap();
            assert_eq!(result.reply.trim(), "", "{format:?} {name}");
            assert_eq!(bench.server.requests().len(), 2, "{format:?} {name}");
            assert_eq!(result.usage.total_tokens, 22, "{format:?} {name}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_before_it_says_anything_is_reported_as_such() {
    for format in WireFormat::ALL {
        let cut = Reply::new(format).thinking("Hm, let me see", "").stop(Stop::Length).usage(10, 5);
        let bench = Bench::new(format, Script::repeat(cut)).await;
        let error = bench.run("go").await.unwrap_err();
        let RunError::Model(error) = error else { panic!("{error}") };
        let words = "cut at the output limit of 8192 tokens before it said anything";
        assert!(error.message.contains(words), "{format:?}: {error}");
        assert_eq!(bench.server.requests().len(), 1, "{format:?}: the next would be cut alike");
        assert_eq!(day_tokens(&bench), 15, "{format:?}");
        let rows = bench.rows();
        assert_eq!((&rows[0]["content"], rows.len()), (&json!("go"), 2), "{format:?}");
        // What was thought does not stand in the way of the next message.
        bench.server.push(Reply::new(format).text("Fine."));
        assert_eq!(bench.run("again").await.unwrap().reply, "Fine.", "{format:?}");
    }
    for (stop, reason) in [(Stop::Length, StopReason::Length), (Stop::Refusal, StopReason::Refusal)]
    {
        let words = Reply::anthropic().text("Half of").stop(stop);
        let bench = Bench::new(WireFormat::AnthropicMessages, words).await;
        let result = bench.run("go").await.unwrap();
        assert_eq!(result.reply, "Half of", "words are an answer");
        assert_eq!(result.stop_reason, Some(reason));
        let notice = bench.events_named("notice")[0]["message"].as_str().unwrap().to_owned();
        assert!(notice.starts_with("the answer is not whole"), "{notice}");
    }
}

/// This format reports at the start what the request cost.
#[tokio::test]
async fn the_cost_of_a_failed_attempt_counts() {
    let script = Script::new()
        .then(Reply::anthropic().usage(100, 0).fails_with("overloaded_error", "Overloaded"))
        .then(Reply::anthropic().text("Here.").usage(20, 2));
    let bench = Bench::new(WireFormat::AnthropicMessages, script).await;
    let result = bench.run("go").await.unwrap();
    assert_eq!(
        (result.usage.input, result.usage.output),
        (120, 3),
        "the failed one began to answer"
    );
    assert_eq!(result.usage.cost.total, (120.0 + 3.0 * 2.0) / 1e6);
    assert_eq!((day_tokens(&bench), result.last_call_usage.total_tokens), (123, 22));

    // And if the run fails, the day has it all the same.
    let failing = Reply::anthropic().usage(100, 0).fails_with("overloaded_error", "Overloaded");
    let mut bench = Bench::new(WireFormat::AnthropicMessages, Script::repeat(failing)).await;
    bench.config.agent.max_retries = 1;
    bench.run("go").await.unwrap_err();
    assert_eq!(day_tokens(&bench), 202);
}

#[tokio::test]
async fn the_cost_of_an_aborted_attempt_counts() {
    let reply = Reply::anthropic().text("It was a dark night.").usage(100, 9);
    let body = reply.stream_body("test-model");
    let first_block = body.windows(19).position(|window| window == b"content_block_start").unwrap();
    let bench =
        Bench::new(WireFormat::AnthropicMessages, Step::from(reply).stall_after(first_block)).await;
    let mut params = bench.params("go");
    let (cancel, record) = (params.cancel.clone(), params.on_event.take().unwrap());
    params.on_event = Some(Arc::new(move |event| {
        if json!(event)["type"] == "llm_stream" {
            cancel.cancel();
        }
        record(event);
    }));
    run_agent(params).await.unwrap_err();
    assert_eq!(day_tokens(&bench), 101);
    assert_eq!(bench.rows().len(), 1, "nothing was said");
}
