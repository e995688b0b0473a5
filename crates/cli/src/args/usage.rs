//! The command line of `myclaw usage`.

use clap::{Args, ValueEnum};
use myclaw_gateway::usage::Group;

use myclaw_front::args::Age;

/// Arguments of `usage`.
#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// How far back, such as 24h, 7d or 52w; whole days (UTC) are counted
    #[arg(long, value_name = "AGE", default_value = "7d")]
    pub(crate) since: Age,
    /// What the lines are
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::Model)]
    pub(crate) by: By,
    /// Print one JSON object, with the usage of each day
    #[arg(long)]
    pub(crate) json: bool,
}

/// What usage is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The model that answered
    Model,
    /// The agent
    Agent,
    /// Where the message came from: a channel, `schedule`, `heartbeat` or `none`
    Channel,
    /// The session
    Session,
}

impl By {
    /// The form of the gateway.
    pub(crate) fn group(self) -> Group {
        match self {
            Self::Model => Group::Model,
            Self::Agent => Group::Agent,
            Self::Channel => Group::Channel,
            Self::Session => Group::Session,
        }
    }
}
