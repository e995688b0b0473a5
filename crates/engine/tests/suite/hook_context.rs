//! Hooks on what is sent, on compactions, and under an abort.

use std::sync::{Arc, Mutex};

use crate::common::{Bench, engine, run_agent};
use futures_util::future::{BoxFuture, pending};
use myclaw_engine::{
    AgentStart, CompactionReason, CompactionReport, CompactionVerdict, Hook, HookError,
    PendingCompaction, PendingToolCall, RunError, RunParams, ToolCallVerdict,
};
use myclaw_llm::{Message, UserMessage};
use myclaw_testkit::{Reply, Script, WireFormat, validate_pairing};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const FORMAT: WireFormat = WireFormat::AnthropicMessages;

/// Does what it is set to do, and records its input.
#[derive(Default)]
struct TestHook {
    context: Option<ContextChange>,
    compaction: Option<Result<CompactionVerdict, HookError>>,
    focus: Option<&'static str>,
    arguments: Option<serde_json::Value>,
    /// Fires this and then never returns.
    hang: Option<(&'static str, CancellationToken)>,
    reported: Mutex<Vec<String>>,
}

enum ContextChange {
    /// A message in front of the last one.
    Whisper,
    /// No call keeps its result, and the first message is the model's.
    Break,
    Nothing,
    Fail,
}

impl TestHook {
    async fn hang_in(&self, method: &str) {
        if let Some((place, cancel)) = &self.hang
            && *place == method
        {
            cancel.cancel();
            pending::<()>().await;
        }
    }
}

impl Hook for TestHook {
    fn name(&self) -> &str {
        "test"
    }

    fn before_agent_start<'a>(
        &'a self,
        _start: &'a mut AgentStart,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async {
            self.hang_in("before_agent_start").await;
            Ok(())
        })
    }

    fn context<'a>(
        &'a self,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<Option<Vec<Message>>, HookError>> {
        Box::pin(async {
            self.hang_in("context").await;
            let mut changed = messages.to_vec();
            match self.context {
                None => return Ok(None),
                Some(ContextChange::Fail) => return Err(HookError("out of order".to_owned())),
                Some(ContextChange::Nothing) => changed.clear(),
                Some(ContextChange::Break) => {
                    changed.retain(|message| !matches!(message, Message::ToolResult(_)));
                    changed.rotate_right(1);
                    changed.push(Message::User(UserMessage::text("Go on.", 0)));
                }
                Some(ContextChange::Whisper) => {
                    changed.insert(messages.len() - 1, Message::User(UserMessage::text("Psst.", 0)))
                }
            }
            Ok(Some(changed))
        })
    }

    fn tool_call<'a>(
        &'a self,
        call: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async {
            self.hang_in("tool_call").await;
            if let Some(arguments) = &self.arguments {
                call.arguments = arguments.as_object().unwrap().clone();
            }
            Ok(ToolCallVerdict::Allow)
        })
    }

    fn before_session_compact<'a>(
        &'a self,
        compaction: &'a mut PendingCompaction<'_>,
    ) -> BoxFuture<'a, Result<CompactionVerdict, HookError>> {
        Box::pin(async {
            self.hang_in("before_session_compact").await;
            assert_eq!(compaction.reason, CompactionReason::Manual);
            let (count, focus) = (compaction.messages().count(), compaction.focus.as_deref());
            self.reported.lock().unwrap().push(format!("{count} messages, focus {focus:?}"));
            compaction.focus = self.focus.map(str::to_owned);
            self.compaction.clone().unwrap_or(Ok(CompactionVerdict::Proceed))
        })
    }

    fn session_compact<'a>(
        &'a self,
        report: &'a CompactionReport,
        summary: &'a str,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            let reported = format!("{} to {}: {summary}", report.old_count, report.new_count);
            self.reported.lock().unwrap().push(reported);
            Ok(())
        })
    }
}

fn with_hook(params: RunParams, hook: TestHook) -> (RunParams, Arc<TestHook>) {
    let hook = Arc::new(hook);
    (RunParams { hooks: vec![hook.clone()], ..params }, hook)
}

