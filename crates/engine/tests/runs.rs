//! What heavy use found in runs: messages and tasks that got lost, calls that were not repeated, and limits.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Bench, EchoTool, asks_for_summary, engine, run_agent};
use futures_util::future::BoxFuture;
use myclaw_config::ContextPruning;
use myclaw_engine::{Clock, RunParams};
use myclaw_session::{EntryId, Inbox, QueuedKind, QueuedMessage, SessionStore};
use myclaw_testkit::{Reply, Script, WireFormat};
use serde_json::{Value, json};

const FORMAT: WireFormat = WireFormat::AnthropicMessages;

/// Puts an interrupt into the inbox when it is first looked at after the answer.
struct InterruptingClock {
    has_answered: Arc<AtomicBool>,
    inbox: Inbox,
}

impl Clock for InterruptingClock {
    fn now_ms(&self) -> u64 {
        if self.has_answered.swap(false, Ordering::SeqCst) {
            let message = QueuedMessage {
                id: EntryId::generate(),
                kind: QueuedKind::Interrupt,
                content: "and now this".to_owned(),
                ts: 1,
                meta: None,
            };
            self.inbox.push(&message).unwrap();
        }
        1_767_225_600_000
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

fn store(bench: &Bench) -> SessionStore {
    SessionStore::new(bench.home.sessions_directory())
}

#[tokio::test]
async fn an_interrupt_while_a_run_ends_is_left_to_the_next_run() {
    let answers = [Reply::anthropic().text("First."), Reply::anthropic().text("Second.")];
    let bench = Bench::new(FORMAT, answers).await;
    let mut params = bench.params("hi");
    let inbox = store(&bench).inbox(&params.session_key);
    let has_answered = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&has_answered);
    params.clock = Arc::new(InterruptingClock { has_answered, inbox: inbox.clone() });
    params.on_event = Some(Arc::new(move |event| {
        if json!(event)["type"] == "llm_end" {
            seen.store(true, Ordering::SeqCst);
        }
    }));
    let engine = engine();
    let cancel = params.cancel.clone();

    assert_eq!(engine.run(params).await.unwrap().reply, "First.");
    // Whoever sent it cancels the run that it interrupts.
    cancel.cancel();
    assert_eq!(inbox.pending().unwrap().len(), 1, "the run that ends does not take it");

    let next = RunParams { user_message: Vec::new(), ..bench.params("") };
    assert_eq!(engine.run(next).await.unwrap().reply, "Second.");
}

/// Calls the tool `steps` times with much text, then answers.
fn long_chain(steps: usize) -> Script {
    let made = std::sync::atomic::AtomicUsize::new(0);
    Script::answer_with(move |request, _| {
        if asks_for_summary(request) {
            return Reply::anthropic().text("Much was echoed.").into();
        }
        let step = made.fetch_add(1, Ordering::SeqCst);
        if step == steps {
            return Reply::anthropic().text("Done.").into();
        }
        let text = format!("{step} {}", "word ".repeat(800));
        Reply::anthropic()
            .tool_call(format!("call_{step}"), "echo", json!({ "text": text }))
            .usage(request.body.len() as u64 / 4, 1)
            .into()
    })
}

#[tokio::test]
async fn the_task_outlives_every_compaction_of_its_turn_and_these_are_rare() {
    const TASK: &str = "Count the herons of lake Lucerne";
    let mut bench = Bench::new(FORMAT, long_chain(40)).await;
    bench.context_window = 30_000;
    bench.config.agent.max_iterations = 100.into();
    assert_eq!(bench.run(TASK).await.unwrap().reply, "Done.");

    let requests = bench.server.requests();
    let lost = requests.iter().filter(|request| !asks_for_summary(request));
    assert!(lost.clone().all(|request| request.body_text().contains(TASK)), "{}", lost.count());
    let compactions = bench.events_named("compaction").len();
    assert!((2..=8).contains(&compactions), "{compactions} compactions in 40 steps");
}

fn breaks_off(reply: Reply) -> Reply {
    reply.fails_with("overloaded_error", "Overloaded")
}

#[tokio::test]
async fn a_stream_that_breaks_off_before_any_text_is_asked_for_again() {
    let thinking = || Reply::anthropic().thinking("Hm.", "c2lnbmF0dXJl");
    let calling = Reply::anthropic().tool_call("call_a", "echo", json!({"text": "one"}));
    for begun in [thinking(), thinking().text(" "), calling] {
        let script = [breaks_off(begun), Reply::anthropic().text("Here.")];
        let bench = Bench::new(FORMAT, script).await;
        assert_eq!(bench.run("hi").await.unwrap().reply, "Here.");
        assert_eq!(bench.rows().len(), 2, "nothing of the first attempt is in the session");
    }
}

#[tokio::test]
async fn text_that_nobody_has_seen_does_not_forbid_a_second_attempt() {
    let script =
        || [breaks_off(Reply::anthropic().text("Half")), Reply::anthropic().text("Whole.")];
    let unseen = Bench::new(FORMAT, script()).await;
    let params = RunParams { on_event: None, ..unseen.params("hi") };
    assert_eq!(run_agent(params).await.unwrap().reply, "Whole.");

    let seen = Bench::new(FORMAT, script()).await;
    seen.run("hi").await.unwrap_err();
    assert_eq!(seen.rows()[1]["content"], "Half");
}

#[tokio::test]
async fn aggressive_pruning_leaves_the_last_results_when_the_user_goes_on() {
    let call = |id: &str, text: &str| {
        let text = format!("{text} {}", "word ".repeat(50));
        Reply::anthropic().tool_call(id, "echo", json!({ "text": text }))
    };
    let done = || Reply::anthropic().text("Done.");
    let script = [call("call_a", "first"), call("call_b", "second"), done(), done()];
    let mut bench = Bench::new(FORMAT, script).await;
    bench.config.agents.defaults.context_pruning = ContextPruning::Aggressive;
    bench.run("go").await.unwrap();
    bench.run("go on").await.unwrap();
    let request = bench.server.last_request().body_text();
    assert!(request.contains("echo: second") && !request.contains("echo: first"), "{request}");
}

#[tokio::test]
async fn one_message_makes_a_hundred_calls_and_no_more() {
    let calls = (0..103).fold(Reply::anthropic(), |reply, number| {
        reply.tool_call(format!("call_{number}"), "echo", json!({"text": number.to_string()}))
    });
    let bench = Bench::new(FORMAT, [calls, Reply::anthropic().text("Done.")]).await;
    let tool = EchoTool::new("echo");
    let runs = Arc::clone(&tool.runs);
    let params = RunParams { tools: vec![Arc::new(tool)], ..bench.params("go") };
    run_agent(params).await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 100);
    let rows = bench.rows();
    assert_eq!(rows[101]["content"], "echo: 99");
    let refusal = rows[102]["content"].as_str().unwrap();
    assert!(
        refusal.contains("one message may make 100 tool calls, and this one made 103"),
        "{refusal}"
    );
}

