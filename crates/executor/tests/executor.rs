//! Calls through a real helper process: what it returns, how it ends, and what happens when it breaks the rules.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use myclaw_engine::{
    PreparedCall, Tool, ToolContext, ToolError, ToolInvocation, ToolOutput, ToolUpdate, TurnId,
};
use myclaw_exec::{
    Attachment, ChildSpec, EnvironmentPolicy, ExecError, Finished, OutputPiece, Runner, attach,
};
use myclaw_executor::{Executor, Launch};
use myclaw_llm::{ContentBlock, ToolSchema};
use myclaw_sandbox::{Confinement, Level, Sandbox, probe};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const HELPER: &str = env!("CARGO_BIN_EXE_myclaw-executor-helper");
/// Longest wait for something to happen, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What this process knows of the helper's tool.
struct Shape(ToolSchema);

impl Tool for Shape {
    fn schema(&self) -> &ToolSchema {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        panic!("the tool must run in the helper")
    }
}

struct Place {
    directory: TempDir,
    executor: Arc<Executor>,
    tool: Arc<dyn Tool>,
    cancel: CancellationToken,
    updates: Mutex<Vec<ToolUpdate>>,
}

impl Place {
    fn new(role: &str) -> Self {
        Self::with(role, |_| {})
    }

    fn with(role: &str, change: impl FnOnce(&mut Launch)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("workspace")).unwrap();
        let mut confinement = Confinement::new(Level::Landlock, root.join("workspace"));
        confinement.read_only.push(HELPER.into());
        let mut launch = Launch {
            sandbox: Sandbox::new(HELPER, [OsString::from("__sandbox-exec")]),
            confinement,
            program: HELPER.into(),
            arguments: vec![role.into()],
            environment: EnvironmentPolicy::inherited(),
            setup: json!("test"),
            scratch: root.join("files"),
            idle: PATIENCE,
            call_limit: PATIENCE,
        };
        change(&mut launch);
        let executor = Executor::new(launch);
        let parameters = json!({"type": "object"});
        let schema = ToolSchema { name: "test".to_owned(), description: String::new(), parameters };
        let tool = executor.wrap(Arc::new(Shape(schema)));
        let cancel = CancellationToken::new();
        Self { directory, executor, tool, cancel, updates: Mutex::default() }
    }

    async fn call(&self, action: &str) -> Result<ToolOutput, ToolError> {
        let context = ToolContext {
            working_directory: self.directory.path().join("workspace"),
            artifact_directory: self.directory.path().join("files"),
            max_result_chars: 1234,
            workspace_only: false,
            closed: Default::default(),
            turn: TurnId::generate(),
        };
        let mut arguments = Map::new();
        arguments.insert("do".to_owned(), json!(action));
        let on_update = |update: ToolUpdate| self.updates.lock().unwrap().push(update);
        let prepared = PreparedCall::new(&*self.tool, "call_1", arguments, &context)?;
        let call = self.tool.execute(ToolInvocation {
            call: &prepared,
            on_update: &on_update,
            context: &context,
            cancel: self.cancel.clone(),
        });
        // A call that is never answered fails its test.
        tokio::time::timeout(PATIENCE, call).await.unwrap()
    }

    async fn text(&self, action: &str) -> String {
        match &self.call(action).await.unwrap().content[..] {
            [ContentBlock::Text(text)] => text.text.clone(),
            other => panic!("not one text: {other:?}"),
        }
    }

    async fn failure(&self, action: &str) -> String {
        match self.call(action).await {
            Err(ToolError::Failed(text)) => text,
            other => panic!("{action}: {other:?}"),
        }
    }

    /// Runs a command that can be written to.
    async fn command(&self) -> Result<Finished, ExecError> {
        let spec = ChildSpec::new("true", self.directory.path().join("workspace"));
        let (_handle, link) = attach(Attachment::Pipe);
        let mut ignore = |_: OutputPiece<'_>| {};
        let running = self.executor.run(spec, link, &self.cancel, &mut ignore);
        tokio::time::timeout(PATIENCE, running).await.unwrap()
    }

    /// Runs a command that stops the helper, its parent, and keeps running.
    async fn stop_helper(&self, limit: Option<Duration>) -> String {
        let mut spec = ChildSpec::new("bash", self.directory.path().join("workspace"));
        spec.args =
            ["-c", "kill -STOP $PPID; echo stopped; exec sleep 1000"].map(OsString::from).to_vec();
        spec.timeout = limit;
        let (_handle, link) = attach(Attachment::Pipe);
        let mut ignore = |_: OutputPiece<'_>| {};
        let running = self.executor.run(spec, link, &self.cancel, &mut ignore);
        let ended = tokio::time::timeout(PATIENCE, running).await.unwrap();
        ended.unwrap_err().to_string()
    }

    fn temporary_directories(&self) -> usize {
        std::fs::read_dir(self.directory.path().join("files")).map_or(0, Iterator::count)
    }
}

