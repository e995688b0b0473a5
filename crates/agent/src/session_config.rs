//! The config of a session: that of its agent, with the caller's options applied.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use myclaw_browser::BrowserSlot;
use myclaw_config::{
    BashToolConfig, Config, McpServerConfig, ResolvedAgent, RunLimits, ThinkingDefault, ToolRules,
};
use myclaw_engine::{
    Approver, Bound, Clock as _, CutAnswers, Hook, RunEvent, SessionMode, SharedCost, SystemClock,
    Tool, exhausted_budget, utc_day,
};
use myclaw_llm::{CallLimits, Model, ThinkingLevel};
use myclaw_packages::LoadedPackage;
use myclaw_policy::check_tool_entry;
use myclaw_session::{SessionError, SessionKey, SessionUse, Sessions, Spent};
use myclaw_tools::{Jobs, LanguageServers};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::Home;
use crate::confinement::ExecutorSlot;
use crate::jobs::{BackgroundJobs, JobWake};
use crate::permissions::{Principal, Senders};
use crate::project::SeenInstructions;
use crate::workspace::{NoticePublisher, QuotaState};

mod opening;
mod run_setup;

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
    /// Tools besides the built-in ones. One with the name of a built-in tool replaces it.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Hooks that are called after those of the config.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Answers the questions about calls that need an approval.
    pub approver: Option<Arc<dyn Approver>>,
    /// The whole system prompt, if not the one that is made of the files of the workspace.
    pub system_prompt: Option<String>,
}

/// Options of a command for its run, in addition to the config.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The tools that it allows and denies, among those that the config allows.
    pub tools: ToolRules,
    /// Most model calls, instead of `agent.maxIterations`.
    pub max_turns: Option<NonZeroU32>,
    /// US dollars that it and its sub-agents may cost together, instead of `limits.runCost`.
    pub max_cost: Option<f64>,
    /// What the sessions with these options and their sub-agents have cost in this process.
    pub cost: SharedCost,
}

impl RunOptions {
    /// These options, if they can be used.
    ///
    /// # Errors
    /// An option with a value that names no tool, or is no amount, and what is wrong with it.
    pub fn checked(self) -> Result<Self, String> {
        let named = [("--allow-tool", &self.tools.allow), ("--deny-tool", &self.tools.deny)];
        for (option, entries) in named {
            for entry in entries.iter().flatten() {
                check_tool_entry(entry).map_err(|problem| format!("{option}: {problem}"))?;
            }
        }
        match self.max_cost {
            Some(cost) if !cost.is_finite() || cost <= 0.0 => {
                Err("--max-cost: write US dollars above 0, such as `0.50`".to_owned())
            }
            _ => Ok(self),
        }
    }
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
    pub senders: Senders,
    /// The sessions on whose behalf this one works, whose rules hold in it too.
    pub(crate) principals: Vec<Principal>,
    /// Further rules for its tools: those of the files that say what a sub-agent is, and of the commands above it.
    pub(crate) narrowed: Vec<ToolRules>,
    /// The instructions of its project's directories that the model has seen.
    pub(crate) seen_instructions: SeenInstructions,
    /// MCP servers that the front-end adds, by name. Those of the config with the same names take precedence.
    pub editor_servers: BTreeMap<String, McpServerConfig>,
    /// The browser of the session, once a page was opened. It ends with the last clone.
    pub(crate) browser: BrowserSlot,
    /// The language servers of the session. They end with the last clone.
    pub(crate) language_servers: Arc<LanguageServers>,
    /// Of all sessions that are made from this one.
    pub(crate) background: Arc<BackgroundJobs>,
    /// What becomes of an answer that a failure cut off.
    pub cut_answers: CutAnswers,
    /// What the command says about its run.
    pub options: RunOptions,
    /// The permission mode, which can change while the session works.
    pub mode: SessionMode,
    /// Further fields of its entry in the list of sessions, for when it begins. Clones share them.
    pub(crate) listed_with: Arc<Mutex<Map<String, Value>>>,
    /// In a run: its packages, as they were at its beginning.
    pub(crate) run_packages: Option<Arc<Vec<LoadedPackage>>>,
}

impl SessionConfig {
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

    /// The thinking level: the caller's, else that of the config.
    pub fn requested_thinking(&self, asked: Option<ThinkingLevel>) -> ThinkingLevel {
        asked.unwrap_or_else(|| default_thinking(&self.agent))
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

    /// The sessions. A new one remembers the directory that this one works in.
    pub(crate) fn sessions(&self) -> Arc<dyn Sessions> {
        // The main session is the assistant's, wherever it is asked to work.
        let directory = self.directory.clone().filter(|_| !self.is_main());
        let is_reopened = self.background.sessions_stay_open();
        self.home.sessions().used(SessionUse { directory, is_reopened })
    }
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

fn default_thinking(agent: &ResolvedAgent) -> ThinkingLevel {
    let configured = agent.thinking.map(ThinkingDefault::as_str);
    configured.and_then(|level| level.parse().ok()).unwrap_or_default()
}
