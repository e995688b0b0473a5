//! The config of a session: that of its agent, with the caller's options applied.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use myclaw_auth::{AuthFile, AuthStore, CooldownRules};
use myclaw_browser::BrowserSlot;
use myclaw_config::{
    AgentId, BashToolConfig, Config, ConfigError, McpServerConfig, ResolvedAgent, RunLimits,
    ThinkingDefault,
};
use myclaw_engine::{
    ActiveModel, Approver, Bound, Clock as _, ConfigKeys, CutAnswers, Hook, Lane, RefusalRule,
    RunEvent, RunParams, RunRules, RunStores, SystemClock, Tool, exhausted_budget, utc_day,
};
use myclaw_hooks::{RunInfo, command_hooks};
use myclaw_llm::{CallLimits, Model, ThinkingLevel};
use myclaw_session::{Catalog, PeerKind, SessionError, SessionKey, SessionUse, Sessions, Spent};
use myclaw_tools::{Jobs, ToolOptions, builtin_tools};

use crate::browser_tool::browser_tool;
use crate::config_check::load_checked;
use crate::confinement::ExecutorSlot;
use crate::jobs::{BackgroundJobs, JobWake};
use crate::permissions::Permissions;
use crate::project::SeenInstructions;
use crate::selection::{Selection, Wanted, select};
use crate::web_tools::web_tools;
use crate::workspace::{NoticePublisher, QuotaState, existing_directory, remembered_directory};
use crate::{AgentError, Home, permissions};

/// Name of the session if the caller gives no name.
pub const MAIN_SESSION: &str = "main";

/// Channel in the keys of sessions that scheduled jobs have for themselves.
pub const CRON_CHANNEL: &str = "cron";
/// The other side in the keys of the sessions of heartbeats.
pub const HEARTBEAT_PEER: &str = "heartbeat";
/// Channel in the keys of sessions that only clients of the gateway name: whoever has its token.
pub(crate) const WEB_CHANNEL: &str = "web";
/// Channel in the keys of the sessions of people who write through several channels (`channels.identityLinks`).
pub const PERSON_CHANNEL: &str = "person";
/// Channel in the keys of the sessions of sub-agents.
pub const SUBAGENT_CHANNEL: &str = "subagent";

/// Options for opening a session. The default is the main session of the default agent.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// Name or key of the session.
    pub session: Option<String>,
    /// Id of the agent, if not the one that a key names.
    pub agent: Option<String>,
    /// Directory for the tools, if not the workspace. It must exist.
    pub directory: Option<PathBuf>,
    /// Model to use instead of the configured one, as `provider/model`.
    pub model: Option<String>,
    /// How much the model should think before it answers, if not as the config says.
    pub thinking: Option<ThinkingLevel>,
    /// The only auth profile to use.
    pub auth_profile: Option<String>,
    /// Who sends the messages, as `channel:id`, for the rules of `tools.bySender`. In a direct chat this is the other
    /// side unless the caller says otherwise.
    pub sender: Option<String>,
}

/// What the caller of a run adds to the tools and hooks of the config.
#[derive(Clone, Default)]
pub struct RunAdditions {
    /// Tools beside the built-in ones. One with the name of a built-in tool replaces it.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Hooks that are called after those of the config.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Answers the questions about calls that need an approval.
    pub approver: Option<Arc<dyn Approver>>,
}

