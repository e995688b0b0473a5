//! Clocks that jump, forward and back, while a session continues.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::{Bench, FastClock, run_agent};
use futures_util::future::BoxFuture;
use myclaw_engine::{
    Bound, RunParams, SessionInbox, Tool, ToolError, ToolInvocation, ToolOutput, WhenIdle,
};
use myclaw_llm::{ContentBlock, ToolSchema};
use myclaw_session::QueuedKind;
use myclaw_testkit::{Reply, Script, WireFormat};
use serde_json::json;

const FORMAT: WireFormat = WireFormat::AnthropicMessages;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// A bench whose clock shows noon, a hundred days after its beginning.
async fn bench(script: impl Into<Script>) -> Bench {
    let bench = Bench::new(FORMAT, script).await;
    set(&bench, 100 * DAY + 12 * HOUR);
    bench
}

/// Sets the clock, in milliseconds after its beginning, which is a midnight.
fn set(bench: &Bench, now_ms: u64) {
    bench.clock.now_ms.store(now_ms, Ordering::SeqCst);
}

async fn say(bench: &Bench, kind: QueuedKind, text: &str) {
    let inbox = SessionInbox::of_run(&bench.params(""));
    inbox.send(kind, vec![ContentBlock::text(text)], WhenIdle::Keep).await.unwrap();
}

fn go_on(bench: &Bench) -> RunParams {
    RunParams { user_message: Vec::new(), ..bench.params("") }
}

#[tokio::test]
async fn waiting_messages_keep_their_order_whatever_the_clock_says() {
    let bench = bench(Script::repeat(Reply::anthropic().text("ok"))).await;
    for (number, now_ms) in [50 * DAY, 10 * DAY, 90 * DAY, 1].into_iter().enumerate() {
        set(&bench, now_ms);
        say(&bench, QueuedKind::Steer, &format!("said {number}")).await;
    }
    run_agent(go_on(&bench)).await.unwrap();
    let rows = bench.rows();
    let said: Vec<&str> = rows.iter().filter_map(|row| row["content"].as_str()).collect();
    assert_eq!(said, ["said 0", "said 1", "said 2", "said 3", "ok"]);
}

#[tokio::test]
async fn the_window_of_collected_messages_is_never_longer_than_configured() {
    for (sent_at, longest) in [(200 * DAY, 1_000), (99 * DAY, 0)] {
        let mut bench = bench(Script::repeat(Reply::anthropic().text("ok"))).await;
        bench.config.messages.queue.debounce_ms = 1_000;
        set(&bench, sent_at);
        say(&bench, QueuedKind::Collect, "from another time").await;
        set(&bench, 100 * DAY);
        let result = run_agent(bench.params("go")).await.unwrap();
        assert_eq!(result.iterations, 2, "it is answered");
        let waited: Duration = bench.clock.sleeps.lock().unwrap().iter().sum();
        assert_eq!(waited, Duration::from_millis(longest), "sent at {sent_at}");
    }
}

#[tokio::test]
async fn the_totals_of_a_day_survive_every_jump_and_end_with_the_day() {
    let mut bench = bench(Script::repeat(Reply::anthropic().text("ok").usage(100, 0))).await;
    bench.config.agents.defaults.limits.day_tokens = 100;
    let bound = |result: myclaw_engine::RunResult| result.bound;
    let mut course = Vec::new();
    let noon = 100 * DAY + 12 * HOUR;
    // Ten days ahead for a moment, back, the day after, an hour back over midnight.
    for at in [noon, noon + 1, noon + 10 * DAY, noon, noon + DAY, noon + DAY - 13 * HOUR] {
        set(&bench, at);
        course.push(bound(bench.run("go").await.unwrap()));
    }
    let spent = Some(Bound::DayTokens);
    assert_eq!(course, [None, spent, None, spent, None, spent]);
}

/// Sets the clock when it is called.
struct Jump {
    schema: ToolSchema,
    clock: Arc<FastClock>,
    to_ms: u64,
}

impl Tool for Jump {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn execute<'a>(
        &'a self,
        _invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.clock.now_ms.store(self.to_ms, Ordering::SeqCst);
        Box::pin(async { Ok(ToolOutput::text("jumped")) })
    }
}

#[tokio::test]
async fn a_run_is_not_ended_by_a_jump_and_its_rows_stay_in_order() {
    for to_ms in [0, 300 * DAY] {
        let bench = bench([
            Reply::anthropic().tool_call("call_1", "jump", json!({})),
            Reply::anthropic().text("Still here."),
        ])
        .await;
        let schema = ToolSchema {
            name: "jump".to_owned(),
            description: "Sets the clock.".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
        };
        let clock = Arc::clone(&bench.clock);
        let mut params = bench.params("go");
        params.tools = vec![Arc::new(Jump { schema, clock, to_ms })];
        let result = run_agent(params).await.unwrap();
        assert_eq!((result.reply.as_str(), result.bound), ("Still here.", None));
        let roles: Vec<_> = bench.rows().iter().map(|row| row["role"].clone()).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
        bench.server.push(Reply::anthropic().text("ok"));
        bench.run("and now?").await.unwrap();
    }
}
