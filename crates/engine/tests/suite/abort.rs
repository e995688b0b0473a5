//! Aborts and interruptions: whatever is cut off, the session can be loaded and its next request is valid.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::{Bench, EchoTool, run_agent};
use myclaw_engine::RunParams;
use myclaw_testkit::{Reply, Script, Step, WireFormat};
use serde_json::json;

/// Runs and aborts as soon as an event of the given name was seen.
async fn run_and_abort_at(bench: &Bench, event_name: &'static str) -> myclaw_engine::RunError {
    let mut params = bench.params("go");
    let (cancel, record) = (params.cancel.clone(), params.on_event.take().unwrap());
    params.on_event = Some(Arc::new(move |event| {
        if json!(event)["type"] == event_name
            && json!(event)["event"]["type"].as_str().is_none_or(|kind| kind == "text_delta")
        {
            cancel.cancel();
        }
        record(event);
    }));
    run_agent(params).await.unwrap_err()
}

#[tokio::test]
async fn an_abort_while_the_model_writes_keeps_what_arrived() {
    for format in WireFormat::ALL {
        let reply = Reply::new(format).text("It was a dark and stormy night.").in_deltas(6);
        let body = reply.stream_body("test-model");
        let third_delta = body.windows(5).position(|window| window == b"ark a").unwrap();
        let bench = Bench::new(format, Step::from(reply).stall_after(third_delta)).await;

        let error = run_and_abort_at(&bench, "llm_stream").await;

        assert_eq!(error.class(), "aborted");
        bench.server.wait_for_closed_connections(1).await;
        let rows = bench.rows();
        assert_eq!(rows[1]["meta"]["stopReason"], "aborted");
        assert!(!rows[1]["content"].as_str().unwrap().is_empty());
        bench.server.push(Reply::new(format).text("ok"));
        assert_eq!(bench.run("again").await.unwrap().reply, "ok");
    }
}

#[tokio::test]
async fn an_abort_while_a_tool_runs_gives_every_call_a_result() {
    for format in WireFormat::ALL {
        let calls = Reply::new(format)
            .tool_call("call_a", "echo", json!({"text": "wait"}))
            .tool_call("call_b", "echo", json!({"text": "never"}));
        let bench = Bench::new(format, calls).await;

        let error = run_and_abort_at(&bench, "tool_start").await;

        assert_eq!(error.class(), "aborted");
        let rows = bench.rows();
        assert_eq!(rows[2]["content"], "half done\n\nAborted by the user before it finished.");
        assert_eq!(rows[3]["content"], "Not run: the user aborted before this call started.");
        bench.server.push(Reply::new(format).text("ok"));
        assert_eq!(bench.run("again").await.unwrap().reply, "ok");
    }
}

#[tokio::test]
async fn an_abort_before_the_first_call_sends_nothing() {
    let bench = Bench::new(WireFormat::ALL[0], Script::new()).await;
    let params = bench.params("go");
    params.cancel.cancel();

    let error = run_agent(params).await.unwrap_err();

    assert_eq!((error.class(), bench.server.requests().len()), ("aborted", 0));
    assert_eq!(bench.rows().len(), 1);
}

#[tokio::test]
async fn calls_that_a_killed_run_left_open_get_their_result_once() {
    for format in WireFormat::ALL {
        let calls = Reply::new(format)
            .tool_call("call_a", "echo", json!({"text": "one"}))
            .tool_call("call_b", "echo", json!({"text": "two"}));
        let bench = Bench::new(format, [calls, Reply::new(format).text("ok")]).await;
        bench.run("go").await.unwrap();
        // What a kill between the two results leaves: the header, the user message, the calls, one result.
        let path = bench.home.transcripts().remove(0);
        let text = std::fs::read_to_string(&path).unwrap();
        let cut: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, cut).unwrap();

        for turn in 0..2 {
            bench.server.push(Reply::new(format).text("on we go"));
            let echo = Arc::new(EchoTool::new("echo"));
            let runs = Arc::clone(&echo.runs);
            run_agent(RunParams { tools: vec![echo], ..bench.params("again") }).await.unwrap();
            assert_eq!(runs.load(Ordering::SeqCst), 0, "turn {turn}: nothing runs twice");
        }

        let interrupted: Vec<_> = bench
            .rows()
            .into_iter()
            .filter(|row| row["content"] == "[Tool result missing — session was interrupted]")
            .collect();
        assert_eq!(interrupted.len(), 1);
        assert_eq!(interrupted[0]["toolCallId"], "call_b");
        assert_eq!(interrupted[0]["meta"]["isError"], true);
        assert!(bench.server.last_request().body_text().contains("session was interrupted"));
    }
}
