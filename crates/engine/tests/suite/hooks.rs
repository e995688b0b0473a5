//! Hooks: gates that block or change, observers that only look, and what happens when one fails.

use std::sync::{Arc, Mutex};

use crate::common::{Bench, run_agent};
use futures_util::future::BoxFuture;
use myclaw_engine::{
    AgentStart, Hook, HookError, PendingToolCall, PreparedCall, RunError, RunParams, RunResult,
    ToolCallVerdict, ToolOutput,
};
use myclaw_llm::ContentBlock;
use myclaw_testkit::{Reply, Script, Step, WireFormat};
use serde_json::json;

const FORMAT: WireFormat = WireFormat::AnthropicMessages;

/// A hook whose behaviour depends on its word, and which records its calls.
struct WordHook {
    word: &'static str,
    seen: Mutex<Vec<String>>,
}

impl WordHook {
    fn new(word: &'static str) -> Arc<Self> {
        Arc::new(Self { word, seen: Mutex::default() })
    }

    fn note(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }

    fn fail_if(&self, word: &str) -> Result<(), HookError> {
        if self.word == word { Err(HookError("out of order".to_owned())) } else { Ok(()) }
    }
}

impl Hook for WordHook {
    fn name(&self) -> &str {
        "word"
    }

    fn before_agent_start<'a>(
        &'a self,
        start: &'a mut AgentStart,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            self.note("start");
            if self.word == "rewrite" {
                start.system_prompt.push_str("\nSpeak like a heron.");
                start.user_message.push(ContentBlock::text("(and be quick)"));
            }
            self.fail_if("fail start")
        })
    }

    fn tool_call<'a>(
        &'a self,
        call: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async move {
            self.note(format!("call {}", call.arguments["text"]));
            if self.word == "rewrite" {
                call.arguments.insert("text".to_owned(), json!("changed"));
            }
            self.fail_if("fail call")?;
            Ok(match self.word {
                "block" => ToolCallVerdict::Block { reason: "not on Sundays".to_owned() },
                _ => ToolCallVerdict::Allow,
            })
        })
    }

    fn tool_result<'a>(
        &'a self,
        call: &'a PreparedCall,
        output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            self.note(format!("result {}", call.tool_call_id));
            if self.word == "rewrite" {
                output.content.push(ContentBlock::text("(seen)"));
            }
            self.fail_if("fail result")
        })
    }

    fn agent_end<'a>(
        &'a self,
        outcome: &'a Result<RunResult, RunError>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async move {
            self.note(match outcome {
                Ok(result) => format!("end {}", result.reply),
                Err(error) => format!("end {}", error.class()),
            });
            self.fail_if("fail end")
        })
    }
}

/// A turn with one tool call, watched by `hook`.
async fn run_with(
    hook: &Arc<WordHook>,
    last: impl Into<Step>,
) -> (Bench, Result<RunResult, RunError>) {
    let call = Reply::anthropic().tool_call("call_a", "echo", json!({"text": "one"}));
    let bench = Bench::new(FORMAT, Script::new().then(call).then(last)).await;
    let hooks: Vec<Arc<dyn Hook>> = vec![hook.clone()];
    let outcome = run_agent(RunParams { hooks, ..bench.params("go") }).await;
    (bench, outcome)
}

fn done() -> Reply {
    Reply::anthropic().text("Done.")
}

#[tokio::test]
async fn a_hook_sees_every_step_in_order() {
    let hook = WordHook::new("look");
    let (_bench, outcome) = run_with(&hook, done()).await;
    assert_eq!(outcome.unwrap().reply, "Done.");
    assert_eq!(*hook.seen.lock().unwrap(), ["start", "call \"one\"", "result call_a", "end Done."]);
}

#[tokio::test]
async fn what_a_hook_changes_is_what_is_sent_and_stored() {
    let (bench, outcome) = run_with(&WordHook::new("rewrite"), done()).await;
    outcome.unwrap();
    let request = bench.server.last_request();
    assert!(request.json()["system"].to_string().contains("Speak like a heron."));
    assert!(request.messages()[0]["content"].to_string().contains("(and be quick)"));
    let rows = bench.rows();
    assert_eq!(rows[0]["content"], "go\n(and be quick)");
    assert_eq!(rows[2]["content"], "echo: changed\n(seen)");
}

#[tokio::test]
async fn a_blocked_call_does_not_run_and_the_model_reads_why() {
    let (bench, outcome) = run_with(&WordHook::new("block"), done()).await;
    outcome.unwrap();
    let rows = bench.rows();
    assert_eq!(rows[2]["content"], "Not run: blocked by word: not on Sundays");
    assert_eq!(rows[2]["meta"]["isError"], true);
}

#[tokio::test]
async fn a_gate_that_fails_blocks() {
    let (bench, outcome) = run_with(&WordHook::new("fail call"), done()).await;
    outcome.unwrap();
    assert_eq!(bench.rows()[2]["content"], "Not run: blocked by word: out of order");

    let hook = WordHook::new("fail start");
    let (bench, outcome) = run_with(&hook, done()).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.class(), "hook");
    assert_eq!(error.to_string(), "the hook word did not let the run start: out of order");
    assert!(bench.server.requests().is_empty() && bench.home.transcripts().is_empty());
    assert_eq!(*hook.seen.lock().unwrap(), ["start", "end hook"]);
}

#[tokio::test]
async fn an_observer_that_fails_is_reported_and_changes_nothing() {
    for (word, point, notice) in [
        ("fail result", "tool_result", "the hook word failed after a tool call: out of order"),
        ("fail end", "agent_end", "the hook word failed at the end of the run: out of order"),
    ] {
        let (bench, outcome) = run_with(&WordHook::new(word), done()).await;
        assert_eq!(outcome.unwrap().reply, "Done.");
        let error = "out of order";
        assert_eq!(
            bench.events_named("notice"),
            [json!({
                "type": "notice", "code": "hook_failed", "message": notice,
                "hook": "word", "point": point, "error": error,
            })]
        );
        assert_eq!(bench.rows()[2]["content"], "echo: one");
    }
}

#[tokio::test]
async fn the_end_reports_failures_too() {
    let hook = WordHook::new("look");
    let refusal = Step::status(400, &[], r#"{"error":{"message":"no such field"}}"#);
    let (_bench, outcome) = run_with(&hook, refusal).await;
    assert_eq!(outcome.unwrap_err().class(), "unknown");
    assert_eq!(hook.seen.lock().unwrap().last().unwrap(), "end unknown");
}
