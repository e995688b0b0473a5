//! A run against the scripted server, with a clock that never sleeps for real and tools whose behaviour a test sets.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails the test that uses it")]
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    reason = "each test file uses a part of it"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_agent::{Home, SessionConfig, SessionOptions};
use myclaw_config::{Config, Environment, Paths};
use myclaw_engine::{
    ActiveModel, AuthProfile, Clock, Engine, RunError, RunEvent, RunParams, RunResult, Tool,
    ToolError, ToolInvocation, ToolOutput,
};
use myclaw_llm::{
    Api, ContentBlock, HttpOptions, InputKind, Model, Price, Quirks, ThinkingLevels, ToolSchema,
    Variables,
};
use myclaw_session::SessionKey;
use myclaw_testkit::{ModelServer, RecordedRequest, Script, TempHome, WireFormat};
use serde_json::{Value, json};

/// A home, a server, and what the run is given.
pub struct Bench {
    pub home: TempHome,
    pub server: ModelServer,
    pub format: WireFormat,
    pub clock: Arc<FastClock>,
    pub events: Arc<Mutex<Vec<RunEvent>>>,
    pub config: Config,
    pub profiles: Vec<&'static str>,
    pub context_window: u64,
}

/// Time that passes only when someone sleeps.
#[derive(Default)]
pub struct FastClock {
    pub now_ms: AtomicU64,
    pub sleeps: Mutex<Vec<Duration>>,
}

impl Clock for FastClock {
    fn now_ms(&self) -> u64 {
        // Each look takes a millisecond, so that no two entries have the same time.
        1_767_225_600_000 + self.now_ms.fetch_add(1, Ordering::SeqCst)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.sleeps.lock().unwrap().push(duration);
        self.now_ms.fetch_add(duration.as_millis() as u64, Ordering::SeqCst);
        Box::pin(async {})
    }
}

impl Bench {
    pub async fn new(format: WireFormat, script: impl Into<Script>) -> Self {
        Self {
            home: TempHome::new(),
            server: ModelServer::start(script).await,
            format,
            clock: Arc::default(),
            events: Arc::default(),
            config: Config::default(),
            profiles: vec!["key-one"],
            context_window: 200_000,
        }
    }

    pub fn model(&self) -> Model {
        let (api, provider, base_url) = match self.format {
            WireFormat::AnthropicMessages => {
                (Api::AnthropicMessages, "anthropic", self.server.url().to_owned())
            }
            WireFormat::OpenAiCompletions => {
                (Api::OpenaiCompletions, "openai", format!("{}/v1", self.server.url()))
            }
            WireFormat::GoogleGenerativeAi => {
                (Api::GoogleGenerativeAi, "google", format!("{}/v1beta", self.server.url()))
            }
            WireFormat::BedrockConverse => {
                (Api::BedrockConverse, "amazon-bedrock", self.server.url().to_owned())
            }
            WireFormat::OpenAiResponses => {
                (Api::OpenaiResponses, "openai", format!("{}/v1", self.server.url()))
            }
        };
        Model {
            id: "test-model".to_owned(),
            provider: provider.to_owned(),
            api,
            base_url,
            reasoning: false,
            thinking_levels: ThinkingLevels::default(),
            input: vec![InputKind::Text, InputKind::Image],
            price: Some(Price { input: 1.0, output: 2.0, cache_read: 0.1, cache_write: 1.25 }),
            context_window: self.context_window,
            max_output: 8_192,
            quirks: Quirks::default(),
        }
    }

    pub fn params(&self, message: &str) -> RunParams {
        let profiles = self
            .profiles
            .iter()
            .map(|key| AuthProfile::with_key(format!("profile-{key}"), (*key).to_owned().into()))
            .collect();
        let events = Arc::clone(&self.events);
        let models = vec![ActiveModel::new(self.model(), profiles)];
        let user_message = Some(message).filter(|message| !message.is_empty());
        RunParams {
            user_message: user_message.map(ContentBlock::text).into_iter().collect(),
            clock: self.clock.clone(),
            tools: vec![Arc::new(EchoTool::new("echo"))],
            on_event: Some(Arc::new(move |event| events.lock().unwrap().push(event))),
            ..self.configured(&SessionKey::for_cli("main", "test"), models)
        }
    }

