//! Sets a run up, runs its turn, and tells how it ended.

use std::path::PathBuf;

use myclaw_config::{AgentSettings, ConfigError, ThinkingDefault};
use myclaw_llm::{
    Api, CallLimits, DemoProvider, HttpOptions, HttpProvider, Provider, ThinkingLevel, ToolSchema,
    Variables, parse_model_ref,
};
use myclaw_session::{LockWait, SessionStore};

use crate::conversation::{Conversation, Opening};
use crate::failover::ProfileRotation;
use crate::prompt::{PromptParts, build_system_prompt};
use crate::turn::{Recovery, Tally, Turn, TurnLimits, input_budget};
use crate::workspace::{Bootstrap, prepare_workspace};
use crate::{
    AgentRunEvent, AgentStart, CompactionReport, ModelChoice, RunAgentParams, RunError, RunResult,
    ToolContext,
};

/// Runs turns. Keep one for several turns: it keeps the connection to the model's server open between them.
pub struct Engine {
    http: HttpProvider,
    builtin: DemoProvider,
}

/// Runs one turn: see [`Engine::run`].
///
/// # Errors
/// See [`Engine::run`].
pub async fn run_agent(params: RunAgentParams) -> Result<RunResult, RunError> {
    Engine::new().run(params).await
}

impl Engine {
    /// Opens no connection yet. Credentials of cloud providers are looked for in the variables of this process.
    pub fn new() -> Self {
        Self::with_variables(Variables::from_process())
    }

    /// Like [`Engine::new`], with other variables.
    pub fn with_variables(variables: Variables) -> Self {
        Self { http: HttpProvider::new(http_options(variables)), builtin: DemoProvider }
    }

    /// Runs one turn: takes the user message, calls the model, runs tools until the model answers, and returns when
    /// everything is on disk.
    ///
    /// # Errors
    /// See [`RunError`]. Whatever was said and done until then is in the session, which stays valid.
    pub async fn run(&self, params: RunAgentParams) -> Result<RunResult, RunError> {
        let setup = Setup::new(&params)?;
        let opened = open(&params, &setup).await?;
        for notice in &opened.bootstrap.notices {
            if let Some(on_event) = &params.on_event {
                on_event(AgentRunEvent::Notice { message: notice.clone() });
            }
        }
        let thinking = Thinking::new(&params, &setup);
        let mut turn = self.turn(&params, &setup, opened, thinking.level);
        if let Some(notice) = thinking.notice {
            turn.notice(notice);
        }
        let outcome = turn.run().await;
        turn.close(outcome).await
    }

    /// Puts a summary in the place of all but the newest messages of a session, without a turn. The session, the
    /// settings and the model are those of `params`; its user message is not used. `focus` is what the summary should
    /// pay attention to.
    ///
    /// # Errors
    /// See [`RunError`]. The session is as it was then.
    pub async fn compact(
        &self,
        params: RunAgentParams,
        focus: Option<&str>,
    ) -> Result<CompactionReport, RunError> {
        let setup = Setup::new(&params)?;
        let opened = open(&params, &setup).await?;
        self.turn(&params, &setup, opened, ThinkingLevel::Off).compact_by_hand(focus).await
    }

    fn turn<'a>(
        &'a self,
        params: &'a RunAgentParams,
        setup: &'a Setup,
        opened: Opened,
        thinking: ThinkingLevel,
    ) -> Turn<'a> {
        let Setup { settings, model, store } = setup;
        let tool_schemas: Vec<ToolSchema> =
            params.tools.iter().map(|tool| tool.schema().clone()).collect();
        let working_directory =
            params.working_directory.clone().unwrap_or_else(|| settings.workspace.clone());
        let system_prompt = build_system_prompt(&PromptParts {
            bootstrap: &opened.bootstrap.files,
            tools: &tool_schemas,
            working_directory: &working_directory,
            model: &model.reference(),
        });
        let timeouts = &params.config.models.timeouts;
        Turn {
            provider: self.provider(model.model.api),
            model,
            thinking,
            store: store.clone(),
            conversation: opened.conversation,
            opening: opened.opening,
            start: AgentStart { system_prompt, user_message: params.user_message.clone() },
            tool_schemas,
            tool_context: ToolContext {
                working_directory,
                artifact_directory: store.artifact_directory(&params.session_key),
                max_result_chars: settings.max_tool_result_chars,
                workspace_only: params.config.tools.fs.workspace_only,
            },
            limits: TurnLimits {
                max_iterations: settings.max_iterations.limit(),
                max_retries: settings.max_retries,
                compaction: settings.compaction.clone(),
                context_pruning: settings.context_pruning,
                call: CallLimits {
                    connect: timeouts.connect(),
                    first_event: timeouts.first_event(),
                    between_events: timeouts.between_events(),
                },
            },
            rotation: ProfileRotation::new(&model.profiles),
            tally: Tally::default(),
            recovery: Recovery::default(),
            params,
        }
    }

    fn provider(&self, api: Api) -> &dyn Provider {
        match api {
            Api::AnthropicMessages
            | Api::OpenaiCompletions
            | Api::OpenaiResponses
            | Api::GoogleGenerativeAi
            | Api::BedrockConverse => &self.http,
            Api::Builtin => &self.builtin,
        }
    }
}

