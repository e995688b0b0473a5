//! What every run reports, however it ends: its session and run, one begin, one end, and the texts that the model reads.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Bench, EchoTool, run_agent};
use myclaw_session::{LockWait, SessionKey, SessionStore};
use myclaw_testkit::{Reply, Script, Step, WireFormat};
use serde_json::{Value, json};

/// The events so far, as JSON.
fn events(bench: &Bench) -> Vec<Value> {
    bench.events.lock().unwrap().iter().map(|event| json!(event)).collect()
}

/// Checks the frame of the only run and gives its last event without session and run.
fn only_end(bench: &Bench) -> Value {
    let events = events(bench);
    assert_eq!((&events[0]["type"], &events[0]["work"]), (&json!("run_start"), &json!("turn")));
    for kind in ["run_start", "run_end"] {
        assert_eq!(bench.events_named(kind).len(), 1, "{kind}: {events:?}");
    }
    let key = SessionKey::for_cli("main", "test");
    let run = events[0]["run"].as_str().unwrap();
    assert_eq!((run.len(), run.as_bytes()[14]), (36, b'7'), "a UUID of version 7: {run}");
    assert!(events.iter().all(|event| event["session"] == key.as_str() && event["run"] == run));
    let mut end = events.last().unwrap().clone();
    for field in ["session", "run", "mode"] {
        end.as_object_mut().unwrap().remove(field);
    }
    end
}

async fn bench(script: impl Into<Script>) -> Bench {
    Bench::new(WireFormat::AnthropicMessages, script).await
}

#[tokio::test]
async fn an_answer_a_failure_and_an_abort_end_a_run_once() {
    let answered = bench(Reply::anthropic().text("Hi.")).await;
    answered.run("hi").await.unwrap();
    assert_eq!(only_end(&answered), json!({"type": "run_end", "outcome": "answered"}));

    let body =
        json!({"type": "error", "error": {"type": "not_found_error", "message": "no such model"}});
    let failed = bench(Step::status(404, &[], body.to_string())).await;
    let error = failed.run("hi").await.unwrap_err().to_string();
    let end = only_end(&failed);
    assert_eq!(
        end,
        json!({"type": "run_end", "outcome": "failed", "class": "unknown", "error": error})
    );

    let aborted = bench(Reply::anthropic().text("Hi.")).await;
    let params = aborted.params("hi");
    params.cancel.cancel();
    run_agent(params).await.unwrap_err();
    assert_eq!(only_end(&aborted), json!({"type": "run_end", "outcome": "aborted"}));
}

#[tokio::test]
async fn a_run_that_never_gets_its_session_has_a_begin_and_an_end() {
    let bench = bench(Reply::anthropic().text("Hi.")).await;
    let store = SessionStore::new(bench.home.state_directory().join("sessions"));
    let params = bench.params("hi");
    let _held = store.open(&params.session_key, LockWait::Fail).unwrap();
    let mut params = params;
    params.session_wait = Duration::ZERO;
    run_agent(params).await.unwrap_err();
    let end = only_end(&bench);
    assert_eq!((&end["outcome"], &end["class"]), (&json!("failed"), &json!("session")));
}

#[tokio::test]
async fn a_run_that_its_caller_drops_has_an_end() {
    let bench =
        bench(Reply::anthropic().tool_call("call_1", "echo", json!({"text": "wait"}))).await;
    let params = bench.params("hi");
    {
        let run = run_agent(params);
        tokio::pin!(run);
        while bench.events_named("tool_start").is_empty() {
            tokio::select! {
                biased;
                outcome = &mut run => panic!("the tool waits: {outcome:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    assert_eq!(only_end(&bench), json!({"type": "run_end", "outcome": "aborted"}));
}

#[tokio::test]
async fn the_end_of_a_tool_call_holds_what_the_model_reads() {
    let call = |id| Reply::anthropic().tool_call(id, "echo", json!({"text": "long"}));
    let script = [call("call_1"), call("call_2"), call("call_3"), Reply::anthropic().text("Done.")];
    let bench = bench(script).await;
    let mut params = bench.params("go");
    params.tools = vec![Arc::new(EchoTool::new("echo"))];
    run_agent(params).await.unwrap();
    let request = bench.server.last_request().json().clone();
    let results: Vec<&Value> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["content"].as_array().into_iter().flatten())
        .filter(|block| block["type"] == "tool_result")
        .collect();
    let read = |result: &Value| match &result["content"] {
        Value::String(text) => text.clone(),
        blocks => {
            let texts =
                blocks.as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap());
            texts.collect::<Vec<_>>().join("\n")
        }
    };
    let ends = bench.events_named("tool_end");
    assert_eq!((results.len(), ends.len()), (3, 3));
    for (result, end) in results.into_iter().zip(&ends) {
        assert_eq!(end["text"], read(result));
    }
    assert!(ends[2]["text"].as_str().unwrap().contains("the same result 3 times"));
}
