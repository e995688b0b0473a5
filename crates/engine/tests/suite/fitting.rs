//! What is summarised when a session meets a smaller model, many results at once, or a model that writes no summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Bench, EchoTool, asks_for_summary, engine, run_agent};
use futures_util::future::BoxFuture;
use myclaw_engine::{RunError, RunParams, Tool, ToolError, ToolInvocation, ToolOutput};
use myclaw_llm::ToolSchema;
use myclaw_session::{Entry, LockWait, Role, SessionKey, SessionStore, TranscriptMessage};
use myclaw_testkit::{Reply, Script, Step, WireFormat};
use serde_json::{Value, json};

const FORMAT: WireFormat = WireFormat::AnthropicMessages;

fn error(status: u16, kind: &str, message: &str) -> Step {
    let error = json!({"type": kind, "message": message});
    Step::status(status, &[], json!({"type": "error", "error": error}).to_string())
}

fn too_long() -> Step {
    error(400, "invalid_request_error", "prompt is too long")
}

/// The requests for a summary from number `from` on.
fn summary_requests(bench: &Bench, from: usize) -> Vec<String> {
    let requests = bench.server.requests().split_off(from);
    requests
        .iter()
        .filter(|request| asks_for_summary(request))
        .map(|request| request.body_text())
        .collect()
}

fn summaries(bench: &Bench) -> Vec<String> {
    let rows = bench.rows().into_iter().filter(|row| row["type"] == "compaction");
    rows.map(|row| row["summary"].as_str().unwrap().to_owned()).collect()
}

fn first_message(bench: &Bench) -> Value {
    bench.server.last_request().messages()[0]["content"].clone()
}

/// A session from elsewhere: turns of which each answer has so many words.
fn write_turns(bench: &Bench, turns: usize, words: usize) {
    let store = SessionStore::new(bench.home.state_directory().join("sessions"));
    let mut log = store.open(&SessionKey::for_cli("main", "test"), LockWait::Fail).unwrap();
    for turn in 0..turns {
        let (user, answer) = (format!("question {turn}."), "word ".repeat(words));
        let rows = [(Role::User, user), (Role::Assistant, answer)];
        let entry = |(role, text)| Entry::Message(TranscriptMessage::new(role, text, 1));
        log.append(&rows.map(entry)).unwrap();
    }
}

/// Forty short turns with a model of a large window.
async fn forty_turns(summary: impl Fn() -> Step + Send + Sync + 'static) -> Bench {
    let script = Script::answer_with(move |request, _| match asks_for_summary(request) {
        true => summary(),
        false => Reply::anthropic().text("word ".repeat(300)).usage(0, 0).into(),
    });
    let bench = Bench::new(FORMAT, script).await;
    for turn in 0..40 {
        bench.run(&format!("question {turn}.")).await.unwrap();
    }
    bench.events.lock().unwrap().clear();
    bench
}

fn a_summary() -> Step {
    Reply::anthropic().text("They spoke of forty things.").usage(0, 0).into()
}

#[tokio::test]
async fn a_smaller_model_gets_a_summary_of_what_it_cannot_hold() {
    let mut bench = forty_turns(a_summary).await;
    let before = bench.server.requests().len();
    bench.context_window = 16_000;
    bench.run("hi").await.unwrap();

    let asked = summary_requests(&bench, before);
    assert!((1..=4).contains(&asked.len()), "{}", asked.len());
    assert!(asked[0].contains("user: question 0."), "from the beginning");
    assert!(asked.iter().all(|body| body.len() < 64_000), "no request is larger than the window");
    assert_eq!(summaries(&bench), ["They spoke of forty things."]);
    let event = &bench.events_named("compaction")[0];
    assert_eq!(event["oldCount"], 81);
    assert!(event["newCount"].as_u64().unwrap() < 40, "{event}");
    let first = first_message(&bench);
    assert!(first.to_string().contains("They spoke of forty things."), "{first}");

    bench.context_window = 200_000;
    bench.run("and now?").await.unwrap();
    assert_eq!(first_message(&bench), first);
}

