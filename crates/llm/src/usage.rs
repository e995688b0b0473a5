//! Tokens and cost of model calls.

use serde::{Deserialize, Serialize};

use crate::Price;

/// Tokens of one call, or sums over several (see [`Usage::add_call`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Input tokens that were neither read from the provider's cache nor written to it.
    pub input: u64,
    /// Output tokens, thinking included.
    pub output: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write: u64,
    /// Part of `output` that was reasoning, where the provider says so.
    pub reasoning: u64,
    /// `input + output + cache_read + cache_write` of a call; sums of that over calls.
    pub total_tokens: u64,
    /// What it cost, from the catalog's prices.
    pub cost: Cost,
}

/// Cost in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// For `Usage::input`.
    pub input: f64,
    /// For `Usage::output`.
    pub output: f64,
    /// For `Usage::cache_read`.
    pub cache_read: f64,
    /// For `Usage::cache_write`.
    pub cache_write: f64,
    /// The sum.
    pub total: f64,
    /// Calls with an unknown price: they are not in the sum.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced_calls: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Fills `total_tokens` and `cost` from the counters. A price that is not known makes the cost unknown too.
    #[must_use]
    pub fn priced(mut self, price: Option<Price>) -> Self {
        let is_unpriced = price.is_none();
        let price = price.unwrap_or_default();
        let dollars = |tokens: u64, per_million: f64| tokens as f64 * per_million / 1_000_000.0;
        self.total_tokens = [self.output, self.cache_read, self.cache_write]
            .into_iter()
            .fold(self.input, u64::saturating_add);
        self.cost = Cost {
            input: dollars(self.input, price.input),
            output: dollars(self.output, price.output),
            cache_read: dollars(self.cache_read, price.cache_read),
            cache_write: dollars(self.cache_write, price.cache_write),
            total: 0.0,
            unpriced_calls: u64::from(is_unpriced && self.total_tokens > 0),
        };
        self.cost.total =
            self.cost.input + self.cost.output + self.cost.cache_read + self.cost.cache_write;
        self
    }

    /// Adds one more call to a run's usage: input, output and totals are summed; the cache counters and their cost
    /// are replaced by the latest call's, because each call reports about the whole context.
    pub fn add_call(&mut self, call: &Usage) {
        self.input += call.input;
        self.output += call.output;
        self.reasoning += call.reasoning;
        self.total_tokens += call.total_tokens;
        self.cache_read = call.cache_read;
        self.cache_write = call.cache_write;
        self.cost.input += call.cost.input;
        self.cost.output += call.cost.output;
        self.cost.total += call.cost.total;
        self.cost.unpriced_calls += call.cost.unpriced_calls;
        self.cost.cache_read = call.cost.cache_read;
        self.cost.cache_write = call.cost.cache_write;
    }
}