fn is_running(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what} never happened");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_call_runs_in_the_helper_and_returns_what_the_tool_returns() {
    let place = Place::new("serve");
    let workspace = place.directory.path().canonicalize().unwrap().join("workspace");
    assert_eq!(place.text("describe").await, format!("call_1 1234 Ok({workspace:?})"));
    assert_eq!(place.failure("fail").await, "as demanded");
    assert_eq!(place.text("progress").await, "done");
    let update = |number: u32| ToolUpdate {
        text: format!("step {number}"),
        details: Some(json!({"number": number})),
    };
    assert_eq!(*place.updates.lock().unwrap(), [update(0), update(1), update(2)]);
}

#[tokio::test]
async fn calls_at_the_same_time_share_one_helper() {
    let place = Place::new("serve");
    let calls = futures_util::future::join_all((0..8).map(|_| place.text("pid"))).await;
    assert!(calls.iter().all(|pid| *pid == calls[0]), "{calls:?}");
    assert_eq!(place.temporary_directories(), 1);
}

#[tokio::test]
async fn a_helper_that_dies_fails_its_calls_and_is_replaced() {
    let place = Place::new("serve");
    let first = place.text("pid").await;
    let (waiting, dying) = tokio::join!(place.failure("wait"), async {
        until("the other call", || !place.updates.lock().unwrap().is_empty()).await;
        place.failure("die").await
    });
    for text in [waiting, dying] {
        assert!(text.contains("exit code 9") && text.contains("starts a new helper"), "{text}");
    }
    let second = place.text("pid").await;
    assert_ne!(first, second);
    until("the old directory goes", || place.temporary_directories() == 1).await;
}

#[tokio::test]
async fn a_tool_that_panics_fails_only_its_call() {
    let place = Place::new("serve");
    let pid = place.text("pid").await;
    assert!(place.failure("panic").await.contains("failed inside"));
    assert_eq!(place.text("pid").await, pid);
}

#[tokio::test]
async fn what_only_a_model_or_a_provider_may_write_does_not_get_through() {
    let place = Place::new("serve");
    let signed = place.call("signed").await.unwrap();
    assert_eq!(signed.content, [ContentBlock::text("words")]);
    let picture = place.call("picture").await.unwrap();
    assert!(matches!(picture.content[..], [ContentBlock::Image(_)]));
    for action in ["strange picture", "broken picture", "think", "many", "large details"] {
        let text = place.failure(action).await;
        assert!(text.contains("cannot be used"), "{action}: {text}");
    }
    assert!(place.failure("large").await.contains("too long"));
}

#[tokio::test]
async fn a_helper_that_breaks_the_rules_is_ended() {
    for (rule, reason) in [
        ("unknown call", "which does not wait"),
        ("unknown progress", "which does not wait"),
        ("twice", "began twice"),
        ("output of a call", "mixed up calls and commands"),
        ("end of a call", "mixed up calls and commands"),
        ("input of a call", "mixed up calls and commands"),
        ("output of nobody", "which does not wait"),
        ("unknown reply", "unknown variant"),
        ("no json", "key must be a string"),
        ("too long", "too long"),
    ] {
        let place = Place::new(rule);
        let text = place.failure("anything").await;
        assert!(text.contains(reason), "{rule}: {text}");
        until("its directory goes", || place.temporary_directories() == 0).await;
    }
    // The first result counts; the second ends the helper.
    let place = Place::new("second result");
    assert!(place.call("anything").await.unwrap().content.is_empty());
    until("its directory goes", || place.temporary_directories() == 0).await;
}

#[tokio::test]
async fn a_helper_that_breaks_the_rules_for_commands_is_ended() {
    for (rule, reason) in [
        ("no base64", "no base 64"),
        ("too much output", "too much output at once"),
        ("took twice", "took input twice"),
        ("result of a command", "mixed up calls and commands"),
        ("update of a command", "mixed up calls and commands"),
    ] {
        let place = Place::new(&format!("command: {rule}"));
        let text = place.command().await.unwrap_err().to_string();
        assert!(text.contains(reason), "{rule}: {text}");
        until("its directory goes", || place.temporary_directories() == 0).await;
    }
    // These end the command, and not the helper.
    for rule in ["large tail", "many left"] {
        let text = Place::new(&format!("command: {rule}")).command().await.unwrap_err();
        assert!(text.to_string().contains("too large"), "{rule}: {text}");
    }
    let text = Place::new("command: long failure").command().await.unwrap_err().to_string();
    assert!(text.chars().count() < 1_100 && !text.contains('\u{1b}'), "{text}");
    let finished = Place::new("command: endless count").command().await.unwrap();
    assert_eq!((finished.output.tail.as_str(), finished.output.total_bytes), ("x", u64::MAX));
    assert_eq!(finished.left_running[0].name, "x[2J", "without control characters");
    let place = Place::new("command: ended twice");
    assert_eq!(place.command().await.unwrap().output.tail, "x", "the first end counts");
    until("its directory goes", || place.temporary_directories() == 0).await;
}