/// Servers are told which program calls, as their operators expect.
fn http_options(variables: Variables) -> HttpOptions {
    HttpOptions {
        user_agent: concat!("myclaw/", env!("CARGO_PKG_VERSION")).to_owned(),
        variables,
        ..HttpOptions::default()
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

/// What the settings say about a run.
struct Setup {
    settings: AgentSettings,
    model: ModelChoice,
    store: SessionStore,
}

impl Setup {
    fn new(params: &RunAgentParams) -> Result<Self, RunError> {
        let settings = params.config.agent_settings(params.agent.as_deref())?;
        let model = match &params.model {
            Some(model) => model.clone(),
            None => {
                let name = settings.model.as_deref().ok_or(RunError::NoModel)?;
                ModelChoice::from_config(&params.config, &parse_model_ref(name)?)
            }
        };
        if !params.config.allows_model(&model.model.provider, &model.model.id) {
            return Err(RunError::ModelNotAllowed { model: model.reference() });
        }
        let paths = params.config.paths.as_ref().ok_or(ConfigError::NoPaths)?;
        Ok(Self { settings, model, store: SessionStore::new(paths.sessions_dir()) })
    }
}

/// How much the model thinks in a run.
struct Thinking {
    level: ThinkingLevel,
    /// What to say where that is not what the user asked for.
    notice: Option<String>,
}

impl Thinking {
    fn new(params: &RunAgentParams, setup: &Setup) -> Self {
        let model = &setup.model.model;
        let configured = || setup.settings.thinking.map(thinking_level);
        let requested = params.thinking.or_else(configured).unwrap_or_default();
        let level = model.thinking_level(requested);
        let notice = params.thinking.filter(|asked| *asked != level).map(|asked| {
            let name = setup.model.reference();
            if model.reasoning {
                let offered: Vec<&str> = model
                    .offered_thinking_levels()
                    .into_iter()
                    .map(ThinkingLevel::as_str)
                    .collect();
                format!(
                    "{name} does not offer the thinking level {asked} but {}; {level} is used",
                    offered.join(", ")
                )
            } else {
                format!("{name} cannot think before it answers; the thinking level is {level}")
            }
        });
        Self { level, notice }
    }
}

fn thinking_level(configured: ThinkingDefault) -> ThinkingLevel {
    match configured {
        ThinkingDefault::Off => ThinkingLevel::Off,
        ThinkingDefault::Minimal => ThinkingLevel::Minimal,
        ThinkingDefault::Low => ThinkingLevel::Low,
        ThinkingDefault::Medium => ThinkingLevel::Medium,
        ThinkingDefault::High => ThinkingLevel::High,
        ThinkingDefault::Xhigh => ThinkingLevel::Xhigh,
    }
}

/// What the file system gave.
struct Opened {
    bootstrap: Bootstrap,
    conversation: Conversation,
    opening: Opening,
}

/// Prepares the workspace and opens the session, off the async thread.
async fn open(params: &RunAgentParams, setup: &Setup) -> Result<Opened, RunError> {
    let workspace = setup.settings.workspace.clone();
    let working_directory = params.working_directory.clone();
    let store = setup.store.clone();
    let key = params.session_key.clone();
    let budget = input_budget(&setup.model.model, &setup.settings.compaction);
    let opening = tokio::task::spawn_blocking(move || {
        check_directory(working_directory)?;
        let bootstrap = prepare_workspace(&workspace)?;
        let log = store.open(&key, LockWait::Fail)?;
        let (conversation, opening) = Conversation::load(log, budget)?;
        Ok(Opened { bootstrap, conversation, opening })
    });
    opening.await.map_err(|error| RunError::Internal(error.to_string()))?
}

/// A directory that the user named is never made: a misspelt one should be noticed.
fn check_directory(directory: Option<PathBuf>) -> Result<(), RunError> {
    match directory {
        Some(path) if !path.is_dir() => {
            Err(RunError::Workspace { path, source: std::io::ErrorKind::NotADirectory.into() })
        }
        _ => Ok(()),
    }
}