fn notices(bench: &Bench) -> Vec<String> {
    let notices = bench.events_named("notice");
    notices.iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

/// A turn with one tool call, and the texts of the rows that it leaves.
async fn turn(hook: TestHook) -> (Bench, Vec<String>) {
    let call = Reply::anthropic().tool_call("call_a", "echo", json!({"text": "one"}));
    let done = Reply::anthropic().text("Done.");
    let bench = Bench::new(FORMAT, Script::new().then(call).then(done)).await;
    let (params, _) = with_hook(bench.params("go"), hook);
    run_agent(params).await.unwrap();
    let rows = bench.rows();
    let texts = rows.iter().map(|row| row["content"].as_str().unwrap().to_owned()).collect();
    (bench, texts)
}

#[tokio::test]
async fn only_what_is_sent_changes() {
    let hook = TestHook { context: Some(ContextChange::Whisper), ..TestHook::default() };
    let (bench, rows) = turn(hook).await;
    assert_eq!(rows, ["go", "", "echo: one", "Done."]);
    let requests = bench.server.requests();
    assert!(requests.iter().all(|request| request.body_text().contains("Psst.")));
    assert_eq!(requests[0].body_text().matches("Psst.").count(), 1);
    // The second call begins with the log's messages again, not with what was sent.
    assert_eq!(requests[1].body_text().matches("Psst.").count(), 1);
    let sent: Vec<String> = requests[1].messages().iter().map(in_short).collect();
    assert_eq!(
        sent,
        [
            "user: go",
            "assistant: calls \"call_a\"",
            r#"user: "call_a" gave [{"type":"text","text":"echo: one"}] | Psst."#,
        ]
    );
}

/// The role of a message as it was sent, and what its blocks say; the time, which is a block of its own, left out.
fn in_short(message: &Value) -> String {
    let block = |block: &Value| match block["type"].as_str().unwrap() {
        "text" => {
            block["text"].as_str().filter(|text| !text.starts_with("<sent>")).map(str::to_owned)
        }
        "tool_use" => Some(format!("calls {}", block["id"])),
        "tool_result" => Some(format!("{} gave {}", block["tool_use_id"], block["content"])),
        other => Some(format!("a block of type {other}")),
    };
    let blocks: Vec<String> =
        message["content"].as_array().unwrap().iter().filter_map(block).collect();
    format!("{}: {}", message["role"].as_str().unwrap(), blocks.join(" | "))
}

#[tokio::test]
async fn whatever_a_hook_gives_is_sent_in_a_form_that_providers_accept() {
    let hook = TestHook { context: Some(ContextChange::Break), ..TestHook::default() };
    let (bench, rows) = turn(hook).await;
    assert_eq!(rows[2], "echo: one");
    let sent: Vec<Vec<String>> = bench
        .server
        .requests()
        .iter()
        .map(|request| {
            validate_pairing(request).unwrap();
            request.messages().iter().map(in_short).collect()
        })
        .collect();
    // Of the second list, the answer that was moved to the front: a session begins with its user. Its call went
    // with it, for the hook had taken the result away.
    assert_eq!(sent, [["user: go | Go on."], ["user: go | Go on."]]);
}

#[tokio::test]
async fn a_context_hook_that_fails_or_leaves_nothing_changes_nothing() {
    for (change, notice) in [
        (ContextChange::Fail, "the hook test failed before a model call: out of order"),
        (
            ContextChange::Nothing,
            "the hook test left no message of the user to send; its change is not used",
        ),
    ] {
        let hook = TestHook { context: Some(change), ..TestHook::default() };
        let (bench, rows) = turn(hook).await;
        assert_eq!(rows[3], "Done.");
        assert_eq!(notices(&bench), [notice, notice]);
        assert_eq!(bench.server.last_request().messages().len(), 3);
    }
}

#[tokio::test]
async fn changed_arguments_have_to_fit_the_tool() {
    let hook = TestHook { arguments: Some(json!({})), ..TestHook::default() };
    let (_bench, rows) = turn(hook).await;
    assert_eq!(
        rows[2],
        "Not run: blocked by test: it changed the arguments, and they no longer fit.\n- `text` is missing"
    );
}

/// A session of 16 messages.
async fn long_session() -> Bench {
    let bench = Bench::new(FORMAT, Script::new()).await;
    for turn in 0..8 {
        bench.server.push(Reply::anthropic().text(format!("answer {turn}")));
        bench.run(&format!("question {turn} {}", "word ".repeat(50))).await.unwrap();
    }
    bench
}

async fn compact(bench: &Bench, hook: TestHook) -> (CompactionReport, Vec<String>) {
    let (params, hook) = with_hook(bench.params(""), hook);
    let report = engine().compact(params, Some("numbers")).await.unwrap();
    let reported = hook.reported.lock().unwrap().clone();
    (report, reported)
}

#[tokio::test]
async fn a_hook_writes_the_summary_and_gets_the_report() {
    let bench = long_session().await;
    let verdict = Ok(CompactionVerdict::Summary("They counted to eight.".to_owned()));
    let hook = TestHook { compaction: Some(verdict), ..TestHook::default() };
    let (report, reported) = compact(&bench, hook).await;
    assert_eq!((report.old_count, report.new_count), (16, 11));
    assert_eq!(
        reported,
        ["6 messages, focus Some(\"numbers\")", "16 to 11: They counted to eight."]
    );
    assert_eq!(bench.server.requests().len(), 8, "the model was not asked");
    assert_eq!(bench.rows().last().unwrap()["summary"], "They counted to eight.");
}

#[tokio::test]
async fn a_hook_forbids_the_compaction() {
    let bench = long_session().await;
    let verdict = Ok(CompactionVerdict::Veto { reason: "an audit runs".to_owned() });
    let hook = TestHook { compaction: Some(verdict), ..TestHook::default() };
    let (report, reported) = compact(&bench, hook).await;
    assert_eq!((report.old_count, report.new_count), (16, 16));
    assert_eq!(reported, ["6 messages, focus Some(\"numbers\")"]);
    assert_eq!(notices(&bench), ["the hook test forbids the compaction: an audit runs"]);
    assert_eq!(bench.rows().len(), 16);
}

#[tokio::test]
async fn the_model_is_asked_with_the_focus_of_the_hook_or_when_it_fails() {
    for (verdict, focus, notice) in [
        (Ok(CompactionVerdict::Proceed), Some("the birds"), None),
        (
            Err(HookError("out of order".to_owned())),
            None,
            Some("the hook test failed before a compaction: out of order"),
        ),
        (
            Ok(CompactionVerdict::Summary(" ".to_owned())),
            None,
            Some("the hook test gave an empty summary; the model is asked"),
        ),
        (
            Ok(CompactionVerdict::Summary("word ".repeat(5_000))),
            None,
            Some(
                "the summary of the hook test is longer than the messages that it replaces; the model is asked",
            ),
        ),
    ] {
        let bench = long_session().await;
        bench.server.push(Reply::anthropic().text("They talked."));
        let hook = TestHook { compaction: Some(verdict), focus, ..TestHook::default() };
        let (_, reported) = compact(&bench, hook).await;
        assert_eq!(reported[1], "16 to 11: They talked.");
        assert_eq!(notices(&bench), notice.into_iter().collect::<Vec<_>>());
        let asked = bench.server.last_request().body_text();
        assert_eq!(asked.contains("above all: the birds"), focus.is_some(), "{asked}");
        assert!(!asked.contains("above all: numbers"), "the hook took that focus away");
    }
}

#[tokio::test]
async fn an_abort_does_not_wait_for_a_hook() {
    for (place, rows) in [("before_agent_start", 0), ("context", 1), ("tool_call", 3)] {
        let call = Reply::anthropic().tool_call("call_a", "echo", json!({"text": "one"}));
        let bench = Bench::new(FORMAT, Script::new().then(call)).await;
        let cancel = CancellationToken::new();
        let hook = TestHook { hang: Some((place, cancel.clone())), ..TestHook::default() };
        let (params, _) = with_hook(bench.params("go"), hook);
        let error = run_agent(RunParams { cancel, ..params }).await.unwrap_err();
        assert!(matches!(error, RunError::Aborted), "{place}: {error}");
        let found = if rows == 0 { bench.home.transcripts().len() } else { bench.rows().len() };
        assert_eq!(found, rows, "{place}");
    }
    let bench = long_session().await;
    let cancel = CancellationToken::new();
    let hook =
        TestHook { hang: Some(("before_session_compact", cancel.clone())), ..TestHook::default() };
    let (params, _) = with_hook(bench.params(""), hook);
    let params = RunParams { cancel, ..params };
    let error = engine().compact(params, None).await.unwrap_err();
    assert!(matches!(error, RunError::Aborted), "{error}");
    assert_eq!(bench.rows().len(), 16);
}