#[tokio::test]
async fn a_helper_that_cannot_start_fails_the_call_with_the_reason() {
    let missing = |launch: &mut Launch| launch.program = "/no/such/program".into();
    let hidden = |launch: &mut Launch| launch.confinement.workspace.push("missing");
    let no_name = |launch: &mut Launch| launch.setup = Value::Null;
    let closed = |launch: &mut Launch| launch.confinement.read_only.clear();
    let places = [
        (Place::new("version"), "version"),
        (Place::new("end"), "something is missing here"),
        (Place::with("serve", missing), "/no/such/program"),
        (Place::with("serve", hidden), "No such file"),
        (Place::with("serve", no_name), "not a name"),
        (Place::with("serve", closed), "the sandbox may not execute it"),
    ];
    for (place, reason) in places {
        let text = place.failure("pid").await;
        assert!(text.contains(reason) && text.contains("Nothing was run"), "{reason}: {text}");
        let error = place.executor.start().await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        until("its directory goes", || place.temporary_directories() == 0).await;
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_and_the_helper_stays() {
    let place = Place::new("serve");
    let pid = place.text("pid").await;
    let (result, ()) = tokio::join!(place.call("wait"), async {
        until("the call begins", || !place.updates.lock().unwrap().is_empty()).await;
        place.cancel.cancel();
    });
    assert_eq!(result, Err(ToolError::Aborted("cancelled".to_owned())));
    let cancelled = place.call("pid").await;
    assert!(matches!(cancelled, Err(ToolError::Aborted(_))), "{cancelled:?}");
    assert!(is_running(&pid));
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_the_helper_with_all_it_started() {
    let place = Place::new("serve");
    let helper = place.text("pid").await;
    let started = place.text("start").await;
    let given_up = tokio::select! {
        result = place.call("ignore") => panic!("{result:?}"),
        () = until("the call begins", || !place.updates.lock().unwrap().is_empty()) => true,
    };
    assert!(given_up);
    until("all end", || !is_running(&helper) && !is_running(&started)).await;
    assert_ne!(place.text("pid").await, helper);
}

/// State `T` in `/proc`: stopped by a signal.
fn is_stopped(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && line.contains('T'))
}

#[tokio::test]
async fn a_command_that_stops_its_helper_ends_in_time() {
    let place = Place::new("serve");
    let (helper, started) = (place.text("pid").await, place.text("start").await);
    let problem = place.stop_helper(Some(Duration::from_millis(10))).await;
    assert!(problem.contains("took longer than its limit"), "{problem}");
    until("all end", || !is_running(&helper) && !is_running(&started)).await;
    assert_ne!(place.text("pid").await, helper);
}

#[tokio::test]
async fn a_command_that_stops_its_helper_ends_when_it_is_cancelled() {
    let place = Place::new("serve");
    let helper = place.text("pid").await;
    let (problem, ()) = tokio::join!(place.stop_helper(None), async {
        until("the helper is stopped", || is_stopped(&helper)).await;
        place.cancel.cancel();
    });
    assert!(problem.contains("given up"), "{problem}");
    until("all end", || !is_running(&helper)).await;
}

/// No reply, and no room for requests.
#[tokio::test]
async fn a_call_to_a_stopped_helper_ends_in_time() {
    let soon = |launch: &mut Launch| launch.call_limit = Duration::from_millis(10);
    let place = Place::with("serve", soon);
    let helper = place.text("pid").await;
    let large = "x".repeat(1 << 20);
    let (stopped, called) = tokio::join!(place.stop_helper(None), async {
        until("the helper is stopped", || is_stopped(&helper)).await;
        futures_util::future::join_all((0..80).map(|_| place.failure(&large))).await
    });
    for problem in called.iter().chain([&stopped]) {
        assert!(problem.contains("took longer than its limit"), "{problem}");
    }
    until("all end", || !is_running(&helper)).await;
    assert_ne!(place.text("pid").await, helper);
}

#[tokio::test]
async fn everything_ends_with_the_executor() {
    let place = Place::new("serve");
    let (helper, started) = (place.text("pid").await, place.text("start").await);
    drop(place);
    until("all end", || !is_running(&helper) && !is_running(&started)).await;
}

#[tokio::test]
async fn an_idle_helper_ends_unless_something_runs_in_it() {
    let soon = |launch: &mut Launch| launch.idle = Duration::from_millis(20);
    let place = Place::with("serve", soon);
    let helper = place.text("pid").await;
    until("the idle helper ends", || !is_running(&helper)).await;
    // One with a child stays, while another comes and goes.
    let started = place.text("start").await;
    let busy = place.text("pid").await;
    assert_ne!(busy, helper);
    for _ in 0..3 {
        let other = Place::with("serve", soon);
        let idle = other.text("pid").await;
        until("the other helper ends", || !is_running(&idle)).await;
    }
    assert!(is_running(&busy) && is_running(&started));
    assert_eq!(place.text("pid").await, busy);
}

#[tokio::test]
async fn the_levels_with_other_programs_work_as_well() {
    if probe().bubblewrap.is_none() {
        myclaw_testkit::skip_without("bwrap is not installed (apt install bubblewrap)");
        return;
    }
    let place = Place::with("serve", |launch| launch.confinement.level = Level::Bubblewrap);
    place.executor.start().await.unwrap();
    assert_eq!(place.text("progress").await, "done");
}
