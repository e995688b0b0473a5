//! What models have used: by hour and by day, for each model, agent, channel and session.
//!
//! Calls are counted in memory and added to the store a moment later, so a burst of calls costs one transaction. A record
//! holds one hour or one day; both have a limit of rows, and an age at which they are removed. A question reads the records
//! of its time only, so its cost depends neither on the age of the store nor on the number of calls.

mod access;
mod book;
mod bucket;
mod http;
mod request;

use myclaw_llm::Usage;
use serde::{Deserialize, Serialize};

pub use access::usage;
pub(crate) use book::UsageBook;
pub use bucket::Bucket;
pub(crate) use http::routes;
pub use request::{Group, UsageAnswer, UsageBucket, UsageRequest, UsageRow};

/// The name of what has no row of its own.
const OTHER: &str = "other";

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Used {
    /// Model calls: those that gave a message, and failed ones that used something.
    pub calls: u64,
    /// Input tokens that the provider's cache had no part in.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens that came from the provider's cache.
    pub cache_read: u64,
    /// Input tokens that were written to it.
    pub cache_write: u64,
    /// In US dollars, from the catalog's prices.
    pub cost: f64,
    /// Calls whose price is not known; their cost is missing.
    pub unpriced_calls: u64,
}

impl Used {
    /// Adds one call.
    pub(crate) fn add_call(&mut self, usage: &Usage) {
        self.add(&Self {
            calls: 1,
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            cost: usage.cost.total,
            unpriced_calls: usage.cost.unpriced_calls,
        });
    }

    /// Adds what others have used.
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cost += other.cost;
        self.unpriced_calls += other.unpriced_calls;
    }

    /// All tokens.
    pub fn tokens(&self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write
    }
}

#[cfg(test)]
mod tests;
