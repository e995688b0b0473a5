//! What the settings say about a run.

use myclaw_config::{AgentSettings, ConfigError, ThinkingDefault};
use myclaw_llm::ThinkingLevel;
use myclaw_session::{DaySpending, SessionStore};

use crate::failover::Roster;
use crate::{ModelChoice, Notice, RunAgentParams, RunError};

/// File in the state directory with the totals of the day.
const SPENDING_FILE: &str = "usage.json";

/// The settings of the agent, who may be asked, and where things are kept.
pub(super) struct Setup {
    pub(super) settings: AgentSettings,
    pub(super) roster: Roster,
    pub(super) store: SessionStore,
    pub(super) spending: DaySpending,
}

/// How much the model thinks in a run.
pub(super) struct Thinking {
    pub(super) requested: ThinkingLevel,
    /// What to say where that is not what the user asked for.
    pub(super) notice: Option<Notice>,
}

impl Setup {
    pub(super) fn new(params: &RunAgentParams) -> Result<Self, RunError> {
        let settings = params.config.agent_settings(params.agent.as_deref())?;
        let roster = Roster::new(params, &settings)?;
        let paths = params.config.paths.as_ref().ok_or(ConfigError::NoPaths)?;
        let spending = DaySpending::new(paths.state_dir().join(SPENDING_FILE));
        Ok(Self { settings, roster, store: SessionStore::new(paths.sessions_dir()), spending })
    }

    /// Each model is asked at the level that it offers nearest to the one asked for; of the first one, `model`, the
    /// user is told where these differ.
    pub(super) fn thinking(&self, params: &RunAgentParams, model: &ModelChoice) -> Thinking {
        let configured = || self.settings.thinking.map(thinking_level);
        let requested = params.thinking.or_else(configured).unwrap_or_default();
        let level = model.model.thinking_level(requested);
        let notice = params.thinking.filter(|asked| *asked != level).map(|asked| {
            let model = &model.model;
            let offered =
                if model.reasoning { model.offered_thinking_levels() } else { Vec::new() };
            let name = format!("{}/{}", model.provider, model.id);
            Notice::ThinkingLevelChanged { model: name, asked, used: level, offered }
        });
        Thinking { requested, notice }
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
