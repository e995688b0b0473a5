//! The limits that end a run.

use std::fmt;
use std::sync::Arc;

use myclaw_config::RunLimits;
use myclaw_llm::{Model, Price};
use myclaw_session::Spent;
use serde::Serialize;

/// A limit that ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Model calls (`agent.maxIterations`).
    MaxIterations,
    /// Time (`agents.defaults.limits.runSeconds`).
    RunSeconds,
    /// Tokens (`agents.defaults.limits.runTokens`).
    RunTokens,
    /// Money (`agents.defaults.limits.runCost`).
    RunCost,
    /// Tokens of a day (`agents.defaults.limits.dayTokens`).
    DayTokens,
    /// Money of a day (`agents.defaults.limits.dayCost`).
    DayCost,
    /// Repetitions of the same calls with the same results (`agents.defaults.limits.repeatedCalls`).
    RepeatedCalls,
}

impl Bound {
    /// Every limit.
    pub const ALL: [Self; 7] = [
        Self::MaxIterations,
        Self::RunSeconds,
        Self::RunTokens,
        Self::RunCost,
        Self::DayTokens,
        Self::DayCost,
        Self::RepeatedCalls,
    ];

    /// The name in machine-readable output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxIterations => "max_iterations",
            Self::RunSeconds => "run_seconds",
            Self::RunTokens => "run_tokens",
            Self::RunCost => "run_cost",
            Self::DayTokens => "day_tokens",
            Self::DayCost => "day_cost",
            Self::RepeatedCalls => "repeated_calls",
        }
    }

    /// The config key that usually sets the limit.
    pub fn config_key(self) -> &'static str {
        match self {
            Self::MaxIterations => "agent.maxIterations",
            Self::RunSeconds => "agents.defaults.limits.runSeconds",
            Self::RunTokens => "agents.defaults.limits.runTokens",
            Self::RunCost => "agents.defaults.limits.runCost",
            Self::DayTokens => "agents.defaults.limits.dayTokens",
            Self::DayCost => "agents.defaults.limits.dayCost",
            Self::RepeatedCalls => "agents.defaults.limits.repeatedCalls",
        }
    }

    /// True for the limits of a day: once one is reached, no message of that day can be answered.
    pub fn is_of_a_day(self) -> bool {
        matches!(self, Self::DayTokens | Self::DayCost)
    }

    /// The limit that was reached, worded to follow "because".
    pub fn reason(self) -> &'static str {
        match self {
            Self::MaxIterations => "the number of model calls for one message is used up",
            Self::RunSeconds => "the time for one message is over",
            Self::RunTokens => "the tokens for one message are used up",
            Self::RunCost => "the money for one message is used up",
            Self::DayTokens => "the tokens of this day are used up",
            Self::DayCost => "the money of this day is used up",
            Self::RepeatedCalls => "the same calls gave the same results again and again",
        }
    }
}

/// Names the config key that sets a limit, for messages. A key is looked up only when a message needs it.
#[derive(Clone)]
pub struct ConfigKeys(Arc<dyn Fn(Bound) -> String + Send + Sync>);

impl ConfigKeys {
    /// Looks keys up with `key_of`.
    pub fn new(key_of: impl Fn(Bound) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(key_of))
    }

    /// The config key that sets `bound`.
    pub fn of(&self, bound: Bound) -> String {
        (self.0)(bound)
    }
}

impl fmt::Debug for ConfigKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ConfigKeys")
    }
}

/// Returns the limit of the day that forbids calls of `model`, if there is one. A limit on money does not forbid a free
/// model.
pub fn exhausted_budget(limits: &RunLimits, spent: Spent, model: &Model) -> Option<Bound> {
    if limits.day_tokens > 0 && spent.tokens >= limits.day_tokens {
        return Some(Bound::DayTokens);
    }
    let has_cost_limit = limits.day_cost > 0.0;
    let is_spent = has_cost_limit && spent.micro_dollars >= micro_dollars(limits.day_cost);
    let is_free = model.price == Some(Price::default());
    (is_spent && !is_free).then_some(Bound::DayCost)
}

/// Converts dollars and rounds up, so that many small calls are not free.
pub fn micro_dollars(dollars: f64) -> u64 {
    (dollars * 1e6 - 1e-6).ceil().max(0.0) as u64
}

#[cfg(test)]
mod tests;
