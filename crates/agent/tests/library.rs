//! The library call with nothing but a session key, a message and a config does what the program does.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use myclaw_agent::config::{Config, Environment, Paths};
use myclaw_agent::llm::{
    AssistantMessage, CallFailure, ContentBlock, EventSink, ModelRequest, Provider, StopReason,
    ToolSchema, Usage,
};
use myclaw_agent::sessions::SessionKey;
use myclaw_agent::{
    Accepted, AgentRunEvent, Driver, Engine, FailureClass, Home, Next, RunAgentParams, Session,
    SessionCallback, SessionConfig, SessionEvent, SessionOptions, Stores, Tool, ToolError,
    ToolInvocation, ToolOutput, UndoMode, key_resolver, run_agent, run_agent_with,
};
use myclaw_config::QueueMode;
use myclaw_session::LockWait;
use myclaw_testkit::{ModelServer, Reply, Script, TempHome, WireFormat};
use myclaw_tools::{Direction, WhichTurn};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Parameters as a user of the library makes them, with these variables for those of the process.
fn params(
    home: &TempHome,
    message: &str,
    config: Value,
    variables: &[(&str, &str)],
) -> RunAgentParams {
    let mut config: Config = serde_json::from_value(config).unwrap();
    config.paths = Some(Paths::in_state_dir(home.state_directory()));
    let key = SessionKey::for_cli("main", "main");
    let no_servers = [("MYCLAW_LOCAL_SERVERS", "none")];
    let variables = no_servers.into_iter().chain(variables.iter().copied());
    RunAgentParams {
        environment: Environment::new(variables, None, None),
        ..RunAgentParams::new(key, message, Arc::new(config))
    }
}

#[tokio::test]
async fn without_any_config_the_built_in_model_uses_the_built_in_tools() {
    let home = TempHome::new();
    home.write_in_workspace("notes.txt", "remember the milk");
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let mut params = params(&home, "List the files in my workspace", json!({}), &[]);
    params.on_event = Some(Arc::new(move |event| {
        if let AgentRunEvent::ToolStart { tool_name, .. } = event.kind {
            seen.lock().unwrap().push(tool_name);
        }
    }));

    let result = run_agent(params).await.unwrap();

    assert_eq!((result.provider.as_str(), result.model.as_str()), ("builtin", "demo"));
    assert!(result.reply.contains("notes.txt"), "{}", result.reply);
    assert_eq!(*events.lock().unwrap(), ["ls"]);
}

#[tokio::test]
async fn the_key_comes_from_the_environment_and_hooks_and_address_from_the_config() {
    let server = ModelServer::start(Script::repeat(Reply::anthropic().text("Hello."))).await;
    let home = TempHome::new();
    let hook = home.path().join("hook-ran");
    let config = json!({
        "models": {"providers": {"anthropic": {"baseUrl": server.url()}}},
        "hooks": {"agent_end": [{"command": format!("touch {}", hook.display())}]},
    });
    let params = params(&home, "hello", config, &[("ANTHROPIC_API_KEY", "key-of-the-environment")]);

    assert_eq!(run_agent(params).await.unwrap().reply, "Hello.");

    let request = server.last_request();
    assert_eq!(request.header("x-api-key"), Some("key-of-the-environment"));
    let tools = request.json()["tools"].as_array().map(Vec::len);
    assert_eq!(tools, Some(14), "all built-in tools are on offer");
    assert!(hook.exists(), "the hook of the config ran");
}

