//! A run against the scripted server, with a clock that never sleeps for real and tools whose behaviour a test sets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_auth::{AuthStore, CooldownRules, KeyResolver};
use myclaw_config::{Config, Paths, ThinkingDefault};
use myclaw_engine::{
    ActiveModel, AuthProfile, Clock, ConfigKeys, CutAnswers, Engine, Providers, RefusalRule,
    RunError, RunEvent, RunParams, RunResult, RunRules, RunStores, Tool, ToolError, ToolInvocation,
    ToolOutput,
};
use myclaw_llm::{
    Api, CallLimits, ContentBlock, HttpOptions, HttpProvider, InputKind, Model, Price, Provider,
    Quirks, ThinkingLevels, ToolSchema, Variables,
};
use myclaw_session::{DaySpending, PeerKind, SessionKey, SessionStore, SideFiles};
use myclaw_testkit::{ModelServer, RecordedRequest, Script, TempHome, WireFormat};
use serde_json::{Value, json};

/// A home, a server, and what the run is given.
pub(crate) struct Bench {
    pub(crate) home: TempHome,
    pub(crate) server: ModelServer,
    pub(crate) format: WireFormat,
    pub(crate) clock: Arc<FastClock>,
    pub(crate) events: Arc<Mutex<Vec<RunEvent>>>,
    pub(crate) config: Config,
    pub(crate) profiles: Vec<&'static str>,
    pub(crate) context_window: u64,
}

/// Time that passes only when someone sleeps.
#[derive(Default)]
pub(crate) struct FastClock {
    pub(crate) now_ms: AtomicU64,
    pub(crate) sleeps: Mutex<Vec<Duration>>,
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
    pub(crate) async fn new(format: WireFormat, script: impl Into<Script>) -> Self {
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

    pub(crate) fn model(&self) -> Model {
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

    pub(crate) fn params(&self, message: &str) -> RunParams {
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

    /// What the config gives for a run in a session. Programs get it from the crate `agent`, which takes a minute to build and
    /// changes with this one.
    pub(crate) fn configured(&self, key: &SessionKey, models: Vec<ActiveModel>) -> RunParams {
        let paths = Paths::in_state_dir(self.home.state_directory());
        let config = Config { paths: Some(paths.clone()), ..self.config.clone() };
        let agent = config.resolve_agent(None).unwrap();
        let sessions = Arc::new(SessionStore::new(paths.sessions_dir()));
        let stores = RunStores {
            side_files: Arc::clone(&sessions) as Arc<dyn SideFiles>,
            sessions,
            spending: Arc::new(DaySpending::new(paths.state_dir().join("usage.json"))),
            keys: Some(AuthStore::in_agent_dir(&paths.agent_dir(&agent.id))),
        };
        let parts = key.parts();
        let thinking = agent.thinking.map(ThinkingDefault::as_str);
        let rules = RunRules {
            thinking: thinking.and_then(|level| level.parse().ok()).unwrap_or_default(),
            max_iterations: agent.max_iterations,
            max_retries: agent.max_retries,
            cut_answers: CutAnswers::default(),
            max_tool_result_chars: agent.max_tool_result_chars,
            workspace_only: config.tools.fs.workspace_only,
            closed: Arc::default(),
            known_secrets: Arc::default(),
            compaction: agent.compaction,
            refusals: RefusalRule::default(),
            context_pruning: agent.context_pruning,
            history_limit: config
                .history_limit(&parts.channel, parts.peer_kind == PeerKind::Direct),
            limits: agent.limits,
            shared_cost: None,
            steering: agent.steering_mode,
            follow_ups: agent.follow_up_mode,
            quiet: Duration::from_millis(config.messages.queue.debounce_ms),
            lanes: config.agents.defaults.lanes,
            call: CallLimits::default(),
            time_zone: agent.user_timezone,
            cooldowns: CooldownRules::from(&config.auth.cooldowns),
            config_keys: ConfigKeys::new(move |bound| {
                config.deciding_key(&agent.id, bound.config_key()).to_string()
            }),
        };
        RunParams::go_on(key.clone(), models, rules, stores, agent.workspace)
    }

    pub(crate) async fn run(&self, message: &str) -> Result<RunResult, RunError> {
        run_agent(self.params(message)).await
    }

    /// The names of the events so far, each run of equal ones once.
    pub(crate) fn event_names(&self) -> Vec<String> {
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
    pub(crate) fn events_named(&self, name: &str) -> Vec<Value> {
        self.events
            .lock()
            .unwrap()
            .iter()
            .map(|event| json!(event.kind))
            .filter(|event| event["type"] == name)
            .collect()
    }

    /// The input tokens of each model call, as its event says.
    pub(crate) fn input_of_events(&self) -> Vec<u64> {
        let events = self.events_named("llm_usage");
        events.iter().map(|event| event["usage"]["input"].as_u64().unwrap()).collect()
    }

    /// The rows of the only transcript, without its header and the sizes that a model refused.
    pub(crate) fn rows(&self) -> Vec<Value> {
        let rows = self.home.only_transcript().into_iter().skip(1);
        rows.filter(|row| row["type"] != "refusal").collect()
    }
}

/// An engine that calls the models of a [`Bench`].
pub(crate) fn engine() -> Engine {
    let variables = Variables::from_process();
    let keys = KeyResolver::new(variables.iter());
    let http = HttpProvider::new(HttpOptions { variables, ..HttpOptions::default() });
    Engine::new(Http(http.with_access(myclaw_llm_cloud::access())), keys)
}

/// The providers of models behind HTTP.
struct Http(HttpProvider);

impl Providers for Http {
    fn provider(&self, _model: &Model) -> &dyn Provider {
        &self.0
    }
}

/// Runs one turn.
pub(crate) async fn run_agent(params: RunParams) -> Result<RunResult, RunError> {
    engine().run(params).await
}

/// Gives its `text` argument back. `text: "wait"` waits for the abort, `"fail"` fails, `"long"` gives 60,000 characters.
pub(crate) struct EchoTool {
    schema: ToolSchema,
    pub(crate) runs: Arc<AtomicU64>,
}

impl EchoTool {
    pub(crate) fn new(name: &str) -> Self {
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
pub(crate) fn asks_for_summary(request: &RecordedRequest) -> bool {
    request.json()["tools"].is_null()
}