/// The config of an open session.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Environment and directories.
    pub home: Home,
    /// The config file, or the defaults.
    pub config: Arc<Config>,
    /// The config of the session's agent.
    pub agent: ResolvedAgent,
    /// Directory for the tools, if not a workspace; absolute.
    pub directory: Option<PathBuf>,
    /// The workspace that the session has for itself. It follows from the other values.
    pub(crate) own_workspace: Option<PathBuf>,
    /// What is known of how full that is.
    pub(crate) quota_state: QuotaState,
    pub(crate) notices: NoticePublisher,
    /// The key of the session.
    pub session_key: SessionKey,
    /// The only auth profile to use, if the caller names one.
    pub auth_profile: Option<String>,
    /// Runs the tools of a sandboxed session; ends with the last copy of this value.
    pub(crate) executor: Arc<ExecutorSlot>,
    /// Who sends the messages, if the caller says so.
    pub sender: Option<String>,
    /// Who else sends messages while the session is open.
    pub senders: permissions::Senders,
    /// The sessions on whose behalf this one works, whose rules hold in it too.
    pub(crate) principals: Vec<permissions::Principal>,
    /// The instructions of its project's directories that the model has seen.
    pub(crate) seen_instructions: SeenInstructions,
    /// MCP servers that the front-end adds, by name. Those of the config with the same names take precedence.
    pub editor_servers: BTreeMap<String, McpServerConfig>,
    /// The browser of the session, once a page was opened. It ends with the last clone.
    pub(crate) browser: BrowserSlot,
    /// Of all sessions that are made from this one.
    pub(crate) background: Arc<BackgroundJobs>,
    /// What becomes of an answer that a failure cut off.
    pub cut_answers: CutAnswers,
}

impl SessionConfig {
    /// Loads the config file and applies `options`.
    ///
    /// # Errors
    /// The config file has a mistake, or an option names something that does not exist.
    pub fn load(home: Home, options: &SessionOptions) -> Result<Self, AgentError> {
        let loaded = load_checked(&home.environment)?;
        Self::new(home, loaded.config, options)
    }

    /// Applies `options` to a config.
    ///
    /// # Errors
    /// An option names an agent, a directory or a profile that does not exist.
    pub fn new(
        home: Home,
        config: Arc<Config>,
        options: &SessionOptions,
    ) -> Result<Self, AgentError> {
        let mut agent = config.resolve_agent(options.agent.as_deref()).map_err(agent_error)?;
        let session_name = options.session.as_deref().unwrap_or(MAIN_SESSION);
        let session_key = SessionKey::parse_for_agent(agent.id.as_str(), session_name)
            .map_err(|error| AgentError::usage(error.to_string()))?;
        check_agent(&config, &**home.catalog(), &session_key)?;
        if options.agent.is_none()
            && let Ok(named) = config.resolve_agent(Some(&session_key.parts().agent_id))
        {
            agent = named;
        }
        let directory = match options.directory.as_deref() {
            Some(directory) => Some(existing_directory(directory)?),
            None => remembered_directory(&home, &session_key)?,
        };
        let (auth_profile, sender) = (options.auth_profile.clone(), options.sender.clone());
        let (background, executor) = (BackgroundJobs::new(home.clone()), Arc::default());
        let browser = BrowserSlot::default();
        let new = Self {
            home,
            config,
            agent,
            directory,
            own_workspace: None,
            quota_state: QuotaState::default(),
            notices: NoticePublisher::default(),
            session_key,
            auth_profile,
            executor,
            sender,
            senders: permissions::Senders::default(),
            principals: Vec::new(),
            seen_instructions: SeenInstructions::default(),
            editor_servers: BTreeMap::new(),
            browser,
            background,
            cut_answers: CutAnswers::default(),
        };
        Ok(new.placed_anew())
    }

    /// The same for another session of the agent.
    #[must_use]
    pub fn for_session(&self, session_key: SessionKey) -> Self {
        let (executor, browser) = (Arc::default(), BrowserSlot::default());
        let senders = permissions::Senders::default();
        let seen_instructions = SeenInstructions::default();
        let catalog = self.home.catalog();
        // A new session works where this one does.
        let directory = match catalog.exists(&session_key) {
            true => catalog.directory_of(&session_key).unwrap_or_else(|_| self.directory.clone()),
            false => self.directory.clone(),
        };
        let new = Self { session_key, directory, executor, browser, senders, ..self.clone() };
        let quota_state = QuotaState::default();
        let notices = NoticePublisher::default();
        Self { seen_instructions, quota_state, notices, ..new }.placed_anew()
    }

    /// The same session with its user at the terminal: nothing has to end by the clock, as Ctrl-C ends it. Time limits that
    /// the config file sets to other values than the usual ones hold all the same.
    #[must_use]
    pub fn attended(mut self) -> Self {
        if self.agent.limits.run_seconds == RunLimits::default().run_seconds {
            self.agent.limits.run_seconds = 0;
        }
        let bash = &mut Arc::make_mut(&mut self.config).tools.bash;
        if bash.timeout_seconds == BashToolConfig::default().timeout_seconds {
            bash.timeout_seconds = BashToolConfig::LONGEST_SECONDS;
        }
        self
    }

