//! The command line of `myclaw gateway`.

use clap::{Args, Subcommand};

use super::help;

/// Arguments of `gateway`.
#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// What to do; without it the gateway runs until it is stopped.
    #[command(subcommand)]
    pub(crate) command: Option<GatewayCommand>,
}

/// What can be done with a gateway.
#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Show whether a gateway runs, where it listens, and how many messages wait
    #[command(after_long_help = help::GATEWAY_STATUS_EXAMPLES)]
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}
