//! Messages to a running turn: each is taken once, at the right place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Bench, run_agent};
use futures_util::future::BoxFuture;
use myclaw_config::{DeliveryMode, DropPolicy, QueueConfig, QueueMode};
use myclaw_engine::{
    AgentStart, Arrival, Hook, HookError, InboxError, RunError, RunParams, RunResult, SessionInbox,
    WhenIdle,
};
use myclaw_llm::ContentBlock;
use myclaw_session::QueuedKind;
use myclaw_testkit::{Reply, Script, WireFormat, validate_pairing};
use serde_json::{Value, json};

const FORMATS: [WireFormat; 2] = [WireFormat::AnthropicMessages, WireFormat::OpenAiCompletions];

fn text(text: &str) -> Vec<ContentBlock> {
    vec![ContentBlock::text(text)]
}

fn inbox(bench: &Bench) -> SessionInbox {
    SessionInbox::of_run(&bench.params(""))
}

/// Runs async work from a callback of the run, which is on the run's own thread, to its end.
fn now<T: Send>(work: impl Future<Output = T> + Send) -> T {
    let handle = tokio::runtime::Handle::current();
    std::thread::scope(|scope| scope.spawn(|| handle.block_on(work)).join().unwrap())
}

/// Runs `go`, and sends `words` as soon as an event of the given name was seen.
async fn run_and_say(
    bench: &Bench,
    event_name: &'static str,
    words: &[(QueuedKind, &'static str)],
) -> Result<RunResult, RunError> {
    let mut params = bench.params("go");
    let inbox = SessionInbox::of_run(&params);
    let record = params.on_event.take().unwrap();
    let words = words.to_vec();
    let seen = AtomicUsize::new(0);
    params.on_event = Some(Arc::new(move |event| {
        let is_it = json!(event)["type"] == event_name;
        record(event);
        if is_it && seen.fetch_add(1, Ordering::SeqCst) == 0 {
            for (kind, said) in &words {
                now(inbox.send(*kind, text(said), WhenIdle::Refuse)).unwrap();
            }
        }
    }));
    run_agent(params).await
}

/// Role and text of each row; a skipped call is `skipped`.
fn said(bench: &Bench) -> Vec<(String, String)> {
    let text = |row: &Value| match row["content"].as_str().unwrap() {
        text if text.starts_with("Not run: the user said something") => "skipped".to_owned(),
        text => text.to_owned(),
    };
    bench.rows().iter().map(|row| (row["role"].as_str().unwrap().to_owned(), text(row))).collect()
}

fn rows(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
}

fn two_calls(format: WireFormat) -> Reply {
    Reply::new(format).tool_call("call_a", "echo", json!({"text": "one"})).tool_call(
        "call_b",
        "echo",
        json!({"text": "two"}),
    )
}

#[tokio::test]
async fn steering_is_taken_after_the_running_tool_and_the_other_calls_are_skipped() {
    for format in FORMATS {
        let bench =
            Bench::new(format, [two_calls(format), Reply::new(format).text("Right.")]).await;

        let result =
            run_and_say(&bench, "tool_start", &[(QueuedKind::Steer, "not b")]).await.unwrap();

        assert_eq!(result.reply, "Right.");
        assert_eq!(
            said(&bench),
            rows(&[
                ("user", "go"),
                ("assistant", ""),
                ("tool", "echo: one"),
                ("tool", "skipped"),
                ("user", "not b"),
                ("assistant", "Right."),
            ])
        );
        assert_eq!(bench.events_named("tool_skipped")[0]["toolCallId"], "call_b");
        let queued = bench.events_named("queued")[0]["id"].clone();
        assert_eq!(bench.events_named("taken")[0]["ids"], json!([queued]));
        assert_eq!(bench.rows()[4]["meta"]["queuedIds"], json!([queued]));
        assert!(inbox(&bench).pending().await.unwrap().is_empty());
        validate_pairing(&bench.server.last_request()).unwrap();
        bench.server.assert_finished();
    }
}

#[tokio::test]
async fn steering_while_the_model_writes_stands_before_every_call() {
    let format = FORMATS[0];
    let bench = Bench::new(format, [two_calls(format), Reply::new(format).text("Right.")]).await;

    run_and_say(&bench, "llm_stream", &[(QueuedKind::Steer, "do nothing")]).await.unwrap();

    assert_eq!(
        said(&bench)[2..5],
        rows(&[("tool", "skipped"), ("tool", "skipped"), ("user", "do nothing")])
    );
    assert!(bench.events_named("tool_start").is_empty());
}

#[tokio::test]
async fn steering_while_the_last_answer_is_written_goes_on() {
    let format = FORMATS[1];
    let bench =
        Bench::new(format, [Reply::new(format).text("Done."), Reply::new(format).text("More.")])
            .await;

    let result =
        run_and_say(&bench, "llm_stream", &[(QueuedKind::Steer, "and more")]).await.unwrap();

    assert_eq!((result.reply.as_str(), result.iterations), ("More.", 2));
    assert_eq!(
        said(&bench),
        rows(&[
            ("user", "go"),
            ("assistant", "Done."),
            ("user", "and more"),
            ("assistant", "More.")
        ])
    );
}

#[tokio::test]
async fn steering_messages_are_taken_together_or_one_at_a_time() {
    let format = FORMATS[0];
    let words = [
        (QueuedKind::Steer, "s1"),
        (QueuedKind::FollowUp, "f1"),
        (QueuedKind::Steer, "s2"),
        (QueuedKind::FollowUp, "f2"),
    ];
    let answer = || Script::repeat(Reply::new(format).text("ok"));
    let users_between_answers = |bench: &Bench| {
        let rows = said(bench);
        let mut groups: Vec<Vec<String>> = vec![Vec::new()];
        for (role, text) in rows {
            match role.as_str() {
                "user" => groups.last_mut().unwrap().push(text),
                _ => groups.push(Vec::new()),
            }
        }
        groups.pop();
        groups
    };

    let all = Bench::new(format, answer()).await;
    run_and_say(&all, "llm_start", &words).await.unwrap();
    assert_eq!(users_between_answers(&all), [vec!["go"], vec!["s1", "s2"], vec!["f1", "f2"]]);

    let mut one = Bench::new(format, answer()).await;
    one.config.agents.defaults.steering_mode = DeliveryMode::OneAtATime;
    one.config.agents.defaults.follow_up_mode = DeliveryMode::OneAtATime;
    run_and_say(&one, "llm_start", &words).await.unwrap();
    assert_eq!(users_between_answers(&one), [["go"], ["s1"], ["s2"], ["f1"], ["f2"]]);
}

#[tokio::test]
async fn follow_ups_wait_for_the_end_and_begin_the_iterations_anew() {
    let format = FORMATS[0];
    let mut bench = Bench::new(
        format,
        [
            Reply::new(format).tool_call("call_a", "echo", json!({"text": "one"})),
            Reply::new(format).text("First."),
            Reply::new(format).tool_call("call_b", "echo", json!({"text": "two"})),
            Reply::new(format).text("Second."),
        ],
    )
    .await;
    bench.config.agent.max_iterations = 2.into();

    let result =
        run_and_say(&bench, "tool_start", &[(QueuedKind::FollowUp, "then this")]).await.unwrap();

    assert_eq!((result.reply.as_str(), result.iterations, result.bound), ("Second.", 4, None));
    assert_eq!(said(&bench)[3..5], rows(&[("assistant", "First."), ("user", "then this")]));
}

#[tokio::test]
async fn collected_messages_become_one() {
    let format = FORMATS[0];
    let bench = Bench::new(format, Script::repeat(Reply::new(format).text("ok"))).await;

    let words = [(QueuedKind::Collect, "first"), (QueuedKind::Collect, "second")];
    run_and_say(&bench, "llm_start", &words).await.unwrap();

    let rows = bench.rows();
    assert_eq!(rows.len(), 4);
    assert_eq!(
        rows[2]["content"],
        "[These messages arrived while you were busy. Answer them together.]\nMessage 1 of 2:\nfirst\nMessage 2 of 2:\nsecond"
    );
    assert_eq!(rows[2]["meta"]["queuedIds"].as_array().unwrap().len(), 2);
    assert!(!bench.clock.sleeps.lock().unwrap().is_empty(), "the run waited for a quiet period");
}

#[tokio::test]
async fn a_message_for_an_idle_session_is_refused_or_kept() {
    let format = FORMATS[0];
    let bench = Bench::new(format, Script::repeat(Reply::new(format).text("ok"))).await;
    let inbox = inbox(&bench);

    let error = inbox.steer(text("hello?")).await.unwrap_err();
    assert!(matches!(error, InboxError::NotRunning { .. }), "{error}");
    assert!(error.to_string().contains("send the message as a new one"), "{error}");
    assert!(matches!(inbox.follow_up(text(" ")).await, Err(InboxError::Empty)));
    assert_eq!(
        inbox.arrive(&text("hello?"), &QueueConfig::default()).await.unwrap(),
        Arrival::Idle
    );
    assert!(inbox.pending().await.unwrap().is_empty());
    let go_on = RunParams { user_message: Vec::new(), ..bench.params("") };
    assert_eq!(run_agent(go_on.clone()).await.unwrap_err().class(), "nothing_to_do");

    let kept = inbox.send(QueuedKind::FollowUp, text("later"), WhenIdle::Keep).await.unwrap();
    assert_eq!(inbox.pending().await.unwrap()[0].id, kept);
    run_agent(go_on).await.unwrap();
    assert_eq!(said(&bench), rows(&[("user", "later"), ("assistant", "ok")]));
    assert!(!inbox.remove(kept).await.unwrap(), "what was taken cannot be taken back");
}

#[tokio::test]
async fn waiting_messages_survive_an_abort_and_precede_the_next_message() {
    let format = FORMATS[0];
    let calls = Reply::new(format).tool_call("call_a", "echo", json!({"text": "wait"}));
    let bench = Bench::new(format, calls).await;
    let params = bench.params("go");
    let aborting = SessionInbox::of_run(&params);
    let words = [(QueuedKind::FollowUp, "later"), (QueuedKind::Steer, "stop that")];
    let run = run_agent(params);
    let say = async {
        while bench.events_named("tool_start").is_empty() {
            tokio::task::yield_now().await;
        }
        for (kind, words) in words {
            aborting.send(kind, text(words), WhenIdle::Refuse).await.unwrap();
        }
        aborting.abort();
    };
    assert_eq!(tokio::join!(run, say).0.unwrap_err().class(), "aborted");
    assert_eq!(inbox(&bench).pending().await.unwrap().len(), 2);

    for _ in 0..2 {
        bench.server.push(Reply::new(format).text("ok"));
    }
    bench.run("hello").await.unwrap();

    let users: Vec<_> =
        said(&bench).into_iter().filter(|(role, _)| role == "user").map(|(_, text)| text).collect();
    assert_eq!(users, ["go", "stop that", "hello", "later"]);
    let notices = json!(bench.events_named("notice")).to_string();
    assert!(notices.contains("2 earlier messages still wait"), "{notices}");
}

#[tokio::test]
async fn a_crash_between_the_log_and_the_inbox_repeats_nothing() {
    let format = FORMATS[0];
    let bench = Bench::new(format, Script::repeat(Reply::new(format).text("ok"))).await;
    let inbox = inbox(&bench);
    for words in ["one", "two"] {
        inbox.send(QueuedKind::Steer, text(words), WhenIdle::Keep).await.unwrap();
    }
    let path = bench.home.transcripts().pop();
    assert_eq!(path, None, "a waiting message alone makes no log");
    let inbox_path = std::fs::read_dir(bench.home.state_directory().join("sessions"))
        .unwrap()
        .map(|found| found.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "inbox"))
        .unwrap();
    let before = std::fs::read(&inbox_path).unwrap();
    let go_on = RunParams { user_message: Vec::new(), ..bench.params("") };
    run_agent(go_on.clone()).await.unwrap();
    // What a kill leaves behind the append of the rows, the first of them whole and the second too.
    let log = bench.home.transcripts().remove(0);
    let lines: Vec<String> =
        std::fs::read_to_string(&log).unwrap().lines().map(|line| format!("{line}\n")).collect();
    std::fs::write(&inbox_path, &before).unwrap();
    std::fs::write(&log, lines[..2].concat()).unwrap();

    run_agent(go_on).await.unwrap();

    assert_eq!(said(&bench), rows(&[("user", "one"), ("user", "two"), ("assistant", "ok")]));
    assert!(inbox.pending().await.unwrap().is_empty());
}

/// Sends `count` messages while a tool runs, in the given mode; then lets the run end.
async fn arrive_while_busy(bench: &Bench, queue: &QueueConfig, count: usize) -> Vec<Arrival> {
    let queue = queue.clone();
    while_busy(bench, move |inbox| {
        let arrive =
            |number| now(inbox.arrive(&text(&format!("message {number}")), &queue)).unwrap();
        (0..count).map(arrive).collect()
    })
    .await
}

/// What `act` makes of the inbox while a run has its first call.
async fn while_busy(
    bench: &Bench,
    act: impl Fn(&SessionInbox) -> Vec<Arrival> + Send + Sync + 'static,
) -> Vec<Arrival> {
    let mut params = bench.params("go");
    let inbox = SessionInbox::of_run(&params);
    let record = params.on_event.take().unwrap();
    let arrivals = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&arrivals);
    params.on_event = Some(Arc::new(move |event| {
        let is_it = json!(event)["type"] == "tool_start";
        record(event);
        if is_it && seen.lock().unwrap().is_empty() {
            *seen.lock().unwrap() = act(&inbox);
        }
    }));
    let _outcome = run_agent(params).await;
    let arrivals = arrivals.lock().unwrap();
    arrivals.clone()
}

