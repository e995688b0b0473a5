//! Sub-agents, and what sessions may see of each other.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, NonBlankText};
use super::{MAX_SECONDS, ThinkingDefault};

/// How deep sub-agents may be nested: they have none of their own.
const DEFAULT_DEPTH: u32 = 1;
/// Deepest nesting that the file can allow. Each level multiplies the number of sub-agents.
const MOST_DEPTH: u64 = 5;
/// Sub-agents of a session at the same time.
const DEFAULT_CHILDREN: usize = 5;
/// Most that the file can allow.
const MOST_CHILDREN: u64 = 50;
/// Seconds for a sub-agent.
const DEFAULT_RUN_SECONDS: u64 = 600;
/// Hops of messages between sessions.
const DEFAULT_HOPS: u32 = 5;
/// Most hops that the file can allow.
const MOST_HOPS: u64 = 20;
/// Stands for every agent.
const EVERY: &str = "*";

/// The sub-agents that an agent may start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SubagentsConfig {
    /// The other agents that it may start as sub-agents: ids, or `"*"` for all. It may always start itself. Default: no
    /// others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_agents: Option<Vec<String>>,
    /// The model of its sub-agents, as `provider/model`. Default: the model of the agent that is started.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub model: Option<String>,
    /// The only models that it may choose for a sub-agent, each as `provider/model`, or `provider/*` for all of a
    /// provider. Default: every model that agents may use. An empty list lets it choose none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// How much the model of a sub-agent thinks before it answers. Default: as the agent that is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingDefault>,
    /// How deep sub-agents may be nested, from 0 to 5; with 1 a sub-agent cannot start another one, with 0 no session can.
    /// Default: 1.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 0, MOST_DEPTH>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = MOST_DEPTH))]
    pub max_spawn_depth: Option<u32>,
    /// How many sub-agents a session may have at the same time, from 1 to 50. Default: 5.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 1, MOST_CHILDREN>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = MOST_CHILDREN))]
    pub max_children_per_agent: Option<usize>,
    /// Seconds after which a sub-agent is stopped, at most 86400 (a day). It may ask for less. Default: 600.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 1, MAX_SECONDS>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub run_timeout_seconds: Option<u64>,
}

/// The rules for the sub-agents of one agent, with every default applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subagents {
    allow_agents: Vec<String>,
    /// The model of a sub-agent that was given none.
    pub model: Option<String>,
    models: Option<Vec<String>>,
    /// The thinking level of a sub-agent that was given none.
    pub thinking: Option<ThinkingDefault>,
    /// How deep they may be nested.
    pub max_depth: u32,
    /// How many a session may have at the same time.
    pub max_children: usize,
    /// When one is stopped.
    pub run_timeout: Duration,
}

impl SubagentsConfig {
    /// These values, with what `own` sets instead.
    pub(crate) fn with(&self, own: &Self) -> Subagents {
        let allow_agents = own.allow_agents.as_ref().or(self.allow_agents.as_ref());
        let seconds = own.run_timeout_seconds.or(self.run_timeout_seconds);
        Subagents {
            allow_agents: allow_agents.cloned().unwrap_or_default(),
            model: own.model.as_ref().or(self.model.as_ref()).map(|name| name.trim().to_owned()),
            models: own.models.as_ref().or(self.models.as_ref()).cloned(),
            thinking: own.thinking.or(self.thinking),
            max_depth: own.max_spawn_depth.or(self.max_spawn_depth).unwrap_or(DEFAULT_DEPTH),
            max_children: own
                .max_children_per_agent
                .or(self.max_children_per_agent)
                .unwrap_or(DEFAULT_CHILDREN),
            run_timeout: Duration::from_secs(seconds.unwrap_or(DEFAULT_RUN_SECONDS)),
        }
    }
}

impl Subagents {
    /// Whether the agent with the id `agent` may be started by the agent with the id `by`.
    pub fn allows_agent(&self, by: &crate::AgentId, agent: &crate::AgentId) -> bool {
        let is_it = |name: &String| name.trim() == EVERY || crate::AgentId::new(name) == *agent;
        by == agent || self.allow_agents.iter().any(is_it)
    }

    /// Whether the model `provider/id` may be chosen.
    pub fn allows_model(&self, model: &str) -> bool {
        let Some(allowed) = &self.models else { return true };
        let Some((provider, id)) = model.trim().split_once('/') else { return false };
        allowed.iter().filter_map(|entry| entry.trim().split_once('/')).any(
            |(allowed_provider, allowed_id)| {
                allowed_provider.eq_ignore_ascii_case(provider)
                    && (allowed_id == EVERY || allowed_id == id)
            },
        )
    }
}

/// What the tools for sessions may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SessionToolsConfig {
    /// The sessions that the owner's main session may list, read and write to.
    pub main: SessionScope,
    /// The same for every other session: chats with others, jobs and sub-agents.
    pub others: SessionScope,
    /// How often a message may lead to a message to another session, and that one to a further one, from 0 to 20.
    #[serde(deserialize_with = "values::within::<_, _, 0, MOST_HOPS>")]
    #[schemars(range(min = 0, max = MOST_HOPS))]
    pub max_hops: u32,
}

impl Default for SessionToolsConfig {
    fn default() -> Self {
        Self { main: SessionScope::Agent, others: SessionScope::Tree, max_hops: DEFAULT_HOPS }
    }
}

/// A set of sessions, as one session sees it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SessionScope {
    /// Itself.
    #[serde(rename = "self")]
    Own,
    /// Itself, its sub-agents, and theirs.
    Tree,
    /// All sessions of its agent.
    Agent,
    /// All sessions of all agents.
    All,
}
