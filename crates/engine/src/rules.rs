//! The rules of a run, as values: how often, how long, how much, and how messages are taken in.

use std::time::Duration;

use myclaw_auth::CooldownRules;
use myclaw_config::{
    CompactionSettings, ContextPruning, DeliveryMode, IterationCap, LaneWidths, RunLimits,
};
use myclaw_llm::{CallLimits, ThinkingLevel};

/// What holds for a run whoever answers in it.
#[derive(Debug, Clone)]
pub struct RunRules {
    /// How much a model thinks where nobody asks for a level.
    pub thinking: ThinkingLevel,
    /// How often the model may be called for one message.
    pub max_iterations: IterationCap,
    /// Further attempts when a model call fails.
    pub max_retries: u32,
    /// Characters of a tool result that the model is shown.
    pub max_tool_result_chars: usize,
    /// Whether tools are kept inside the working directory.
    pub workspace_only: bool,
    /// When and how older messages are summarised.
    pub compaction: CompactionSettings,
    /// Whether old results of tools are sent shorter.
    pub context_pruning: ContextPruning,
    /// Most messages of the session that are sent; `None` for all.
    pub history_limit: Option<usize>,
    /// What else ends a run that would go on.
    pub limits: RunLimits,
    /// How many steering messages are read at once.
    pub steering: DeliveryMode,
    /// How many follow-ups are answered together.
    pub follow_ups: DeliveryMode,
    /// How long no message must have arrived before those that wait are taken together.
    pub quiet: Duration,
    /// How many runs go on at once.
    pub lanes: LaneWidths,
    /// Time limits of a model call.
    pub call: CallLimits,
    /// How long a key is left alone after failures that are remembered beyond the run.
    pub cooldowns: CooldownRules,
}
