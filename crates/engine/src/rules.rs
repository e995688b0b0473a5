//! The rules of a run, as values: limits, waits, thinking, and how messages are taken in.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use myclaw_auth::CooldownRules;
use myclaw_config::{
    CompactionConfig, ContextPruning, DeliveryMode, IterationCap, LaneWidths, RunLimits,
};
use myclaw_files::ClosedPaths;
use myclaw_llm::{CallLimits, ErrorClass, ModelError, ThinkingLevel};

use crate::{ConfigKeys, KnownSecrets, SharedCost};

/// The rules of a run, whichever model answers.
#[derive(Debug, Clone)]
pub struct RunRules {
    /// Thinking level if the caller does not set one.
    pub thinking: ThinkingLevel,
    /// Most model calls for one message.
    pub max_iterations: IterationCap,
    /// Most retries of a failed model call.
    pub max_retries: u32,
    /// What becomes of an answer that was cut off by a failure.
    pub cut_answers: CutAnswers,
    /// Most characters of a tool result that the model sees.
    pub max_tool_result_chars: usize,
    /// Whether tools are kept inside the working directory.
    pub workspace_only: bool,
    /// Paths that no tool touches.
    pub closed: Arc<ClosedPaths>,
    /// Keys that are removed from the results of tools.
    pub known_secrets: Arc<KnownSecrets>,
    /// When and how older messages are summarised.
    pub compaction: CompactionConfig,
    /// What happens after a provider refused a request.
    pub refusals: RefusalRule,
    /// Whether old tool results are sent shorter.
    pub context_pruning: ContextPruning,
    /// Most messages of the session that are sent; `None` means all.
    pub history_limit: Option<usize>,
    /// The other limits that end a run.
    pub limits: RunLimits,
    /// What the limit on the cost of a run bounds besides the run itself: all of its family together, however many messages
    /// they answer.
    pub shared_cost: Option<SharedCost>,
    /// How many steering messages are taken at once.
    pub steering: DeliveryMode,
    /// How many follow-ups are answered together.
    pub follow_ups: DeliveryMode,
    /// How long no message must arrive before the waiting messages are taken together.
    pub quiet: Duration,
    /// How many runs go on at once.
    pub lanes: LaneWidths,
    /// Time limits of a model call.
    pub call: CallLimits,
    /// The IANA name of the user's time zone; `None` means the zone of this machine.
    pub time_zone: Option<String>,
    /// The config keys that set the limits.
    pub config_keys: ConfigKeys,
    /// How long a key is in cooldown after failures that are remembered beyond the run.
    pub cooldowns: CooldownRules,
}

/// What becomes of an answer whose beginning was shown, when its connection breaks or its server fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CutAnswers {
    /// What was shown is kept, and the failure is reported: nobody can take it back.
    #[default]
    Kept,
    /// It is made anew. For front-ends whose readers see the new beginning in place of the old one.
    Repeated,
}

/// What happens after a provider refused a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RefusalRule {
    /// A request that is too long is made smaller, in the steps of the overflow ladder. Any other refusal ends the run.
    #[default]
    Ladder,
    /// For models of unknown size and hosts that name no reason: after status 400 the session keeps only its newest
    /// messages, this many, and the request is made once more. There are no summaries.
    KeepNewest(NonZeroUsize),
}

impl RefusalRule {
    /// Whether a request that was refused with `error` may be answered if it is shorter.
    pub(crate) fn makes_shorter(self, error: &ModelError) -> bool {
        let is_overflow = error.class == ErrorClass::ContextOverflow;
        is_overflow || (matches!(self, Self::KeepNewest(_)) && error.status == Some(400))
    }
}