    /// The same session with another environment and config file. What is open stays open: its jobs, its browser, and
    /// its sandbox unless other rules apply to that.
    ///
    /// # Errors
    /// The new config has no such agent, and no session of it is kept; or a session on whose behalf this one works is
    /// confined in another way by it.
    pub fn with_config(&self, home: Home, config: Arc<Config>) -> Result<Self, AgentError> {
        let options = SessionOptions {
            session: Some(self.session_key.as_str().to_owned()),
            directory: self.directory.clone(),
            auth_profile: self.auth_profile.clone(),
            sender: self.sender.clone(),
            ..SessionOptions::default()
        };
        let new = Self::new(home, config, &options)?.on_behalf_of(self.principals.clone())?;
        let executor = match self.has_same_place(&new) {
            true => Arc::clone(&self.executor),
            false => Arc::clone(&new.executor),
        };
        Ok(Self {
            executor,
            senders: self.senders.clone(),
            seen_instructions: self.seen_instructions.clone(),
            editor_servers: self.editor_servers.clone(),
            quota_state: self.quota_state.clone(),
            notices: self.notices.clone(),
            browser: self.browser.clone(),
            background: Arc::clone(&self.background),
            cut_answers: self.cut_answers,
            ..new
        })
    }

    /// Whether tools of a sandboxed session run in the same place under the same rules.
    fn has_same_place(&self, other: &Self) -> bool {
        let rules = |of: &Self| permissions::sandbox_rules(&of.config, &of.agent);
        rules(self) == rules(other)
            && self.config.tools.web.fetch == other.config.tools.web.fetch
            && self.agent.workspace == other.agent.workspace
            && self.own_workspace == other.own_workspace
            && self.agent.agent_dir == other.agent.agent_dir
            && self.agent.memory_search == other.agent.memory_search
            && self.home.paths == other.home.paths
            && self.config.tools.bash.timeout_seconds == other.config.tools.bash.timeout_seconds
    }

    /// Whether it is the owner's main session with the agent.
    pub fn is_main(&self) -> bool {
        permissions::is_main(self)
    }

    /// The thinking level: the caller's, else that of the config.
    pub fn requested_thinking(&self, asked: Option<ThinkingLevel>) -> ThinkingLevel {
        asked.unwrap_or_else(|| default_thinking(&self.agent))
    }

    /// Finds the models of the session: the one that `requested` names, else what the config or this machine gives.
    ///
    /// # Errors
    /// The name cannot be used, the provider is not known or not allowed, or its key is missing.
    pub async fn select_model(&self, requested: Option<&str>) -> Result<Selection, AgentError> {
        let stored = stored_keys(&self.agent);
        let wanted = Wanted {
            requested,
            configured: self.agent.model.as_deref(),
            fallbacks: &self.agent.fallbacks,
            stored: &stored,
        };
        select(&self.config, &self.home.environment, wanted).await
    }

