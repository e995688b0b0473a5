//! How agents work: the one-agent section, the defaults for several, and the list of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ThinkingDefault;
use super::heartbeat::HeartbeatConfig;
use super::limits::{AgentLimits, LaneWidths, RunLimits};
use super::mcp::McpConfig;
use super::memory::MemorySearchConfig;
use super::messages::DeliveryMode;
use super::persona::{GroupChatConfig, HumanDelayConfig, IdentityConfig};
use super::policy::{AgentSandboxRules, AgentToolRules, SandboxRules};
use super::subagents::SubagentsConfig;
use super::values::{self, IterationCap, ModelChoice, NonBlankText};

/// Attempts beyond the first for one model call, over all keys: enough to get past a short outage.
const DEFAULT_MAX_RETRIES: u32 = 3;
/// Longest tool result a model is shown: about 12,000 tokens.
const DEFAULT_MAX_TOOL_RESULT_CHARS: usize = 50_000;

/// How an agent works, unless `agents` says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentConfig {
    /// The directory in which the agent works. May begin with `~`; a relative path starts at the directory of this file.
    /// Default: `workspace` in the state directory.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub workspace_dir: Option<String>,
    /// How often the model may be called for one message; 0 or `"unlimited"` takes the cap away.
    pub max_iterations: IterationCap,
    /// Further attempts when a model call fails, over all keys; 0 for none.
    #[schemars(range(min = 0, max = u32::MAX))]
    pub max_retries: u32,
    /// Characters of a tool result that the model is shown; the rest is kept in a file.
    #[serde(deserialize_with = "values::within::<_, _, 1, { u64::MAX }>")]
    #[schemars(range(min = 1))]
    pub max_tool_result_chars: usize,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            workspace_dir: None,
            max_iterations: IterationCap::default(),
            max_retries: DEFAULT_MAX_RETRIES,
            max_tool_result_chars: DEFAULT_MAX_TOOL_RESULT_CHARS,
        }
    }
}

/// Several agents, each with its own workspace and model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentsConfig {
    /// Values for every agent that does not set its own. They take precedence over `agent`.
    pub defaults: AgentDefaults,
    /// The agents. Without any there is one, called `main`.
    pub list: Vec<AgentEntry>,
}

/// What holds for every agent that does not say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentDefaults {
    /// The directory in which agents work; give each its own in `agents.list` to keep them apart.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub workspace: Option<String>,
    /// The model, as `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// The model that looks at pictures for a model that cannot, as `provider/model`.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub image_model: Option<String>,
    /// The model that makes pictures, as `provider/model`: of OpenAI, Google or OpenRouter. Without it there is no tool for them.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub image_generation_model: Option<String>,
    /// The only models that may be used, each as `provider/model`, or `provider/*` for all of a provider. Leave it out
    /// to allow every model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// How much the model thinks before it answers, where it can and nobody asks for another level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_default: Option<ThinkingDefault>,
    /// How often the model may be called for one message; 0 or `"unlimited"` takes the cap away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<IterationCap>,
    /// When and how older messages are summarised.
    pub compaction: CompactionConfig,
    /// Whether old results of tools are sent shorter, or not at all, before the window is full.
    pub context_pruning: ContextPruning,
    /// What ends a run that would go on.
    pub limits: RunLimits,
    /// The time zone of the people who talk with the agent, named in the prompt, such as `Europe/Berlin`. Default:
    /// that of this machine.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub user_timezone: Option<String>,
    /// How many of the messages that were sent into a run it reads before its next step.
    pub steering_mode: DeliveryMode,
    /// How many of the messages that wait for a run's end are answered together.
    pub follow_up_mode: DeliveryMode,
    /// How many runs of one process go on at the same time.
    pub lanes: LaneWidths,
    /// A turn at an interval, in which the gateway asks the default agent whether something needs attention.
    pub heartbeat: HeartbeatConfig,
    /// The sub-agents that agents may start.
    pub subagents: SubagentsConfig,
    /// Who agents are for the people who write to them.
    pub identity: IdentityConfig,
    /// Which messages of a group agents answer, and what they are shown of the others.
    pub group_chat: GroupChatConfig,
    /// Pauses between the messages of one reply, as a person who types would make them.
    pub human_delay: HumanDelayConfig,
    /// The search over the notes that agents keep in their workspace.
    pub memory_search: MemorySearchConfig,
    /// Which tools and commands agents may use, besides `tools`.
    pub tools: AgentToolRules,
    /// Which sessions are sandboxed, and what may run in them.
    pub sandbox: SandboxRules,
}

