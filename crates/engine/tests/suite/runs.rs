//! Defects that heavy use showed, each with a test: lost messages and tasks, calls that were not repeated, limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Bench, EchoTool, asks_for_summary, engine, run_agent};
use futures_util::future::BoxFuture;
use myclaw_config::ContextPruning;
use myclaw_engine::{Clock, RunParams};
use myclaw_session::{
    Entry, EntryId, FileInbox, Inbox, Keeper, LockWait, QueuedKind, QueuedMessage, Role,
    SessionKey, SessionStore, TranscriptMessage,
};
use myclaw_testkit::{RecordedRequest, Reply, Script, Step, WireFormat};
use serde_json::{Value, json};

const FORMAT: WireFormat = WireFormat::AnthropicMessages;

/// Puts an interrupt into the inbox when it is first looked at after the answer.
struct InterruptingClock {
    has_answered: Arc<AtomicBool>,
    inbox: FileInbox,
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
                keeper: Keeper::Inbox,
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
    // The sender of the interrupt cancels the run.
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
async fn a_stream_that_breaks_off_before_any_text_is_requested_again() {
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
async fn text_that_was_not_shown_permits_a_second_attempt() {
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

fn too_long() -> Step {
    let error = json!({"type": "invalid_request_error", "message": "prompt is too long"});
    Step::status(400, &[], json!({"type": "error", "error": error}).to_string())
}

/// A group chat with so many turns, as an earlier run left it.
fn write_turns(bench: &Bench, key: &SessionKey, turns: usize) {
    let mut log = store(bench).open(key, LockWait::Fail).unwrap();
    for turn in 0..turns {
        let rows =
            [(Role::User, format!("question {turn}.")), (Role::Assistant, "Yes.".to_owned())];
        let entry = |(role, text)| Entry::Message(TranscriptMessage::new(role, text, 1));
        log.append(&rows.map(entry)).unwrap();
    }
}

/// A message in a group chat whose history has a limit; 0 for none.
async fn run_in_group(bench: &mut Bench, limit: usize) {
    bench.config.channels.telegram =
        Some(serde_json::from_value(json!({"botToken": "t", "historyLimit": limit})).unwrap());
    let mut params = bench.params("hi");
    params.rules = bench.configured(&group(), Vec::new()).rules;
    params.session_key = group();
    run_agent(params).await.unwrap();
}

fn group() -> SessionKey {
    "agent:main:channel:telegram:account:default:peer:group:g1".parse().unwrap()
}

/// At most as many messages as the limit allows are sent, from a message of the user on, and requests share their beginning.
#[tokio::test]
async fn the_history_limit_is_the_number_of_messages_that_are_sent() {
    let mut bench = Bench::new(FORMAT, Script::repeat(Reply::anthropic().text("Yes."))).await;
    write_turns(&bench, &group(), 40);
    for _ in 0..12 {
        run_in_group(&mut bench, 50).await;
    }
    let requests = bench.server.requests();
    let lengths: Vec<usize> = requests.iter().map(|request| request.messages().len()).collect();
    // From a user message to the new one: odd numbers. The cut moves when the limit is reached, not with each message.
    assert_eq!(lengths, [41, 43, 45, 47, 49, 41, 43, 45, 47, 49, 41, 43]);
    assert!(requests.iter().all(|request| request.messages()[0]["role"] == "user"));
    for pair in
        requests.windows(2).filter(|pair| pair[0].messages().len() < pair[1].messages().len())
    {
        let [before, after] = [&pair[0], &pair[1]].map(|request| plain(request));
        assert!(after.starts_with(&before), "the provider has read {before:?}, not {after:?}");
    }
}

/// The messages of a request, without the marks that say how much of it a provider shall keep.
fn plain(request: &RecordedRequest) -> Vec<Value> {
    let mut messages = request.messages().to_vec();
    for block in messages.iter_mut().filter_map(|one| one["content"].as_array_mut()).flatten() {
        block.as_object_mut().map(|block| block.remove("cache_control"));
    }
    messages
}

#[tokio::test]
async fn without_the_history_limit_everything_is_sent_again() {
    let mut bench = Bench::new(FORMAT, Script::repeat(Reply::anthropic().text("Yes."))).await;
    write_turns(&bench, &group(), 20);
    run_in_group(&mut bench, 10).await;
    assert_eq!(bench.server.last_request().messages().len(), 9);
    run_in_group(&mut bench, 0).await;
    assert_eq!(bench.server.last_request().messages().len(), 43);
}

#[tokio::test]
async fn without_pruning_old_results_are_sent_again() {
    let call = |id: &str, text: &str| {
        let text = format!("{text} {}", "word ".repeat(50));
        Reply::anthropic().tool_call(id, "echo", json!({ "text": text }))
    };
    let done = || Reply::anthropic().text("Done.");
    let script = [call("call_a", "first"), call("call_b", "second"), done(), done(), done()];
    let mut bench = Bench::new(FORMAT, script).await;
    for (mode, is_sent) in [(ContextPruning::Aggressive, false), (ContextPruning::Off, true)] {
        bench.config.agents.defaults.context_pruning = mode;
        bench.run("go").await.unwrap();
        let request = bench.server.last_request().body_text();
        assert_eq!(request.contains("echo: first"), is_sent, "{mode:?}: {request}");
    }
}

#[tokio::test]
async fn a_refused_size_is_remembered_by_later_runs() {
    const LARGEST: usize = 60_000;
    let script = Script::answer_with(move |request, _| match request.body.len() {
        LARGEST.. => too_long(),
        _ if asks_for_summary(request) => Reply::anthropic().text("Much.").usage(0, 0).into(),
        _ => Reply::anthropic().text("word ".repeat(1_000)).usage(0, 0).into(),
    });
    let bench = Bench::new(FORMAT, script).await;
    for turn in 0..48 {
        bench.run(&format!("question {turn}.")).await.unwrap();
    }
    let requests = bench.server.requests();
    let refused = requests.iter().filter(|request| request.body.len() >= LARGEST).count();
    assert_eq!(refused, 1, "of {} requests", requests.len());
}

#[tokio::test]
async fn rejected_signatures_are_left_out_of_a_second_request() {
    const SIGNATURE: &str = "c2lnbmF0dXJl";
    let script = Script::answer_with(|request, number| match number {
        0 => Reply::anthropic().thinking("Hm.", SIGNATURE).text("First.").into(),
        _ if request.body_text().contains(SIGNATURE) => rejected(),
        _ => Reply::anthropic().text("Second.").into(),
    });
    let bench = Bench::new(FORMAT, script).await;
    bench.run("hi").await.unwrap();
    assert_eq!(bench.run("go on").await.unwrap().reply, "Second.");
    assert_eq!(bench.server.requests().len(), 3, "one was rejected");
    let request = bench.server.last_request().body_text();
    assert!(request.contains("First.") && !request.contains("Hm."), "{request}");
    let notices = bench.events_named("notice");
    assert!(notices.iter().any(|notice| notice["code"] == "thinking_rejected"), "{notices:?}");
    assert!(json!(bench.rows()).to_string().contains(SIGNATURE), "the log keeps it");

    assert_eq!(bench.run("and on").await.unwrap().reply, "Second.");
    assert_eq!(bench.server.requests().len(), 4, "a later run knows");
}

/// The model may reject the thoughts of a later message too; a second rejection of the same ones ends the run.
#[tokio::test]
async fn signatures_may_be_rejected_again() {
    let signed =
        |number: usize| Reply::anthropic().thinking("Hm.", format!("sign{number}")).text("So.");
    let script = Script::answer_with(move |request, number| match number {
        5.. => rejected(),
        _ if request.body_text().contains("sign") => rejected(),
        _ => signed(number).into(),
    });
    let bench = Bench::new(FORMAT, script).await;
    for _ in 0..3 {
        assert_eq!(bench.run("hi").await.unwrap().reply, "So.");
    }
    assert_eq!(bench.server.requests().len(), 5, "each new answer is rejected once");
    assert_eq!(bench.run("hi").await.unwrap_err().class(), "unknown");
    assert_eq!(bench.server.requests().len(), 7);
}

/// Hosts that check each field answer 422: Mistral, and those that are built with FastAPI.
#[tokio::test]
async fn a_host_that_refuses_a_field_of_thinking_is_asked_once_more_without_it() {
    for (status, message) in [
        (422, "messages.1.assistant.reasoning: Extra inputs are not permitted"),
        (422, "body -> messages -> 1 -> reasoning_content: unknown field"),
        (400, "property 'reasoning' is unsupported, messages.1"),
        (422, "Invalid `signature` in `thinking` block"),
    ] {
        let refusal = move || {
            let error = json!({"type": "invalid_request_error", "message": message});
            Step::status(status, &[], json!({"type": "error", "error": error}).to_string())
        };
        let script =
            Script::answer_with(move |request, _| match request.body_text().contains("sign") {
                true => refusal(),
                false => Reply::anthropic().thinking("Hm.", "sign").text("So.").into(),
            });
        let bench = Bench::new(FORMAT, script).await;
        for _ in 0..2 {
            assert_eq!(bench.run("hi").await.unwrap().reply, "So.", "{status} {message}");
        }
        assert_eq!(bench.server.requests().len(), 3, "{status} {message}");
    }
    // Another refusal is no reason to ask again.
    let script = Script::answer_with(|_, number| match number {
        0 => Reply::anthropic().thinking("Hm.", "sign").text("So.").into(),
        _ => Step::status(
            422,
            &[],
            r#"{"error": {"message": "messages.1.content: too many images"}}"#,
        ),
    });
    let bench = Bench::new(FORMAT, script).await;
    assert_eq!(bench.run("hi").await.unwrap().reply, "So.");
    assert!(bench.run("hi").await.is_err());
    assert_eq!(bench.server.requests().len(), 2);
}

/// A refusal of signatures.
fn rejected() -> Step {
    let message = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let error = json!({"type": "invalid_request_error", "message": message});
    Step::status(400, &[], json!({"type": "error", "error": error}).to_string())
}

#[tokio::test]
async fn a_message_of_the_model_that_is_larger_than_the_window_is_cut() {
    let script = Script::answer_with(|request, number| match number {
        0 => Reply::anthropic()
            .text("word ".repeat(60_000))
            .tool_call("call_a", "echo", json!({"text": "one"}))
            .usage(0, 0)
            .into(),
        _ if request.body.len() > 128_000 => too_long(),
        _ => Reply::anthropic().text("Done.").usage(0, 0).into(),
    });
    let mut bench = Bench::new(FORMAT, script).await;
    bench.context_window = 32_000;
    assert_eq!(bench.run("go").await.unwrap().reply, "Done.");
    let request = bench.server.last_request().body_text();
    assert!(request.contains("chars left out") && request.contains("echo: one"), "{request}");
    assert_eq!(bench.rows()[1]["content"].as_str().unwrap().len(), 300_000, "the log keeps it");
}

/// A call may be as large: a whole file to be written, say.
#[tokio::test]
async fn arguments_that_are_larger_than_the_window_are_cut() {
    let script = Script::answer_with(|request, number| match number {
        0 => Reply::anthropic()
            .text("Writing.")
            .tool_call("call_a", "echo", json!({"text": "one", "rest": "word ".repeat(60_000)}))
            .usage(0, 0)
            .into(),
        _ if request.body.len() > 128_000 => too_long(),
        _ => Reply::anthropic().text("Done.").usage(0, 0).into(),
    });
    let mut bench = Bench::new(FORMAT, script).await;
    bench.context_window = 32_000;
    assert_eq!(bench.run("go").await.unwrap().reply, "Done.");
    let request = bench.server.last_request().body_text();
    assert!(request.contains("[truncated") && request.contains("Writing."), "{request}");
    assert!(request.contains(r#""text":"one""#), "what is short stays: {request}");
    assert!(bench.rows()[1].to_string().len() > 300_000, "the log keeps it");
}

#[tokio::test]
async fn an_overflow_without_a_compaction_does_not_claim_one() {
    let bench = Bench::new(FORMAT, Script::repeat(too_long())).await;
    let error = bench.run("hi").await.unwrap_err();
    assert_eq!(error.class(), "context_overflow");
    assert!(bench.events_named("compaction").is_empty());
    assert!(!error.to_string().contains("compacted"), "{error}");
}

#[tokio::test]
async fn the_message_of_a_run_that_does_not_get_its_session_waits_for_the_next() {
    let bench = Bench::new(FORMAT, [Reply::anthropic().text("Here.")]).await;
    let params = RunParams { session_wait: Duration::ZERO, ..bench.params("find the herons") };
    let inbox = store(&bench).inbox(&params.session_key);
    let held = store(&bench).open(&params.session_key, LockWait::Fail).unwrap();
    let error = run_agent(params).await.unwrap_err();
    assert_eq!(error.class(), "session");
    assert!(error.to_string().contains("waits in the session's inbox"), "{error}");
    assert_eq!(inbox.pending().unwrap().len(), 1);
    drop(held);

    let next = RunParams { user_message: Vec::new(), ..bench.params("") };
    assert_eq!(run_agent(next).await.unwrap().reply, "Here.");
    assert!(bench.server.last_request().body_text().contains("find the herons"));
}

#[tokio::test]
async fn a_new_session_is_in_the_index_before_its_first_answer() {
    let answered = Reply::anthropic().text("Said.");
    let stalls = Step::from(Reply::anthropic().text("Never said.")).stall_after(0);
    let bench = Bench::new(FORMAT, Script::new().then(answered).then(stalls)).await;
    // A first session makes the index. A missing index would be made from the logs, with the new session in it.
    let mut earlier = bench.params("hi");
    earlier.session_key = group();
    run_agent(earlier).await.unwrap();
    let params = bench.params("go");
    let (key, cancel) = (params.session_key.clone(), params.cancel.clone());
    let run = tokio::spawn(run_agent(params));
    bench.server.wait_for_requests(2).await;

    let listed = async {
        while store(&bench).index().get(&key).unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let listed = tokio::time::timeout(Duration::from_secs(30), listed).await;

    assert!(listed.is_ok(), "a process that is killed now leaves a session that nobody finds");
    cancel.cancel();
    assert_eq!(run.await.unwrap().unwrap_err().class(), "aborted");
}