async fn busy_bench() -> Bench {
    let format = FORMATS[0];
    let bench = Bench::new(
        format,
        [Reply::new(format).tool_call("call_a", "echo", json!({"text": "one"})).step()],
    )
    .await;
    for _ in 0..8 {
        bench.server.push(Reply::new(format).text("ok"));
    }
    bench
}

/// Records the start of a run, and refuses it.
struct Gate(std::sync::Mutex<Vec<AgentStart>>);

impl Hook for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn before_agent_start<'a>(
        &'a self,
        start: &'a mut AgentStart,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        self.0.lock().unwrap().push(start.clone());
        Box::pin(async { Err(HookError("not now".to_owned())) })
    }
}

#[tokio::test]
async fn a_hook_at_the_start_sees_what_waits_and_may_leave_it_waiting() {
    let bench = Bench::new(FORMATS[0], Reply::new(FORMATS[0]).text("ok")).await;
    let inbox = inbox(&bench);
    for (kind, words) in [(QueuedKind::FollowUp, "later"), (QueuedKind::Steer, "first")] {
        inbox.send(kind, text(words), WhenIdle::Keep).await.unwrap();
    }
    let gate = Arc::new(Gate(std::sync::Mutex::default()));
    let params = RunParams { hooks: vec![gate.clone()], ..bench.params("go") };
    let error = run_agent(params).await.unwrap_err();
    assert_eq!(error.class(), "hook");
    let seen = gate.0.lock().unwrap().clone();
    assert_eq!(seen[0].user_message, text("go"));
    assert_eq!(seen[0].queued_messages, [text("later"), text("first")]);
    assert_eq!(inbox.pending().await.unwrap().len(), 2, "they wait for a run that may begin");
    assert!(bench.home.transcripts().is_empty());
}