    /// What a run in the session needs: tools, skills and hooks, limits and stores. It has no message yet.
    ///
    /// # Errors
    /// A hook, a rule or a directory of the config cannot be used.
    pub async fn run_params(
        &self,
        selection: &Selection,
        added: RunAdditions,
    ) -> Result<RunParams, AgentError> {
        let run = RunInfo {
            session_key: self.session_key.to_string(),
            agent: self.agent.id.to_string(),
            working_directory: self.working_directory().to_owned(),
            start_directory: self.start_directory().to_owned(),
        };
        let command_timeout = Duration::from_secs(self.config.tools.bash.timeout_seconds);
        let mut params = self.bare_run(selection.models.clone());
        params.auth_profile.clone_from(&self.auth_profile);
        params.lane = lane(&self.session_key);
        let permissions = Arc::new(Permissions::of_run(self, &added, &params)?);
        // Without the tool `process` nobody could look after a job.
        let jobs = if permissions.offers("process") { Some(self.jobs().await) } else { None };
        let (place, skills) = self.place_and_skills().await?;
        let commands = self.command_place(&place, &permissions, &params.rules.closed)?;
        let options = ToolOptions { command_timeout, jobs, commands, memory: self.memory() };
        params.tools = place.tools(builtin_tools(options));
        params.tools.extend(self.memory_write_tool());
        params.tools.extend(web_tools(self, &params.models, &params.tools)?);
        params.tools.extend(browser_tool(self)?);
        params.tools.extend(self.mcp_tools(&permissions).await?);
        params.skills = skills;
        params.hooks = command_hooks(&self.config, run)?;
        params.hooks.push(self.outputs_hook());
        params.hooks.extend(self.quota_hook());
        params.project = self.project_instructions().await;
        let project_hook = params.project.as_ref().map(|project| self.project_hook(project));
        params.hooks.extend(project_hook);
        permissions::apply(self, permissions, added, &mut params);
        params.memory = self.outline_for(&params.tools).await?;
        if params.memory.is_some() {
            params.hooks.push(self.outline_hook());
            params.hooks.extend(self.learn_hook(&params.models));
        }
        Ok(params)
    }

    /// The background jobs of the session. The first call in a process ends what killed processes left running.
    pub(crate) async fn jobs(&self) -> Arc<Jobs> {
        let yield_after = Duration::from_millis(self.config.tools.bash.yield_ms);
        let yield_after = (!yield_after.is_zero()).then_some(yield_after);
        self.background.of(&self.session_key, yield_after).await
    }

    /// Sets what happens when a background job ends in this session, or in one that is made from it. To be called
    /// before the first run, by front-ends whose sessions stay open: only then do commands become jobs without a
    /// request of the model.
    pub fn wake_for_jobs(&self, wake: JobWake) {
        self.background.set_wake(wake);
    }

    /// Ends the background jobs of this session and of those that are made from it. `on_event` receives a notice if
    /// there are any.
    pub async fn close_jobs(&self, on_event: &(dyn Fn(RunEvent) + Send + Sync)) {
        self.background.close(on_event).await;
    }

    /// Ends the background jobs of this session alone, which can be opened again. `on_event` receives a notice if there
    /// are any.
    pub async fn close_own_jobs(&self, on_event: &(dyn Fn(RunEvent) + Send + Sync)) {
        self.background.close_session(&self.session_key, on_event).await;
    }

    /// Like [`SessionConfig::close_jobs`], by force and without waiting. For a process that is about to exit.
    pub fn kill_jobs_now(&self) {
        self.background.kill_now();
    }

    /// As [`SessionConfig::run_params`], without tools, skills and hooks.
    pub fn bare_run(&self, models: Vec<ActiveModel>) -> RunParams {
        let (key, workspace) = (self.session_key.clone(), self.agent.workspace.clone());
        let mut params = RunParams::go_on(key, models, self.rules(), self.stores(), workspace);
        params.working_directory = self.directory.clone().or_else(|| self.own_workspace.clone());
        params.prompt_files = self.prompt_files();
        params
    }

    /// The limits and modes of the session's runs.
    fn rules(&self) -> RunRules {
        let Self { config, agent, .. } = self;
        let parts = self.session_key.parts();
        RunRules {
            thinking: default_thinking(agent),
            max_iterations: agent.max_iterations,
            max_retries: agent.max_retries,
            cut_answers: self.cut_answers,
            max_tool_result_chars: agent.max_tool_result_chars,
            workspace_only: config.tools.fs.workspace_only,
            closed: self.closed_paths(),
            known_secrets: self.known_secrets(),
            compaction: agent.compaction.clone(),
            refusals: RefusalRule::default(),
            context_pruning: agent.context_pruning,
            history_limit: match permissions::is_of_heartbeats(&self.session_key) {
                // What an earlier heartbeat found is in the files of the workspace, as far as it matters.
                true => Some(1),
                false => config.history_limit(&parts.channel, parts.peer_kind == PeerKind::Direct),
            },
            limits: agent.limits,
            steering: agent.steering_mode,
            follow_ups: agent.follow_up_mode,
            quiet: Duration::from_millis(config.messages.queue.debounce_ms),
            lanes: config.agents.defaults.lanes,
            call: call_limits(config),
            time_zone: agent.user_timezone.clone(),
            config_keys: config_keys(Arc::clone(config), agent.id.clone()),
            cooldowns: CooldownRules::from(&config.auth.cooldowns),
        }
    }

