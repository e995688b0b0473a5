//! The config of one agent: `agents.list`, then `agents.defaults`, then `agent`, then built-in values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use jiff::tz::TimeZone;
use myclaw_schedule::zone_named;

use crate::schema::AgentEntry;
use crate::{
    CompactionConfig, Config, ConfigError, ConfigPath, ContextPruning, DeliveryMode, Heartbeat,
    IterationCap, McpServerConfig, MemorySearch, ModelChoice, Persona, RunLimits, Subagents,
    ThinkingDefault,
};

/// Longest agent id, in characters.
const MAX_ID_LENGTH: usize = 64;
/// The agent's id if the config lists no agents.
const MAIN: &str = "main";

/// The name of an agent: lower-case letters, digits, `_` and `-`, a letter or digit first, at most 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(String);

impl AgentId {
    /// Makes an id from any text: lower-cased, runs of other characters become `-`, which is trimmed from the ends; an
    /// empty result becomes `main`.
    pub fn new(text: &str) -> Self {
        let mut id = String::with_capacity(text.len().min(MAX_ID_LENGTH));
        for character in text.trim().chars().flat_map(char::to_lowercase) {
            if character.is_ascii_alphanumeric()
                || (matches!(character, '_' | '-') && !id.is_empty())
            {
                id.push(character);
            } else if !id.is_empty() && !id.ends_with('-') {
                id.push('-');
            }
            if id.len() == MAX_ID_LENGTH {
                break;
            }
        }
        id.truncate(id.trim_end_matches('-').len());
        if id.is_empty() { Self(MAIN.to_owned()) } else { Self(id) }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for AgentId {
    /// `main`.
    fn default() -> Self {
        Self(MAIN.to_owned())
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The config of one agent, with every default applied.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedAgent {
    /// Its id.
    pub id: AgentId,
    /// The agent's name for itself, if the file sets it.
    pub name: Option<String>,
    /// The directory in which it works; absolute, need not exist.
    pub workspace: PathBuf,
    /// `provider/model`, split at the first slash; `None` if the file names no model.
    pub model: Option<String>,
    /// Thinking level if the caller does not set one; `None` if the file does not set it.
    pub thinking: Option<ThinkingDefault>,
    /// Fallback models in order, written like `model`.
    pub fallbacks: Vec<String>,
    /// The directory for the agent's own data; absolute, need not exist. `None` if the config was made without
    /// [`Config::paths`] and names no directory.
    pub agent_dir: Option<PathBuf>,
    /// Most model calls for one message.
    pub max_iterations: IterationCap,
    /// Most retries of a failed model call.
    pub max_retries: u32,
    /// Most characters of a tool result that the model sees.
    pub max_tool_result_chars: usize,
    /// When and how older messages are summarised.
    pub compaction: CompactionConfig,
    /// Whether old tool results are sent shorter.
    pub context_pruning: ContextPruning,
    /// The user's time zone, if the file sets it; always the name of an existing zone.
    pub user_timezone: Option<String>,
    /// The other limits that end a run.
    pub limits: RunLimits,
    /// How many steering messages are taken at once.
    pub steering_mode: DeliveryMode,
    /// How many follow-ups are answered together.
    pub follow_up_mode: DeliveryMode,
    /// The search over its notes.
    pub memory_search: MemorySearch,
}

impl Config {
    /// The agent that answers by default: the first entry marked as default, else the first, else `main`.
    pub fn default_agent_id(&self) -> AgentId {
        self.default_entry().map(|entry| AgentId::new(&entry.id)).unwrap_or_default()
    }

    /// All agents, in no particular order.
    pub fn agent_ids(&self) -> Vec<AgentId> {
        if self.agents.list.is_empty() {
            return vec![AgentId::default()];
        }
        self.agents.list.iter().map(|entry| AgentId::new(&entry.id)).collect()
    }

    /// The configs of the listed agents and of the default one, which may be among them. Those that cannot be resolved are
    /// left out.
    pub fn resolved_agents(&self) -> impl Iterator<Item = ResolvedAgent> {
        let listed = self.agents.list.iter().map(|entry| Some(entry.id.as_str()));
        listed.chain([None]).filter_map(|id| self.resolve_agent(id).ok())
    }

    /// The config of the agent with that name, or of the default agent.
    ///
    /// # Errors
    /// [`ConfigError::UnknownAgent`] if there is no such agent; [`ConfigError::NoPaths`] if this value was made without
    /// [`Config::paths`] and the workspace is not an absolute path; [`ConfigError::NoHome`] if the workspace begins
    /// with `~` and there is no home.
    pub fn resolve_agent(&self, agent_id: Option<&str>) -> Result<ResolvedAgent, ConfigError> {
        let default_id = self.default_agent_id();
        let id = agent_id.map_or_else(|| default_id.clone(), AgentId::new);
        let entry = self.agents.list.iter().find(|entry| AgentId::new(&entry.id) == id);
        if entry.is_none() && (id != default_id || !self.agents.list.is_empty()) {
            return Err(ConfigError::UnknownAgent { id, known: self.agent_ids() });
        }
        let defaults = &self.agents.defaults;
        let workspace = entry
            .and_then(|entry| entry.workspace.as_deref())
            .or(defaults.workspace.as_deref())
            .or(self.agent.workspace_dir.as_deref());
        let choices = [entry.and_then(|entry| entry.model.as_ref()), defaults.model.as_ref()];
        let model = choices.into_iter().flatten().find_map(ModelChoice::primary);
        let fallbacks =
            choices.into_iter().flatten().find_map(ModelChoice::fallbacks).unwrap_or_default();
        Ok(ResolvedAgent {
            name: entry.and_then(|entry| entry.name.clone()),
            workspace: self.workspace(workspace, (id != default_id).then_some(&id))?,
            model: self.model_name(model),
            thinking: entry.and_then(|entry| entry.thinking).or(defaults.thinking_default),
            fallbacks: fallbacks.iter().map(|name| self.with_provider(&name.0)).collect(),
            agent_dir: self.agent_dir(entry.and_then(|entry| entry.agent_dir.as_deref()), &id)?,
            max_iterations: entry
                .and_then(|entry| entry.max_iterations)
                .or(defaults.max_iterations)
                .unwrap_or(self.agent.max_iterations),
            max_retries: self.agent.max_retries,
            max_tool_result_chars: self.agent.max_tool_result_chars,
            compaction: defaults.compaction.clone(),
            context_pruning: defaults.context_pruning,
            user_timezone: defaults.user_timezone.as_deref().map(|name| name.trim().to_owned()),
            limits: defaults.limits.with(entry.map(|entry| entry.limits).unwrap_or_default()),
            steering_mode: entry
                .and_then(|entry| entry.steering_mode)
                .unwrap_or(defaults.steering_mode),
            follow_up_mode: entry
                .and_then(|entry| entry.follow_up_mode)
                .unwrap_or(defaults.follow_up_mode),
            memory_search: defaults
                .memory_search
                .with(entry.map(|entry| &entry.memory_search), |path| {
                    self.workspace(Some(path), None)
                })?,
            id,
        })
    }

    /// The heartbeat of an agent; `None` if it has none.
    pub fn heartbeat(&self, agent: &AgentId) -> Option<Heartbeat> {
        let entry = self.agents.list.iter().find(|entry| AgentId::new(&entry.id) == *agent);
        let own = entry.and_then(|entry| entry.heartbeat.as_ref());
        if own.is_none() && *agent != self.default_agent_id() {
            return None;
        }
        let defaults = &self.agents.defaults.heartbeat;
        let config = own.map_or_else(|| defaults.clone(), |own| defaults.with(own));
        // A config that was loaded has no mistake in it.
        config.resolve(&self.time_zone()).unwrap_or_default()
    }

    /// How an agent appears in chats.
    pub fn persona(&self, agent: &AgentId) -> Persona {
        let entry = self.agents.list.iter().find(|entry| AgentId::new(&entry.id) == *agent);
        let defaults = &self.agents.defaults;
        let Some(entry) = entry else {
            return Persona {
                identity: defaults.identity.clone(),
                group_chat: defaults.group_chat.clone(),
                human_delay: defaults.human_delay.clone(),
            };
        };
        let mut identity = defaults.identity.with(&entry.identity);
        identity.name = identity.name.or_else(|| entry.name.clone());
        Persona {
            identity,
            group_chat: defaults.group_chat.with(&entry.group_chat),
            human_delay: defaults.human_delay.with(&entry.human_delay),
        }
    }

    /// The MCP servers of an agent, by name.
    pub fn mcp_servers(&self, agent: &AgentId) -> BTreeMap<String, McpServerConfig> {
        let entry = self.agents.list.iter().find(|entry| AgentId::new(&entry.id) == *agent);
        match entry {
            Some(entry) => self.mcp.with(&entry.mcp),
            None => self.mcp.servers.clone(),
        }
    }

    /// Whether an agent calls the tools of MCP servers from scripts.
    pub fn mcp_code_mode(&self, agent: &AgentId) -> bool {
        let entry = self.agents.list.iter().find(|entry| AgentId::new(&entry.id) == *agent);
        let own = entry.and_then(|entry| entry.mcp.code_mode);
        own.or(self.mcp.code_mode).unwrap_or(false)
    }

    /// The rules for the sub-agents of an agent.
    pub fn subagents(&self, agent: &AgentId) -> Subagents {
        let entry = self.agents.list.iter().find(|entry| AgentId::new(&entry.id) == *agent);
        let own = entry.map(|entry| entry.subagents.clone()).unwrap_or_default();
        self.agents.defaults.subagents.with(&own)
    }

    /// The zone of the people who talk with the agents, else that of this machine.
    pub fn time_zone(&self) -> TimeZone {
        let named =
            self.agents.defaults.user_timezone.as_deref().and_then(|name| zone_named(name).ok());
        named.unwrap_or_else(TimeZone::system)
    }

    /// The key that decides a limit of an agent. `key` is one of the keys that can set it, such as
    /// `agent.maxIterations` or `agents.defaults.limits.runSeconds`; an entry in `agents.list` overrides those.
    pub fn deciding_key(&self, agent: &AgentId, key: &str) -> ConfigPath {
        let mut keys: Vec<&str> = key.split('.').collect();
        if keys == ["agent", "maxIterations"] && self.agents.defaults.max_iterations.is_some() {
            keys = vec!["agents", "defaults", "maxIterations"];
        }
        let own = match keys[..] {
            ["agents", "defaults", ref own @ ..] | ["agent", ref own @ ..] => own,
            _ => &[],
        };
        let is_agent = |entry: &AgentEntry| AgentId::new(&entry.id) == *agent;
        let index = self.agents.list.iter().position(is_agent).filter(|index| {
            let entry = serde_json::to_value(&self.agents.list[*index]).unwrap_or_default();
            !own.is_empty() && entry.pointer(&format!("/{}", own.join("/"))).is_some()
        });
        let (start, keys) = match index {
            Some(index) => (ConfigPath::default().key("agents").key("list").index(index), own),
            None => (ConfigPath::default(), &keys[..]),
        };
        keys.iter().fold(start, |path, key| path.key(key))
    }

    /// Whether the model `provider/id` may be used: `agents.defaults.models` is absent, or contains it, or contains
    /// `provider/*`.
    pub fn allows_model(&self, provider: &str, id: &str) -> bool {
        let Some(allowed) = &self.agents.defaults.models else { return true };
        allowed.iter().filter_map(|entry| entry.trim().split_once('/')).any(
            |(allowed_provider, allowed_id)| {
                allowed_provider.eq_ignore_ascii_case(provider)
                    && (allowed_id == "*" || allowed_id == id)
            },
        )
    }

    /// Most messages of a chat that are sent, by the config of its channel; `None` means all. `is_direct` distinguishes
    /// a chat with one person from a group.
    pub fn history_limit(&self, channel: &str, is_direct: bool) -> Option<usize> {
        let (_, rules) = self.channels.chat_rules().find(|(name, _)| *name == channel)?;
        let limit = if is_direct { rules.dm_history_limit } else { rules.history_limit };
        Some(limit).filter(|limit| *limit > 0)
    }

    fn default_entry(&self) -> Option<&AgentEntry> {
        self.agents.list.iter().find(|entry| entry.default).or_else(|| self.agents.list.first())
    }

    fn workspace(
        &self,
        configured: Option<&str>,
        agent: Option<&AgentId>,
    ) -> Result<PathBuf, ConfigError> {
        match (configured, &self.paths) {
            (Some(path), Some(paths)) => paths.resolve_in_config(path),
            (Some(path), None) if PathBuf::from(path).is_absolute() => Ok(PathBuf::from(path)),
            (None, Some(paths)) => Ok(paths.workspace_dir(agent)),
            (_, None) => Err(ConfigError::NoPaths),
        }
    }

    fn agent_dir(
        &self,
        configured: Option<&str>,
        id: &AgentId,
    ) -> Result<Option<PathBuf>, ConfigError> {
        match (configured, &self.paths) {
            (Some(path), Some(paths)) => paths.resolve_in_config(path).map(Some),
            (Some(path), None) => Ok(Some(PathBuf::from(path)).filter(|path| path.is_absolute())),
            (None, paths) => Ok(paths.as_ref().map(|paths| paths.agent_dir(id))),
        }
    }

    /// A model without a provider belongs to the configured provider.
    fn model_name(&self, choice: Option<&str>) -> Option<String> {
        let provider = self.provider.as_ref();
        match choice {
            Some(choice) => Some(self.with_provider(choice)),
            None => provider.map(|provider| format!("{}/{}", provider.name, provider.model)),
        }
    }

    fn with_provider(&self, model: &str) -> String {
        match &self.provider {
            Some(provider) if !model.contains('/') => format!("{}/{model}", provider.name),
            _ => model.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