#[tokio::test]
async fn messages_that_no_model_can_summarise_now_are_kept() {
    let is_down = Arc::new(AtomicBool::new(true));
    let state = Arc::clone(&is_down);
    let mut bench = forty_turns(move || match state.load(Ordering::SeqCst) {
        true => error(529, "overloaded_error", "busy"),
        false => a_summary(),
    })
    .await;
    bench.context_window = 16_000;

    bench.run("go on").await.unwrap();
    assert!(summaries(&bench).is_empty(), "the older messages are still in the session");
    assert!(
        bench
            .events_named("notice")
            .iter()
            .any(|notice| notice.to_string().contains("the next message tries again"))
    );

    is_down.store(false, Ordering::SeqCst);
    bench.run("and on").await.unwrap();
    assert_eq!(summaries(&bench), ["They spoke of forty things."]);
}

#[tokio::test]
async fn a_manual_compaction_with_a_smaller_model_changes_nothing_before_it_has_a_summary() {
    let mut bench = forty_turns(|| error(404, "not_found_error", "out of order")).await;
    let rows = bench.rows();
    bench.context_window = 16_000;
    let failed = engine().compact(bench.params(""), None).await.unwrap_err();
    assert!(matches!(failed, RunError::Model(_)), "{failed}");
    assert_eq!(bench.rows(), rows);

    for _ in 0..4 {
        bench.server.push(a_summary());
    }
    let report = engine().compact(bench.params(""), None).await.unwrap();
    assert_eq!((report.old_count, report.new_count), (80, 11));
    assert!(report.tokens_after < report.tokens_before);
    assert_eq!(summaries(&bench), ["They spoke of forty things."]);
}

#[tokio::test]
async fn of_a_log_larger_than_any_window_the_beginning_and_the_end_are_summarised() {
    let script = Script::answer_with(|request, _| match asks_for_summary(request) {
        true => a_summary(),
        false => Reply::anthropic().text("Done.").usage(0, 0).into(),
    });
    let mut bench = Bench::new(FORMAT, script).await;
    write_turns(&bench, 60, 20_000);
    bench.context_window = 60_000;
    bench.run("go on").await.unwrap();

    let asked = summary_requests(&bench, 0);
    assert_eq!(asked.len(), 4);
    assert!(asked[0].contains("user: question 0."), "the beginning");
    assert!(!asked.iter().any(|body| body.contains("question 10.")), "the middle is not read");
    assert!(asked[2..].concat().contains("question 58."), "what stands before the kept part");
    assert_eq!(summaries(&bench), ["They spoke of forty things."]);
}

/// Gives a page of 6,000 characters for each text.
struct Pages(EchoTool);

impl Tool for Pages {
    fn schema(&self) -> &ToolSchema {
        self.0.schema()
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let text = format!("{} {}", invocation.call.arguments["text"], "word ".repeat(1_200));
        Box::pin(async move { Ok(ToolOutput::text(text)) })
    }
}

#[tokio::test]
async fn many_results_share_the_window() {
    for (window, calls) in [(32_000, 30), (16_000, 20), (16_000, 150), (200_000, 250)] {
        let largest = usize::try_from(window).unwrap() * 4;
        let script = Script::answer_with(move |request, _| match request.messages().len() {
            _ if asks_for_summary(request) => a_summary(),
            _ if request.body.len() > largest => too_long(),
            1 => {
                let call = |reply: Reply, number| {
                    reply.tool_call(
                        format!("call_{number}"),
                        "echo",
                        json!({"text": format!("page {number}")}),
                    )
                };
                (0..calls).fold(Reply::anthropic(), call).usage(0, 0).into()
            }
            _ => Reply::anthropic().text("Done.").usage(0, 0).into(),
        });
        let mut bench = Bench::new(FORMAT, script).await;
        bench.context_window = window;
        let pages: Vec<Arc<dyn Tool>> = vec![Arc::new(Pages(EchoTool::new("echo")))];
        let result = run_agent(RunParams { tools: pages, ..bench.params("look") }).await;
        assert_eq!(result.unwrap().reply, "Done.", "{calls} of {window}");
        bench.run("go on").await.unwrap();
        assert_eq!(summary_requests(&bench, 0).len(), 0, "the task alone is not worth a summary");
    }
}