    /// The stores of the session's runs: what stays on disk after a run.
    fn stores(&self) -> RunStores {
        RunStores {
            sessions: self.sessions(),
            spending: Arc::clone(&self.home.stores().spending),
            keys: self.agent.agent_dir.as_deref().map(AuthStore::in_agent_dir),
        }
    }

    /// The sessions. A new one remembers the directory that this one works in.
    pub(crate) fn sessions(&self) -> Arc<dyn Sessions> {
        // The main session is the assistant's, wherever it is asked to work.
        let directory = self.directory.clone().filter(|_| !self.is_main());
        let is_reopened = self.background.sessions_stay_open();
        self.home.sessions().used(SessionUse { directory, is_reopened })
    }
}

/// The lane of the runs of a session.
fn lane(key: &SessionKey) -> Lane {
    match key.parts().channel.as_str() {
        CRON_CHANNEL => Lane::Cron,
        SUBAGENT_CHANNEL => Lane::Subagent,
        _ => Lane::Main,
    }
}

/// The config keys that set the limits of the agent.
fn config_keys(config: Arc<Config>, agent: AgentId) -> ConfigKeys {
    ConfigKeys::new(move |bound| config.deciding_key(&agent, bound.config_key()).to_string())
}

/// The daily limit that forbids further calls of `model` today, if one is reached. Reads the totals of the day.
///
/// # Errors
/// The totals cannot be read.
pub fn exhausted_today(
    home: &Home,
    agent: &ResolvedAgent,
    model: &Model,
) -> Result<Option<Bound>, SessionError> {
    let spent = spent_today(home)?;
    Ok(exhausted_budget(&agent.limits, spent, model))
}

/// What all sessions have used today.
///
/// # Errors
/// The totals cannot be read.
pub fn spent_today(home: &Home) -> Result<Spent, SessionError> {
    home.stores().spending.of(&utc_day(SystemClock.now_ms()))
}

/// The time limits of a model call.
pub fn call_limits(config: &Config) -> CallLimits {
    let timeouts = &config.models.timeouts;
    CallLimits {
        connect: timeouts.connect(),
        first_event: timeouts.first_event(),
        between_events: timeouts.between_events(),
    }
}

/// Refuses the session of an agent that is neither in the config file nor has any session, as imported ones have: its
/// name is misspelt.
///
/// # Errors
/// There is no such agent.
pub fn check_agent(
    config: &Config,
    catalog: &dyn Catalog,
    key: &SessionKey,
) -> Result<(), AgentError> {
    let agent = key.parts().agent_id;
    let Err(error) = config.resolve_agent(Some(&agent)) else { return Ok(()) };
    let prefix = format!("agent:{agent}:");
    let kept = catalog.latest_keys(1, &|key| key.starts_with(&prefix)).unwrap_or_default();
    if !kept.is_empty() {
        return Ok(());
    }
    Err(agent_error(error))
}

fn agent_error(error: ConfigError) -> AgentError {
    match error {
        // The caller named the agent, so this is not a mistake in the config file.
        ConfigError::UnknownAgent { .. } => AgentError::usage(error.to_string()),
        error => error.into(),
    }
}

/// The keys in the agent's store. Problems with it are reported by the run, and by `myclaw auth`.
pub fn stored_keys(agent: &ResolvedAgent) -> AuthFile {
    let store = agent.agent_dir.as_deref().map(AuthStore::in_agent_dir);
    store.and_then(|store| store.load().ok()).unwrap_or_default()
}

fn default_thinking(agent: &ResolvedAgent) -> ThinkingLevel {
    let configured = agent.thinking.map(ThinkingDefault::as_str);
    configured.and_then(|level| level.parse().ok()).unwrap_or_default()
}