#[tokio::test]
async fn each_queue_mode_handles_messages_as_documented() {
    let taken_after = |bench: &Bench| -> Vec<String> {
        said(bench)
            .into_iter()
            .skip(3)
            .map(|(role, text)| if role == "user" { text } else { role })
            .collect()
    };
    let queue = |mode| QueueConfig { mode, ..QueueConfig::default() };

    let bench = busy_bench().await;
    arrive_while_busy(&bench, &queue(QueueMode::Steer), 1).await;
    assert_eq!(taken_after(&bench), ["message 0", "assistant"]);

    let bench = busy_bench().await;
    arrive_while_busy(&bench, &queue(QueueMode::Followup), 1).await;
    assert_eq!(taken_after(&bench), ["assistant", "message 0", "assistant"]);

    let bench = busy_bench().await;
    arrive_while_busy(&bench, &queue(QueueMode::SteerBacklog), 1).await;
    assert_eq!(taken_after(&bench), ["message 0", "assistant", "message 0", "assistant"]);

    let bench = busy_bench().await;
    let arrivals = arrive_while_busy(&bench, &queue(QueueMode::Interrupt), 1).await;
    assert!(matches!(arrivals[0], Arrival::Interrupting { .. }));
    assert_eq!(bench.server.requests().len(), 1, "the run was aborted");
    let go_on = RunParams { user_message: Vec::new(), ..bench.params("") };
    run_agent(go_on).await.unwrap();
    assert_eq!(taken_after(&bench), ["message 0", "assistant"]);
}