#[tokio::test]
async fn without_retries_there_is_one_request() {
    let mut bench = Bench::new(FORMAT, Script::repeat(breaks_off(Reply::anthropic()))).await;
    bench.profiles = vec!["key-one", "key-two"];
    bench.config.agent.max_retries = 0;
    bench.run("hi").await.unwrap_err();
    assert_eq!(bench.server.requests().len(), 1);
}

#[tokio::test]
async fn a_closing_summary_may_call_no_tool_and_an_empty_one_is_reported() {
    let call = |id| Reply::anthropic().tool_call(id, "echo", json!({"text": "one"}));
    let mut bench = Bench::new(FORMAT, [call("call_a"), call("call_b")]).await;
    bench.config.agent.max_iterations = 1.into();
    bench.run("go").await.unwrap();
    assert_eq!(bench.server.last_request().json()["tool_choice"], json!({"type": "none"}));
    let notices = bench.events_named("notice");
    assert!(notices.iter().any(|notice| notice["code"] == "no_closing_summary"), "{notices:?}");
}

#[tokio::test]
async fn a_blank_first_message_does_not_leave_the_answer_first() {
    let answers = [Reply::anthropic().text("Yes?"), Reply::anthropic().text("Hello.")];
    let bench = Bench::new(FORMAT, answers).await;
    bench.run(" ").await.unwrap();
    bench.run("hi").await.unwrap();
    let roles: Vec<Value> = bench
        .server
        .last_request()
        .messages()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}
