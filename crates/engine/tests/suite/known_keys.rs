//! The keys that the program knows leave a tool in no way.

use std::sync::Arc;

use crate::common::{Bench, EchoTool, run_agent};
use futures_util::future::BoxFuture;
use myclaw_engine::{
    Hook, HookError, PreparedCall, Tool, ToolContext, ToolError, ToolInvocation, ToolOutput,
    ToolUpdate,
};
use myclaw_llm::{ContentBlock, ToolCall, ToolSchema};
use myclaw_testkit::{Reply, WireFormat};
use serde_json::json;

const KEY: &str = "sk-a-key-of-the-model";

/// Prints the key while it runs and as its result, or as the reason of its failure if the text is `fail`.
struct Leaky(ToolSchema);

fn output() -> ToolOutput {
    ToolOutput { details: Some(json!({"a": [KEY]})), ..ToolOutput::text(format!("result {KEY}")) }
}

impl Tool for Leaky {
    fn schema(&self) -> &ToolSchema {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let details = Some(json!({"b": KEY, KEY: 1}));
        (invocation.on_update)(ToolUpdate { text: format!("update {KEY}"), details });
        let fails = invocation.call.arguments["text"] == "fail";
        Box::pin(async move {
            match fails {
                true => Err(ToolError::Failed(format!("failure {KEY}"))),
                false => Ok(output()),
            }
        })
    }

    fn recall<'a>(
        &'a self,
        _: &'a ToolCall,
        _: u64,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async { Some(output()) })
    }
}

/// Adds the key to each result.
struct Adding;

impl Hook for Adding {
    fn name(&self) -> &str {
        "adding"
    }

    fn tool_result<'a>(
        &'a self,
        _: &'a PreparedCall,
        output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        output.content.push(ContentBlock::text(format!("hook {KEY}")));
        Box::pin(async { Ok(()) })
    }
}

async fn bench(text: &str) -> Bench {
    let call = Reply::anthropic().tool_call("call_1", "echo", json!({"text": text}));
    let done = || Reply::anthropic().text("Done.");
    let script = [call, done(), done()];
    let mut bench = Bench::new(WireFormat::AnthropicMessages, script).await;
    bench.profiles = vec![KEY];
    bench
}

fn params(bench: &Bench, message: &str) -> myclaw_engine::RunParams {
    let mut params = bench.params(message);
    params.tools = vec![Arc::new(Leaky(EchoTool::new("echo").schema().clone()))];
    params.hooks = vec![Arc::new(Adding)];
    params
}

/// All events and the log, and what a model was sent, in one text each.
fn seen(bench: &Bench) -> [String; 3] {
    let events = bench.events.lock().unwrap();
    let events: Vec<String> = events.iter().map(|event| json!(event).to_string()).collect();
    let rows: Vec<String> = bench.rows().iter().map(ToString::to_string).collect();
    let sent: Vec<String> =
        bench.server.requests().iter().map(|request| request.json().to_string()).collect();
    [events.join("\n"), rows.join("\n"), sent.join("\n")]
}

#[tokio::test]
async fn updates_results_failures_and_what_hooks_add_have_no_key() {
    for (text, expected) in [
        (
            "x",
            [
                "update [redacted]",
                "result [redacted]",
                "hook [redacted]",
                "{\"a\":[\"[redacted]\"]}",
            ],
        ),
        ("fail", ["update [redacted]", "failure [redacted]", "hook [redacted]", "[redacted]\":1"]),
    ] {
        let bench = bench(text).await;
        run_agent(params(&bench, "go")).await.unwrap();
        let seen = seen(&bench);
        for text in &seen {
            assert!(!text.contains(KEY), "{text}");
        }
        let all = seen.concat();
        for part in expected {
            assert!(all.contains(part), "{part}: {all}");
        }
    }
}

/// The result of a call that the process did not live to store: the tool has kept it, with the key in it.
#[tokio::test]
async fn a_result_that_a_tool_has_kept_has_no_key() {
    let bench = bench("x").await;
    run_agent(params(&bench, "go")).await.unwrap();
    let path = bench.home.transcript_path("test");
    let text = std::fs::read_to_string(&path).unwrap();
    let is_call = |row: &&str| !row.contains("toolCallId") || row.contains("\"assistant\"");
    let until_call: Vec<&str> = text.lines().take_while(is_call).collect();
    assert!(
        until_call.len() < text.lines().count() && until_call.last().unwrap().contains("call_1")
    );
    std::fs::write(&path, until_call.join("\n") + "\n").unwrap();

    let again = params(&bench, "go on");
    again.rules.known_secrets.learn([KEY]);
    run_agent(again).await.unwrap();
    let seen = seen(&bench);
    for text in &seen {
        assert!(!text.contains(KEY), "{text}");
    }
    let [_, rows, sent] = seen;
    assert!(
        rows.contains("result [redacted]") && rows.contains("{\"a\":[\"[redacted]\"]}"),
        "{rows}"
    );
    assert!(sent.contains("result [redacted]"), "{sent}");
}