#[tokio::test]
async fn a_full_queue_drops_as_configured() {
    let queue = |drop| QueueConfig { cap: 2, drop, ..QueueConfig::default() };
    let last_user =
        |bench: &Bench| said(bench).into_iter().rfind(|(role, _)| role == "user").unwrap().1;

    let bench = busy_bench().await;
    arrive_while_busy(&bench, &queue(DropPolicy::Summarize), 4).await;
    let last = last_user(&bench);
    assert!(
        last.starts_with(
            "[2 earlier messages were dropped, because too many waited. They began so:\n- message 0\n- message 1]"
        ),
        "{last}"
    );
    assert!(last.ends_with("Message 1 of 2:\nmessage 2\nMessage 2 of 2:\nmessage 3"), "{last}");
    assert_eq!(bench.events_named("notice").len(), 2);

    let bench = busy_bench().await;
    let arrivals = arrive_while_busy(&bench, &queue(DropPolicy::Old), 3).await;
    let Arrival::Queued { dropped, .. } = &arrivals[2] else { panic!("{arrivals:?}") };
    assert_eq!(dropped[0].content, text("message 0"));
    assert!(!last_user(&bench).contains("message 0"));

    // What is taken twice waits once.
    let both = QueueConfig { mode: QueueMode::SteerBacklog, ..queue(DropPolicy::Old) };
    let bench = busy_bench().await;
    let arrivals = arrive_while_busy(&bench, &both, 3).await;
    assert!(matches!(&arrivals[1], Arrival::Queued { dropped, .. } if dropped.is_empty()));
    let rows = serde_json::to_string(&bench.rows()).unwrap();
    let count = |text: &str| rows.matches(text).count();
    assert_eq!((count("message 0"), count("message 1"), count("message 2")), (0, 2, 2), "{rows}");

    let bench = busy_bench().await;
    let arrivals = arrive_while_busy(&bench, &queue(DropPolicy::New), 3).await;
    assert_eq!(arrivals[2], Arrival::Refused { waiting: 2 });
    assert!(!last_user(&bench).contains("message 2"));
}
