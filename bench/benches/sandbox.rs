//! What a sandbox adds to a call: the same tools in this process and in a confined helper, in turn, within one run.
//!
//! `cargo bench -p myclaw-bench --bench sandbox`. This program is its own helper, as `myclaw` is.
#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run has nothing to report")]

use std::process::{ExitCode, Termination};
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_agent::{Home, RunAdditions, SessionConfig, SessionOptions};
use myclaw_config::{Config, Environment, Paths};
use myclaw_engine::{PreparedCall, Tool, ToolContext, ToolInvocation, TurnId};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Calls of each kind: odd, so that the median is a call that happened.
const CALLS: usize = 301;
/// Helpers that are started.
const STARTS: usize = 31;

fn main() -> ExitCode {
    if let Some(end) = myclaw_agent::helper_main() {
        return end.report();
    }
    // Cargo's test run asks every bench whether it has tests.
    if std::env::args().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
    ExitCode::SUCCESS
}

async fn measure() {
    let place = Place::new();
    let [open, confined] = [place.tools("off").await, place.tools("all").await];
    for (name, arguments, aim) in [
        ("bash", json!({"command": "true"}), 3.0),
        ("read", json!({"path": "file"}), 0.5),
        ("write", json!({"path": "written", "content": "text"}), 0.5),
        ("grep", json!({"pattern": "needle"}), 0.5),
    ] {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..CALLS + 10 {
            for (tools, times) in [&open, &confined].into_iter().zip(&mut times) {
                let time = place.call(tools, name, &arguments).await;
                // The first ones warm up, and one of them starts the helper.
                if round >= 10 {
                    times.push(time);
                }
            }
        }
        let [open, confined] = times.map(median);
        println!(
            "{name:<5} {:.3} ms without, {:.3} ms in the sandbox: {:+.3} ms (aim: at most {aim} ms)",
            milliseconds(open),
            milliseconds(confined),
            milliseconds(confined) - milliseconds(open)
        );
    }
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let tools = place.tools("all").await;
        let first = place.call(&tools, "read", &json!({"path": "file"})).await;
        starts
            .push(first.saturating_sub(place.call(&tools, "read", &json!({"path": "file"})).await));
    }
    println!("start of the helper: {:.3} ms (aim: at most 10 ms)", milliseconds(median(starts)));
}

struct Place {
    directory: TempDir,
    home: Home,
}

impl Place {
    fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let paths = Paths::in_state_dir(directory.path().join("state"));
        let home = Home::new(Environment::from_process(), paths);
        let workspace = directory.path().join("state/workspace");
        std::fs::create_dir_all(&workspace).expect("a workspace");
        std::fs::write(workspace.join("file"), "a needle in a line\n".repeat(100)).expect("a file");
        Self { directory, home }
    }

    /// The tools of a session; each call has an executor of its own.
    async fn tools(&self, mode: &str) -> Vec<Arc<dyn Tool>> {
        let config =
            json!({"agents": {"defaults": {"sandbox": {"mode": mode, "allowlist": ["*"]}}}});
        let mut config: Config = serde_json::from_value(config).expect("a config");
        config.paths = Some(self.home.paths.clone());
        let session =
            SessionConfig::new(self.home.clone(), Arc::new(config), &SessionOptions::default())
                .expect("a session");
        let selection = session.select_model(Some("builtin/demo")).await.expect("a model");
        session.run_params(&selection, RunAdditions::default()).await.expect("the tools").tools
    }

    async fn call(&self, tools: &[Arc<dyn Tool>], name: &str, arguments: &Value) -> Duration {
        let tool = tools.iter().find(|tool| tool.schema().name == name).expect("the tool");
        let context = ToolContext {
            working_directory: self.directory.path().join("state/workspace"),
            artifact_directory: self.directory.path().join("artifacts"),
            max_result_chars: 50_000,
            workspace_only: false,
            closed: Default::default(),
            turn: TurnId::generate(),
        };
        let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
        let started = Instant::now();
        let prepared = PreparedCall::new(&**tool, "call_1", arguments, &context).expect("a call");
        let output = tool
            .execute(ToolInvocation {
                call: &prepared,
                on_update: &|_| {},
                context: &context,
                cancel: CancellationToken::new(),
            })
            .await
            .expect("a result");
        assert!(!output.is_error, "{output:?}");
        started.elapsed()
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
