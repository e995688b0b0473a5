//! Arguments of `review`.

use clap::Args;
use myclaw_front::args::SessionArgs;

use super::BoundsArgs;

/// What is reviewed, and how.
#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// What to look at above all
    #[arg(value_name = "FOCUS")]
    pub(crate) focus: Vec<String>,
    /// Review this branch, compared with where it left the main branch, instead of the working tree
    #[arg(long, value_name = "NAME", conflicts_with = "pr")]
    pub(crate) branch: Option<String>,
    /// Review the pull request with this number or address, which `gh` fetches
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pr: Option<String>,
    /// Print the findings as one JSON object, or end with exit code 9
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only the answer, errors, and a line when builtin/demo answers
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The session.
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// What the run may do.
    #[command(flatten)]
    pub(crate) bounds: BoundsArgs,
}
