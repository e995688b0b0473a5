//! How messages are received and answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, NonBlankText};

/// Quiet time before collected messages are answered: longer than most people pause between two messages.
const DEFAULT_DEBOUNCE_MS: u64 = 1_000;
/// A minute: after a longer wait a user would think that nothing happens.
const MAX_DEBOUNCE_MS: u64 = 60_000;
/// Most messages that wait.
const DEFAULT_CAP: usize = 20;
/// Nobody reads more than that.
const MAX_CAP: u64 = 1_000;

/// How messages are received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MessagesConfig {
    /// Messages that arrive while the agent is busy with the same session.
    pub queue: QueueConfig,
    /// What stands before each reply in a chat; `"auto"` for the name of the agent's `identity` in brackets.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub response_prefix: Option<String>,
    /// The emoji with which a message in a chat is acknowledged, where the channel has reactions. Default: that of the
    /// agent's `identity`; without either there is no reaction.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub ack_reaction: Option<String>,
    /// Which messages are acknowledged.
    pub ack_reaction_scope: AckReactionScope,
}

/// Which messages are acknowledged by a reaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum AckReactionScope {
    /// Messages of groups that the agent answers.
    #[default]
    Group,
    /// Direct messages.
    Direct,
    /// Both.
    All,
    /// None.
    Off,
}

/// Messages that arrive while the agent is busy with the same session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct QueueConfig {
    /// What becomes of them.
    pub mode: QueueMode,
    /// For `collect`: milliseconds in which nobody writes before what was collected is answered; at most 60000.
    #[serde(deserialize_with = "values::within::<_, _, 0, MAX_DEBOUNCE_MS>")]
    #[schemars(range(min = 0, max = MAX_DEBOUNCE_MS))]
    pub debounce_ms: u64,
    /// Most messages that wait.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_CAP>")]
    #[schemars(range(min = 1, max = MAX_CAP))]
    pub cap: usize,
    /// What happens to a message beyond `cap`.
    pub drop: DropPolicy,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            mode: QueueMode::default(),
            debounce_ms: DEFAULT_DEBOUNCE_MS,
            cap: DEFAULT_CAP,
            drop: DropPolicy::default(),
        }
    }
}

/// What becomes of a message that arrives while the agent is busy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum QueueMode {
    /// The agent reads it before its next step.
    Steer,
    /// It is answered when the agent is done.
    Followup,
    /// When the agent is done, all that arrived is answered together.
    #[default]
    Collect,
    /// Both: the agent reads it before its next step, and answers it when it is done.
    SteerBacklog,
    /// The agent stops what it does and answers.
    Interrupt,
}

/// What happens to a message beyond the most that may wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum DropPolicy {
    /// The oldest one is dropped; its first words are kept for the agent.
    #[default]
    Summarize,
    /// The oldest one is dropped.
    Old,
    /// The new one is refused.
    New,
}

/// How many of the waiting messages are read at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum DeliveryMode {
    /// All that wait.
    #[default]
    All,
    /// The oldest; the next one when that is answered.
    OneAtATime,
}
