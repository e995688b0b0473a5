//! Calls that need an approval: asked once, answered in every way, and refused by runs that cannot ask.
#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod common;

use std::sync::{Arc, Mutex};

use common::{Bench, EchoTool, run_agent};
use futures_util::future::BoxFuture;
use myclaw_engine::{
    Approval, ApprovalRequest, Approver, Hook, HookError, PendingToolCall, RunError, RunResult,
    ToolCallVerdict,
};
use myclaw_testkit::{Reply, WireFormat};
use serde_json::json;

/// Asks about each call, and changes its arguments first.
struct AskingHook;

/// Asks about each call.
struct Doorkeeper;

impl Hook for Doorkeeper {
    fn name(&self) -> &str {
        "policy"
    }

    fn tool_call<'a>(
        &'a self,
        _: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async { Ok(ToolCallVerdict::Ask { reason: "it speaks".to_owned() }) })
    }
}

impl Hook for AskingHook {
    fn name(&self) -> &str {
        "policy"
    }

    fn tool_call<'a>(
        &'a self,
        call: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        call.arguments.insert("text".to_owned(), json!("checked"));
        Box::pin(async { Ok(ToolCallVerdict::Ask { reason: "it speaks".to_owned() }) })
    }
}

/// Gives the same answer to every question, or never answers.
struct Clerk {
    answer: Option<Approval>,
    seen: Mutex<Vec<ApprovalRequest>>,
}

impl Approver for Clerk {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        self.seen.lock().unwrap().push(request.clone());
        match &self.answer {
            Some(answer) => Box::pin(async { answer.clone() }),
            None => Box::pin(std::future::pending()),
        }
    }
}

fn clerk(answer: Option<Approval>) -> Arc<Clerk> {
    Arc::new(Clerk { answer, seen: Mutex::default() })
}

/// Two equal calls, then an answer.
async fn bench() -> Bench {
    let call = |id| Reply::anthropic().tool_call(id, "echo", json!({"text": "hi"}));
    let script = [call("call_1"), call("call_2"), Reply::anthropic().text("Done.")];
    Bench::new(WireFormat::AnthropicMessages, script).await
}

/// Runs a turn; also returns how many calls were made.
async fn run(bench: &Bench, approver: Option<Arc<Clerk>>) -> (Result<RunResult, RunError>, u64) {
    let tool = EchoTool::new("echo");
    let runs = Arc::clone(&tool.runs);
    let mut params = bench.params("go");
    params.tools = vec![Arc::new(tool)];
    params.hooks = vec![Arc::new(AskingHook)];
    params.approver = approver.map(|clerk| clerk as Arc<dyn Approver>);
    let outcome = run_agent(params).await;
    (outcome, runs.load(std::sync::atomic::Ordering::SeqCst))
}

#[tokio::test]
async fn an_approved_call_is_made_and_asked_about_once_or_always() {
    for (answer, asked) in [(Approval::Once, 2), (Approval::Always, 1)] {
        let (bench, clerk) = (bench().await, clerk(Some(answer)));
        let (outcome, runs) = run(&bench, Some(Arc::clone(&clerk))).await;
        assert_eq!((outcome.unwrap().reply.as_str(), runs), ("Done.", 2));
        let seen = clerk.seen.lock().unwrap();
        assert_eq!(seen.len(), asked);
        assert_eq!(seen[0].reason, "policy: it speaks");
        assert_eq!(seen[0].call.arguments["text"], "checked", "what is approved is what runs");
        assert_eq!(bench.events_named("approval_requested").len(), asked);
        assert_eq!(bench.events_named("approval_resolved").len(), asked);
    }
}

#[tokio::test]
async fn always_covers_the_same_call_and_no_other() {
    let call = |id, tool, text| Reply::anthropic().tool_call(id, tool, json!({"text": text}));
    let script = [
        call("call_1", "echo", "hi"),
        call("call_2", "echo", "bye"),
        call("call_3", "shout", "hi"),
        call("call_4", "echo", "hi"),
        Reply::anthropic().text("Done."),
    ];
    let bench = Bench::new(WireFormat::AnthropicMessages, script).await;
    let clerk = clerk(Some(Approval::Always));
    let mut params = bench.params("go");
    params.tools = vec![Arc::new(EchoTool::new("echo")), Arc::new(EchoTool::new("shout"))];
    params.hooks = vec![Arc::new(Doorkeeper)];
    params.approver = Some(Arc::clone(&clerk) as Arc<dyn Approver>);
    run_agent(params).await.unwrap();
    let seen = clerk.seen.lock().unwrap();
    let asked: Vec<&str> = seen.iter().map(|request| request.call.tool_call_id.as_str()).collect();
    assert_eq!(asked, ["call_1", "call_2", "call_3"]);
}

#[tokio::test]
async fn a_denied_call_is_not_made_and_the_model_reads_why() {
    let bench = bench().await;
    let denied = Approval::Denied { reason: "not today".to_owned() };
    let (outcome, runs) = run(&bench, Some(clerk(Some(denied)))).await;
    assert_eq!((outcome.unwrap().reply.as_str(), runs), ("Done.", 0));
    let text = &bench.events_named("tool_end")[0]["text"];
    assert_eq!(text, "Not run: the approval for this call was denied: not today");
}

#[tokio::test]
async fn without_an_approver_the_call_is_refused() {
    let bench = bench().await;
    let (outcome, runs) = run(&bench, None).await;
    assert_eq!((outcome.unwrap().reply.as_str(), runs), ("Done.", 0));
    let text = bench.rows()[2]["content"].as_str().unwrap().to_owned();
    assert!(text.contains("needs an approval, and this run cannot ask anybody"), "{text}");
}

#[tokio::test]
async fn an_aborted_run_stops_waiting() {
    let bench = bench().await;
    let clerk = clerk(None);
    let mut params = bench.params("go");
    params.hooks = vec![Arc::new(AskingHook)];
    params.approver = Some(Arc::clone(&clerk) as Arc<dyn Approver>);
    let cancel = params.cancel.clone();
    let running = tokio::spawn(run_agent(params));
    while clerk.seen.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert!(matches!(running.await.unwrap(), Err(RunError::Aborted)));
    assert_eq!(bench.rows()[2]["content"], "Not run: the user aborted before this call started.");
}
