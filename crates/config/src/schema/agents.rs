//! How agents work: the one-agent section, the defaults for several, and the list of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::{LaneWidths, RunLimits};
use super::messages::DeliveryMode;
use super::values::{self, IterationCap, ModelChoice, NonBlankText};

/// Attempts beyond the first for one model call, over all keys: enough to get past a short outage.
const DEFAULT_MAX_RETRIES: u32 = 3;
/// Longest tool result a model is shown: about 12,000 tokens.
const DEFAULT_MAX_TOOL_RESULT_CHARS: usize = 50_000;

/// How an agent works, unless `agents` says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentConfig {
    /// The folder in which the agent works. May begin with `~`; a relative path starts at the folder of this file.
    /// Default: `workspace` in the state folder.
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
    /// What holds for every agent that does not say otherwise. Goes before `agent`.
    pub defaults: AgentDefaults,
    /// The agents. Without any there is one, called `main`.
    pub list: Vec<AgentEntry>,
}

/// What holds for every agent that does not say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentDefaults {
    /// The folder in which agents work; give each its own in `agents.list` to keep them apart.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub workspace: Option<String>,
    /// The model, as `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// How often the model may be called for one message; 0 or `"unlimited"` takes the cap away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<IterationCap>,
    /// What ends a run that would go on.
    pub limits: RunLimits,
    /// How many of the messages that were sent into a run are read before its next step.
    pub steering_mode: DeliveryMode,
    /// How many of the messages that wait for a run's end are answered together.
    pub follow_up_mode: DeliveryMode,
    /// How many runs of one process go on at the same time.
    pub lanes: LaneWidths,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentEntry {
    /// What the agent is called on the command line and in session keys: letters, digits, `_` and `-`, at most 64.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub id: String,
    /// Whether it is the agent that answers when none is named. Without such an entry it is the first one.
    #[serde(default)]
    pub default: bool,
    /// What the agent calls itself.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub name: Option<String>,
    /// The folder in which it works. Default: `workspace` in the state folder for the default agent,
    /// `workspace-<id>` for another.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub workspace: Option<String>,
    /// Its model, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
    /// How often the model may be called for one message; 0 or `"unlimited"` takes the cap away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<IterationCap>,
}
