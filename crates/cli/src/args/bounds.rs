//! Options that bound one run.

use std::num::NonZeroU32;

use clap::Args;

/// Bounds of a run, in addition to those of the config.
#[derive(Debug, Clone, Args)]
pub(crate) struct BoundsArgs {
    /// Offer only these tools, as names, names with `*` and groups; several with commas; may be repeated
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) allow_tool: Vec<String>,
    /// Offer all tools but these, written in the same way
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) deny_tool: Vec<String>,
    /// Most calls of the model, instead of `agent.maxIterations`
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) max_turns: Option<NonZeroU32>,
    /// Most US dollars that the run and its sub-agents may cost, instead of `limits.runCost`
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_cost: Option<f64>,
}

/// How many are shown at most.
pub(crate) fn most_shown(text: &str) -> Result<usize, String> {
    usize::try_from(at_least_one(text)?.get()).map_err(|error| error.to_string())
}

/// Whether they are above 0 is decided where they are used.
fn dollars(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "write US dollars above 0, such as `0.50`".to_owned())
}

/// A number that is not zero.
pub(crate) fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("give a whole number from 1 to {}", u32::MAX))
}