/// When and how older messages are summarised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CompactionConfig {
    /// Tokens of the model's window that are kept free for its answer; messages are summarised before they need
    /// them. At most half of the window counts. Default: the model's longest answer, at most a quarter of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve_tokens: Option<u64>,
    /// How many of the newest messages stay as they are.
    #[serde(deserialize_with = "values::within::<_, _, 1, { u64::MAX }>")]
    #[schemars(range(min = 1))]
    pub keep_messages: usize,
    /// Characters to which each tool's result is cut when a summary was not enough.
    #[serde(deserialize_with = "values::within::<_, _, 1, { u64::MAX }>")]
    #[schemars(range(min = 1))]
    pub max_result_chars: usize,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self { reserve_tokens: None, keep_messages: 10, max_result_chars: 20_000 }
    }
}

/// Whether old results of tools are sent shorter, or not at all, before the window is full. Only what is sent
/// changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum ContextPruning {
    /// Everything is sent as it is.
    #[default]
    Off,
    /// From 30 % of the window on, long results that nobody came back to are sent shorter; from 50 % on, old ones not
    /// at all.
    Adaptive,
    /// Only the results of the last step are sent.
    Aggressive,
    /// Like `adaptive`, but only when the provider's cache has expired, five minutes after the last answer.
    CacheTtl,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentEntry {
    /// Name of the agent on the command line and in session keys: letters, digits, `_` and `-`, at most 64.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub id: String,
    /// Whether it answers when the user names no agent. Without such an entry the first one does.
    #[serde(default)]
    pub default: bool,
    /// The agent's name for itself.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub name: Option<String>,
    /// The directory in which it works. Default: `workspace` in the state directory for the default agent,
    /// `workspace-<id>` for another.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub workspace: Option<String>,
    /// The directory in which what belongs to the agent itself is kept, such as its auth profiles. Default:
    /// `agents/<id>/agent` in the state directory.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub agent_dir: Option<String>,
    /// Its model, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// How much its model thinks before it answers, where it can and nobody asks for another level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingDefault>,
    /// How often the model may be called for one message; 0 or `"unlimited"` takes the cap away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<IterationCap>,
    /// Limits that end a run of it, where they differ from those of the others.
    #[serde(default)]
    pub limits: AgentLimits,
    /// How many of the messages that were sent into a run it reads before its next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering_mode: Option<DeliveryMode>,
    /// How many of the messages that wait for a run's end are answered together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up_mode: Option<DeliveryMode>,
    /// Where its heartbeat differs from `agents.defaults.heartbeat`. An agent that is not the default one has a
    /// heartbeat only with this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<HeartbeatConfig>,
    /// Where its sub-agents differ from `agents.defaults.subagents`.
    #[serde(default)]
    pub subagents: SubagentsConfig,
    /// Who it is for the people who write to it.
    #[serde(default)]
    pub identity: IdentityConfig,
    /// Which messages of a group it answers, and what it is shown of the others.
    #[serde(default)]
    pub group_chat: GroupChatConfig,
    /// Pauses between the messages of one reply, as a person who types would make them.
    #[serde(default)]
    pub human_delay: HumanDelayConfig,
    /// Where the search over its notes differs from that of the others.
    #[serde(default)]
    pub memory_search: MemorySearchConfig,
    /// Which tools and commands it may use. These rules can only take away.
    #[serde(default)]
    pub tools: AgentToolRules,
    /// Where its sandbox differs from that of the others.
    #[serde(default)]
    pub sandbox: AgentSandboxRules,
    /// MCP servers of its own. An entry without `command` changes `enabled`, `timeoutSeconds` and `tools` of the
    /// one with that name in `mcp`.
    #[serde(default)]
    pub mcp: McpConfig,
}