    /// What the config gives for a run in a session, without its hooks and tools.
    pub fn configured(&self, session_key: &SessionKey, models: Vec<ActiveModel>) -> RunParams {
        let paths = Paths::in_state_dir(self.home.state_directory());
        let config = Arc::new(Config { paths: Some(paths.clone()), ..self.config.clone() });
        let home = Home::new(Environment::default(), paths);
        let options =
            SessionOptions { session: Some(session_key.to_string()), ..SessionOptions::default() };
        SessionConfig::new(home, config, &options).unwrap().bare_run(models)
    }

    pub async fn run(&self, message: &str) -> Result<RunResult, RunError> {
        run_agent(self.params(message)).await
    }

    /// The names of the events so far, each run of equal ones once.
    pub fn event_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .events
            .lock()
            .unwrap()
            .iter()
            .map(|event| json!(event)["type"].as_str().unwrap().to_owned())
            .collect();
        names.dedup();
        names
    }

    /// The events of a type, without their session and run.
    pub fn events_named(&self, name: &str) -> Vec<Value> {
        self.events
            .lock()
            .unwrap()
            .iter()
            .map(|event| json!(event.kind))
            .filter(|event| event["type"] == name)
            .collect()
    }

    /// The input tokens of each model call, as its event says.
    pub fn input_of_events(&self) -> Vec<u64> {
        let events = self.events_named("llm_usage");
        events.iter().map(|event| event["usage"]["input"].as_u64().unwrap()).collect()
    }

    /// The rows of the only transcript, without its header and the sizes that a model refused.
    pub fn rows(&self) -> Vec<Value> {
        let rows = self.home.only_transcript().into_iter().skip(1);
        rows.filter(|row| row["type"] != "refusal").collect()
    }
}

/// An engine that calls the models of a [`Bench`].
pub fn engine() -> Engine {
    let variables = Variables::from_process();
    myclaw_agent::engine(HttpOptions { variables, ..HttpOptions::default() })
}

/// Runs one turn.
pub async fn run_agent(params: RunParams) -> Result<RunResult, RunError> {
    engine().run(params).await
}

/// Gives its `text` argument back. `text: "wait"` waits for the abort, `"fail"` fails, `"long"` gives 60,000 characters.
pub struct EchoTool {
    schema: ToolSchema,
    pub runs: Arc<AtomicU64>,
}

impl EchoTool {
    pub fn new(name: &str) -> Self {
        Self {
            schema: ToolSchema {
                name: name.to_owned(),
                description: "Gives the text back.".to_owned(),
                parameters: json!({
                    "type": "object",
                    "properties": {"text": {"type": "string"}},
                    "required": ["text"],
                    "additionalProperties": false,
                }),
            },
            runs: Arc::default(),
        }
    }
}

impl Tool for EchoTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let text = invocation.call.arguments["text"].as_str().unwrap().to_owned();
        Box::pin(async move {
            match text.as_str() {
                "fail" => Err(ToolError::Failed("it is broken; try another text".to_owned())),
                "wait" => {
                    invocation.cancel.cancelled().await;
                    Err(ToolError::Aborted("half done".to_owned()))
                }
                "long" => Ok(ToolOutput::text("ä".repeat(60_000))),
                _ => Ok(ToolOutput {
                    details: Some(json!({"shown": text.len()})),
                    ..ToolOutput::text(format!("echo: {text}"))
                }),
            }
        })
    }
}

/// A request for a summary offers no tools.
pub fn asks_for_summary(request: &RecordedRequest) -> bool {
    request.json()["tools"].is_null()
}
