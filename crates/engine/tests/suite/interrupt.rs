//! Messages that stop the active run. Their sender reaches it only through the session's inbox.

use std::sync::Arc;

use crate::common::{Bench, engine};
use myclaw_config::{DeliveryMode, QueueConfig, QueueMode};
use myclaw_engine::{Arrival, RunError, RunParams, SessionInbox};
use myclaw_llm::ContentBlock;
use myclaw_session::QueuedKind;
use myclaw_testkit::{Reply, WireFormat, validate_pairing};
use serde_json::json;

const FORMAT: WireFormat = WireFormat::AnthropicMessages;

fn interrupt() -> QueueConfig {
    QueueConfig { mode: QueueMode::Interrupt, ..QueueConfig::default() }
}

/// The inbox as another process has it.
fn stranger(bench: &Bench) -> SessionInbox {
    let params = bench.params("");
    SessionInbox::new(params.stores.sessions, params.session_key, bench.clock.clone())
}

/// Runs `go`, and interrupts it from outside as soon as an event of this name was seen.
async fn run_and_interrupt(bench: &Bench, event_name: &'static str, words: &[&str]) -> RunError {
    let params = bench.params("go");
    let caller = params.cancel.clone();
    let engine = engine();
    let (outcome, ()) = tokio::join!(engine.run(params), async {
        // A run that ends before its request arrives would leave the answer to the next one.
        while bench.events_named(event_name).is_empty() || bench.server.requests().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        let (inbox, handle) = (stranger(bench), tokio::runtime::Handle::current());
        let arrive = || {
            for word in words {
                let content = [ContentBlock::text(*word)];
                let arrival = handle.block_on(inbox.arrive(&content, &interrupt())).unwrap();
                assert!(matches!(arrival, Arrival::Interrupting { .. }), "{arrival:?}");
            }
        };
        // This thread waits, so the run cannot end between two messages.
        std::thread::scope(|scope| scope.spawn(arrive).join()).unwrap();
    });
    assert!(!caller.is_cancelled(), "an interrupt does not fire the caller's token");
    outcome.unwrap_err()
}

fn go_on(bench: &Bench) -> RunParams {
    RunParams { user_message: Vec::new(), ..bench.params("") }
}

#[tokio::test]
async fn a_running_tool_is_stopped_and_the_next_run_answers() {
    let bench = Bench::new(
        FORMAT,
        [
            Reply::anthropic().tool_call("call_a", "echo", json!({"text": "wait"})).tool_call(
                "call_b",
                "echo",
                json!({"text": "two"}),
            ),
            Reply::anthropic().text("Stopped."),
        ],
    )
    .await;
    let error = run_and_interrupt(&bench, "tool_start", &["stop that"]).await;
    assert!(matches!(error, RunError::Aborted), "{error}");
    let notices = bench.events_named("notice");
    assert_eq!(notices[0]["message"], "a message interrupted this run; the next one answers it");
    let waiting = stranger(&bench).pending().await.unwrap();
    assert_eq!((waiting.len(), waiting[0].kind), (1, QueuedKind::Interrupt));
    assert_eq!(bench.server.requests().len(), 1);

    let result = engine().run(go_on(&bench)).await.unwrap();

    assert_eq!(result.reply, "Stopped.");
    let said: Vec<_> = bench.rows().iter().map(|row| row["role"].clone()).collect();
    assert_eq!(said, ["user", "assistant", "tool", "tool", "user", "assistant"]);
    assert_eq!(bench.rows()[4]["content"], "stop that");
    assert!(stranger(&bench).pending().await.unwrap().is_empty());
    validate_pairing(&bench.server.last_request()).unwrap();
}

#[tokio::test]
async fn a_model_call_is_stopped() {
    let stalls = Reply::anthropic().text("for ever").step().stall_after(120);
    let bench = Bench::new(FORMAT, [stalls, Reply::anthropic().text("Here.").step()]).await;
    let error = run_and_interrupt(&bench, "llm_start", &["here"]).await;
    assert!(matches!(error, RunError::Aborted), "{error}");
    assert_eq!(engine().run(go_on(&bench)).await.unwrap().reply, "Here.");
}

#[tokio::test]
async fn several_interrupts_stop_one_run_and_the_next_answers_all_of_them() {
    let stalls = Reply::anthropic().text("for ever").step().stall_after(120);
    let steps =
        [stalls, Reply::anthropic().text("A.").step(), Reply::anthropic().text("B.").step()];
    let mut bench = Bench::new(FORMAT, steps).await;
    bench.config.agents.defaults.steering_mode = DeliveryMode::OneAtATime;
    run_and_interrupt(&bench, "llm_start", &["one", "two"]).await;
    let result = engine().run(go_on(&bench)).await.unwrap();
    assert_eq!((result.reply.as_str(), result.iterations), ("B.", 2), "it does not stop itself");
    bench.server.assert_finished();
}

#[tokio::test]
async fn an_interrupt_between_two_tools_ends_the_run() {
    let bench = Bench::new(
        FORMAT,
        [
            Reply::anthropic().tool_call("call_a", "echo", json!({"text": "one"})).tool_call(
                "call_b",
                "echo",
                json!({"text": "two"}),
            ),
            Reply::anthropic().text("Stopped."),
        ],
    )
    .await;
    let inbox = stranger(&bench);
    let mut params = bench.params("go");
    let record = params.on_event.take().unwrap();
    params.on_event = Some(Arc::new(move |event| {
        let is_end = json!(event)["type"] == "tool_end";
        record(event);
        if is_end {
            let (inbox, handle) = (inbox.clone(), tokio::runtime::Handle::current());
            std::thread::scope(|scope| {
                let arrive = move || {
                    handle.block_on(inbox.arrive(&[ContentBlock::text("stop")], &interrupt()))
                };
                scope.spawn(arrive).join().unwrap().unwrap();
            });
        }
    }));
    let error = engine().run(params).await.unwrap_err();
    assert!(matches!(error, RunError::Aborted), "{error}");
    assert_eq!(bench.events_named("tool_start").len(), 1, "the second call is not made");
    assert_eq!(bench.server.requests().len(), 1, "this run does not answer");
    assert_eq!(engine().run(go_on(&bench)).await.unwrap().reply, "Stopped.");
}