#[tokio::test]
async fn a_model_that_the_config_excludes_is_not_called() {
    let server = ModelServer::start(Script::new()).await;
    let home = TempHome::new();
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agents"] = json!({"defaults": {"models": ["openai/*"]}});
    let error = run_agent(params(&home, "hello", config, &[])).await.unwrap_err();
    assert_eq!(error.class, FailureClass::Config);
    assert!(error.message.contains("agents.defaults.models"), "{error}");
    assert!(server.all_requests().is_empty());
}

/// A model in this process: calls the tool `lookup`, then answers with what the tool said.
struct InProcess;

impl Provider for InProcess {
    fn call<'a>(
        &'a self,
        request: ModelRequest<'a>,
        _cancel: &'a CancellationToken,
        _sink: EventSink<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, CallFailure>> {
        let messages = format!("{:?}", request.messages);
        let content = if messages.contains("42 degrees") {
            vec![ContentBlock::text("It is 42 degrees.")]
        } else {
            let call =
                json!({"type": "toolCall", "id": "call-1", "name": "lookup", "arguments": {}});
            vec![serde_json::from_value(call).unwrap()]
        };
        let stop_reason = if content.iter().any(|block| matches!(block, ContentBlock::Text(_))) {
            StopReason::Stop
        } else {
            StopReason::ToolUse
        };
        let message = AssistantMessage {
            content,
            api: request.model.api,
            provider: request.model.provider.clone(),
            model: request.model.id.clone(),
            usage: Usage::default(),
            stop_reason,
            error_message: None,
            timestamp: 0,
        };
        Box::pin(async move { Ok(message) })
    }
}

struct Lookup(ToolSchema);

impl Lookup {
    fn new() -> Self {
        Self(ToolSchema {
            name: "lookup".to_owned(),
            description: "Looks the temperature up.".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
        })
    }
}

impl Tool for Lookup {
    fn schema(&self) -> &ToolSchema {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text("42 degrees")) })
    }
}

#[tokio::test]
async fn a_provider_and_a_tool_of_the_callers_own_serve_a_run() {
    let home = TempHome::new();
    let keys = key_resolver(myclaw_agent::llm::HttpOptions::default());
    let engine = Engine::new(InProcess, keys);
    let own = json!({"models": {"providers": {"lab": {
        "baseUrl": "http://127.0.0.1:1", "models": [{"id": "in-process"}],
    }}}});
    let mut params = params(&home, "How warm is it?", own, &[]);
    params.tools.push(Arc::new(Lookup::new()));

    let result = run_agent_with(&engine, params).await.unwrap();

    assert_eq!(result.reply, "It is 42 degrees.");
    assert_eq!((result.provider.as_str(), result.iterations), ("lab", 2));
}

/// All paths below a directory.
fn paths_below(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| {
        let path = entry.path();
        let below = if path.is_dir() { paths_below(&path) } else { Vec::new() };
        std::iter::once(path).chain(below)
    });
    below.collect()
}

#[tokio::test]
async fn an_agent_in_memory_writes_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let below = |name: &str| directory.path().join(name);
    std::fs::create_dir(below("work")).unwrap();
    std::fs::write(below("work/notes.txt"), "remember the milk").unwrap();
    let before = paths_below(directory.path());
    let server = ModelServer::start(
        Script::new()
            .then(Reply::anthropic().tool_call("call-1", "bash", json!({"command": "sleep 1; ls"})))
            .then(Reply::anthropic().tool_call("call-2", "lookup", json!({})))
            .then_repeat(Reply::anthropic().text("Milk.")),
    )
    .await;
    let mut config: Config =
        serde_json::from_value(TempHome::config_for(server.url(), WireFormat::AnthropicMessages))
            .unwrap();
    config.paths = Some(Paths::in_state_dir(below("state")));
    let config = Arc::new(config);
    let stores = Stores::in_memory(below("scratch"));
    for message in ["What do I need?", "And now?"] {
        let key = SessionKey::for_cli("main", "main");
        let result = run_agent(RunAgentParams {
            environment: Environment::new([("MYCLAW_LOCAL_SERVERS", "none")], None, None),
            stores: Some(stores.clone()),
            system_prompt: Some("Be brief.".to_owned()),
            working_directory: Some(below("work")),
            tools: vec![Arc::new(Lookup::new())],
            ..RunAgentParams::new(key, message, Arc::clone(&config))
        })
        .await
        .unwrap();
        assert_eq!(result.reply, "Milk.");
    }
    assert_eq!(paths_below(directory.path()), before);
    assert_eq!(stores.catalog.latest(10).unwrap().1, 1);
    let last = server.last_request().json().to_string();
    for part in ["notes.txt", "42 degrees", "And now?", "Be brief."] {
        assert!(last.contains(part), "{part} is missing in {last}");
    }
}

#[tokio::test]
async fn what_tools_and_undo_need_in_memory_is_gone_with_its_scratch_directory() {
    let directory = tempfile::tempdir().unwrap();
    let below = |name: &str| directory.path().join(name);
    std::fs::create_dir(below("work")).unwrap();
    std::fs::write(below("work/notes.txt"), "remember the milk").unwrap();
    let before = paths_below(directory.path());
    let calls = [
        ("write", json!({"path": "notes.txt", "content": "remember the bread"})),
        ("bash", json!({"command": "seq 1 100000"})),
        ("memory_search", json!({"query": "bread"})),
    ];
    let mut script = Script::new();
    for (name, arguments) in calls {
        script = script.then(Reply::anthropic().tool_call(format!("call-{name}"), name, arguments));
    }
    let server = ModelServer::start(script.then(Reply::anthropic().text("Bread."))).await;
    let mut config: Config =
        serde_json::from_value(TempHome::config_for(server.url(), WireFormat::AnthropicMessages))
            .unwrap();
    config.paths = Some(Paths::in_state_dir(below("state")));
    let (config, scratch) = (Arc::new(config), tempfile::tempdir().unwrap());
    let stores = Stores::in_memory(scratch.path().join("of-tools"));
    let environment = Environment::new([("MYCLAW_LOCAL_SERVERS", "none")], None, None);
    let key = SessionKey::for_cli("main", "main");
    let result = run_agent(RunAgentParams {
        environment: environment.clone(),
        stores: Some(stores.clone()),
        system_prompt: Some("Be brief.".to_owned()),
        working_directory: Some(below("work")),
        ..RunAgentParams::new(key.clone(), "Change my notes.", Arc::clone(&config))
    });
    assert_eq!(result.await.unwrap().reply, "Bread.");
    let results = server.last_request().json().to_string();
    let output = results.split(&format!("{}/", scratch.path().display())).nth(1);
    let output = output.and_then(|rest| rest.split(".log").next()).expect("a full output");
    let output = scratch.path().join(format!("{output}.log"));
    assert!(std::fs::read_to_string(output).unwrap().ends_with("100000\n"));

    let home = Home::new(environment, config.paths.clone().unwrap()).with_stores(stores);
    let options = SessionOptions {
        session: Some(key.to_string()),
        directory: Some(below("work")),
        ..SessionOptions::default()
    };
    let session = SessionConfig::new(home, config, &options).unwrap();
    let notes = || std::fs::read_to_string(below("work/notes.txt")).unwrap();
    assert_eq!(notes(), "remember the bread");
    let undone = session.undo(Direction::Undo, WhichTurn::Next, UndoMode::Apply).unwrap();
    assert_eq!((undone.files.len(), notes().as_str()), (1, "remember the milk"));
    drop(scratch);
    assert_eq!(paths_below(directory.path()), before);
}

/// A session whose listener gets every event as JSON.
fn session(
    home: &TempHome,
    server: &ModelServer,
    listener: impl Fn(&Value) + Send + Sync + 'static,
) -> Arc<Session> {
    let config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    let params = params(home, "", config, &[]);
    let paths = Paths::in_state_dir(home.state_directory());
    let home = Home::new(params.environment, paths);
    let config = SessionConfig::new(home, params.config, &SessionOptions::default()).unwrap();
    let callback: SessionCallback = Arc::new(move |_, event| {
        let event = match event {
            SessionEvent::Begin(_) => json!({"type": "begin"}),
            SessionEvent::Run(event) => json!(event),
            SessionEvent::End(outcome, next) => {
                json!({"type": "end", "failed": outcome.is_err(), "idle": next == Next::Idle})
            }
        };
        listener(&event);
    });
    let engine = myclaw_agent::engine(config.home.http_options());
    let driver = Driver::new(engine, CancellationToken::new(), callback, None);
    Session::open(driver, config, &SessionOptions::default())
}

/// Waits until `found` says so.
fn wait_until(found: impl Fn() -> bool) {
    let is_over = (0..2_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        found()
    });
    assert!(is_over, "this did not happen within ten seconds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_interrupt_that_the_beginning_run_takes_is_answered_by_it() {
    let home = TempHome::new();
    let is_sent = Arc::new(AtomicBool::new(false));
    let sent = Arc::clone(&is_sent);
    let server = ModelServer::start(Script::answer_with(move |_, _| {
        wait_until(|| sent.load(Ordering::SeqCst));
        Reply::anthropic().text("Here.").into()
    }))
    .await;
    let events: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = Arc::clone(&events);
    let has = move |kind: &str| seen.lock().unwrap().iter().any(|event| event["type"] == kind);
    let lock: Arc<Mutex<Option<Box<dyn Send>>>> = Arc::default();
    let (recorded, held, has_taken) = (Arc::clone(&events), Arc::clone(&lock), has.clone());
    let session = session(&home, &server, move |event| {
        recorded.lock().unwrap().push(event.clone());
        // The interrupt is on disk. The run opens the session and takes it before the sender continues.
        if event["type"] == "queued" {
            held.lock().unwrap().take();
            wait_until(|| has_taken("taken"));
        }
    });
    let sessions = Arc::clone(session.config().home.sessions());
    *lock.lock().unwrap() = Some(Box::new(sessions.open(session.key(), LockWait::Fail).unwrap()));
    session.resume();
    wait_until(|| has("notice") || has("run_start"));

    let message = vec![ContentBlock::text("hello")];
    let accepted = session.send(message, Some(QueueMode::Interrupt)).await.unwrap();

    is_sent.store(true, Ordering::SeqCst);
    assert!(matches!(accepted, Accepted::Interrupting(_)), "{accepted:?}");
    wait_until(|| events.lock().unwrap().iter().any(|event| event["idle"] == true));
    let rows = TempHome::read_lines(&home.transcript_path("main"));
    let said: Vec<_> = rows.iter().filter_map(|row| row["role"].as_str()).collect();
    assert_eq!(said, ["user", "assistant"], "{rows:#?}");
}

/// Set in the process that may have no further thread.
const ALONE: &str = "MYCLAW_TEST_ALONE";

#[test]
fn without_a_further_thread_there_is_an_error_with_advice() {
    if std::env::var_os(ALONE).is_some() {
        return run_alone();
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let name = "without_a_further_thread_there_is_an_error_with_advice";
    command.args(["--exact", name, "--test-threads=1", "--nocapture"]).env(ALONE, "1");
    let output = TempHome::new().without_further_threads(&command).output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    for call in ["run_agent: ", "session: "] {
        let line = shown.lines().find_map(|line| line.strip_prefix(call)).unwrap_or(&shown);
        assert!(line.contains("ulimit -u") && !line.contains("panic"), "{call}{line}");
    }
}

/// Calls the library in a runtime that has no thread for blocking calls.
fn run_alone() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let home = TempHome::new();
    let error = runtime.block_on(run_agent(params(&home, "hello", json!({}), &[]))).unwrap_err();
    println!("\nrun_agent: {error}");
    let params = params(&home, "hello", json!({}), &[]);
    let error = runtime.block_on(async {
        let home = Home::new(params.environment.clone(), params.config.paths.clone().unwrap());
        let options = SessionOptions::default();
        let engine = myclaw_agent::engine(home.http_options());
        let config = SessionConfig::new(home, params.config, &options).unwrap();
        let session = Session::open(Driver::foreground(engine, None), config, &options);
        let foreground = myclaw_agent::Foreground {
            cancel: CancellationToken::new(),
            on_event: Arc::new(|_| {}),
        };
        session.run(Some(params.user_message), foreground).await.unwrap_err()
    });
    println!("\nsession: {error}");
    runtime.shutdown_background();
}
