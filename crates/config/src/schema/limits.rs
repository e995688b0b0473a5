//! The limits of a run, and the number of runs at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values;

/// Seconds for one message: what the field's gateways allow a run.
const DEFAULT_RUN_SECONDS: u64 = 600;
/// Tokens for one message: the default iteration cap with a window of 200,000 that is full in each call.
const DEFAULT_RUN_TOKENS: u64 = 5_000_000;
/// Dollars for one message: enough for a long task on a large model, and a tolerable loss if something goes wrong.
const DEFAULT_RUN_COST: f64 = 5.0;
/// Tokens for a day: ten runs that each reach their limit.
const DEFAULT_DAY_TOKENS: u64 = 50_000_000;
/// Dollars for a day: five runs that each reach their limit.
const DEFAULT_DAY_COST: f64 = 25.0;
/// Repetitions after which the run is ended; the model is warned at the third.
const DEFAULT_REPEATED_CALLS: u32 = 6;
/// A week: longer runs need no limit.
const MAX_RUN_SECONDS: u64 = 604_800;
/// Most runs at once that make sense for one process.
const MAX_WIDTH: u64 = 1_000;

/// What ends a run that would go on; 0 takes a limit away. Each message of the owner's begins them anew, but for those
/// of a day.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RunLimits {
    /// Seconds for one message, waiting included; at most 604800 (a week).
    #[serde(deserialize_with = "values::within::<_, _, 0, MAX_RUN_SECONDS>")]
    #[schemars(range(min = 0, max = MAX_RUN_SECONDS))]
    pub run_seconds: u64,
    /// Tokens that the model calls for one message may read and write, cached ones included.
    pub run_tokens: u64,
    /// US dollars that one message may cost.
    #[serde(deserialize_with = "values::not_negative")]
    #[schemars(range(min = 0))]
    pub run_cost: f64,
    /// Tokens that all runs of a day (UTC) may read and write.
    pub day_tokens: u64,
    /// US dollars that all runs of a day (UTC) may cost.
    #[serde(deserialize_with = "values::not_negative")]
    #[schemars(range(min = 0))]
    pub day_cost: f64,
    /// How often the same tool calls may give the same results before the run is ended.
    #[schemars(range(min = 0, max = u32::MAX))]
    pub repeated_calls: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            run_seconds: DEFAULT_RUN_SECONDS,
            run_tokens: DEFAULT_RUN_TOKENS,
            run_cost: DEFAULT_RUN_COST,
            day_tokens: DEFAULT_DAY_TOKENS,
            day_cost: DEFAULT_DAY_COST,
            repeated_calls: DEFAULT_REPEATED_CALLS,
        }
    }
}

/// The limits of one agent that differ. Its limits of a day are compared with the usage of all agents too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentLimits {
    /// Seconds for one message, waiting included; at most 604800 (a week).
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 0, MAX_RUN_SECONDS>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = MAX_RUN_SECONDS))]
    pub run_seconds: Option<u64>,
    /// Tokens that the model calls for one message may read and write, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_tokens: Option<u64>,
    /// US dollars that one message may cost.
    #[serde(
        deserialize_with = "values::optional_not_negative",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub run_cost: Option<f64>,
    /// Tokens that all runs of a day (UTC) may read and write before this agent answers no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_tokens: Option<u64>,
    /// US dollars that all runs of a day (UTC) may cost before this agent answers no more.
    #[serde(
        deserialize_with = "values::optional_not_negative",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub day_cost: Option<f64>,
    /// How often the same tool calls may give the same results before the run is ended.
    #[schemars(range(min = 0, max = u32::MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_calls: Option<u32>,
}

impl RunLimits {
    /// These limits with what differs for an agent.
    pub(crate) fn with(self, agent: AgentLimits) -> Self {
        Self {
            run_seconds: agent.run_seconds.unwrap_or(self.run_seconds),
            run_tokens: agent.run_tokens.unwrap_or(self.run_tokens),
            run_cost: agent.run_cost.unwrap_or(self.run_cost),
            day_tokens: agent.day_tokens.unwrap_or(self.day_tokens),
            day_cost: agent.day_cost.unwrap_or(self.day_cost),
            repeated_calls: agent.repeated_calls.unwrap_or(self.repeated_calls),
        }
    }
}

/// How many runs of one process go on at the same time, by what started them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LaneWidths {
    /// Runs for messages.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_WIDTH>")]
    #[schemars(range(min = 1, max = MAX_WIDTH))]
    pub main: usize,
    /// Runs by the clock.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_WIDTH>")]
    #[schemars(range(min = 1, max = MAX_WIDTH))]
    pub cron: usize,
    /// Runs that another run started.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_WIDTH>")]
    #[schemars(range(min = 1, max = MAX_WIDTH))]
    pub subagent: usize,
    /// Runs that another run waits for.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_WIDTH>")]
    #[schemars(range(min = 1, max = MAX_WIDTH))]
    pub nested: usize,
}

impl Default for LaneWidths {
    fn default() -> Self {
        Self { main: 4, cron: 1, subagent: 8, nested: 1 }
    }
}