#[tokio::test]
async fn an_answer_larger_than_the_window_is_cut() {
    let script = Script::answer_with(|request, number| match number {
        0 => Reply::anthropic().text("word ".repeat(40_000)).usage(0, 0).into(),
        _ if request.body.len() > 64_000 => too_long(),
        _ if asks_for_summary(request) => a_summary(),
        _ => Reply::anthropic().text("Done.").usage(0, 0).into(),
    });
    let mut bench = Bench::new(FORMAT, script).await;
    bench.run("write a book").await.unwrap();
    bench.context_window = 16_000;
    assert_eq!(bench.run("go on").await.unwrap().reply, "Done.");
    assert!(summaries(&bench).is_empty(), "a summary of it would take calls, and fit no better");
    assert_eq!(bench.events_named("compaction")[0]["change"], "texts_cut");
    let sent = bench.server.last_request().body_text();
    assert!(sent.contains("word word") && sent.contains("chars left out"), "{sent}");
    assert_eq!(bench.server.requests().len(), 2);
}

#[tokio::test]
async fn summaries_that_fail_leave_one_short_note() {
    let script = Script::answer_with(|request, _| match request.body.len() {
        _ if asks_for_summary(request) => {
            error(404, "not_found_error", &format!("out of order {}", "again ".repeat(500)))
        }
        60_001.. => too_long(),
        _ => Reply::anthropic().text("word ".repeat(1_000)).usage(0, 0).into(),
    });
    let mut bench = Bench::new(FORMAT, script).await;
    bench.context_window = 60_000;
    for turn in 0..60 {
        bench.run(&format!("question {turn}.")).await.unwrap();
    }
    let notes = summaries(&bench);
    assert!(notes.len() > 3, "{}", notes.len());
    for note in &notes {
        assert_eq!(note.matches("left out without a summary").count(), 1, "{note}");
        assert!(note.len() < 300 && !note.contains("out of order"), "{note}");
    }
    let counted: Vec<u64> =
        notes.iter().map(|note| note.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(counted.is_sorted() && counted[counted.len() - 1] > 80, "{counted:?}");
}

#[tokio::test]
async fn a_summary_that_is_refused_as_too_long_is_requested_in_smaller_pieces() {
    // The model's window is said to be 200,000 tokens.
    let script = Script::answer_with(|request, _| match request.body.len() {
        60_001.. => too_long(),
        _ if asks_for_summary(request) => a_summary(),
        _ => Reply::anthropic().text("Done.").usage(0, 0).into(),
    });
    let bench = Bench::new(FORMAT, script).await;
    write_turns(&bench, 150, 500);
    assert_eq!(bench.run("go on").await.unwrap().reply, "Done.");
    let asked = summary_requests(&bench, 0);
    assert!(asked.len() <= 7, "{}", asked.len());
    assert_eq!(summaries(&bench), ["They spoke of forty things."]);
    assert!(bench.events_named("compaction").iter().all(|event| event["change"] == "summary"));
}

#[tokio::test]
async fn a_long_message_is_cut_by_the_size_that_was_refused() {
    let script = Script::answer_with(|request, _| match request.body.len() {
        60_001.. => too_long(),
        _ => Reply::anthropic().text("Done.").usage(0, 0).into(),
    });
    let bench = Bench::new(FORMAT, script).await;
    assert_eq!(bench.run(&"word ".repeat(40_000)).await.unwrap().reply, "Done.");
    assert_eq!(bench.events_named("compaction")[0]["change"], "texts_cut");
}

#[tokio::test]
async fn the_ladder_ends_where_summaries_are_refused_as_too_long_too() {
    let bench = Bench::new(FORMAT, Script::repeat(too_long())).await;
    write_turns(&bench, 150, 500);
    assert_eq!(bench.run("go on").await.unwrap_err().class(), "context_overflow");
    let asked = summary_requests(&bench, 0).len();
    let refused = bench.server.requests().len() - asked;
    assert!(asked <= 8, "the first, and three smaller ones, for each of two summaries: {asked}");
    assert!((2..=5).contains(&refused), "{refused}");
    // A later message, when the model is well again, is answered.
    bench.server.push(Reply::anthropic().text("Done."));
    assert_eq!(bench.run("again").await.unwrap().reply, "Done.");
}
