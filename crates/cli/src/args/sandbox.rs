//! The command line of `myclaw sandbox`.

use clap::{Args, Subcommand};

use super::{SessionArgs, help};

/// Arguments of `sandbox`.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SandboxCommand,
}

/// What can be done with the sandbox.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Show whether a session is sandboxed, why, and what is enforced
    #[command(after_long_help = help::SANDBOX_EXPLAIN_EXAMPLES)]
    Explain {
        /// The session.
        #[command(flatten)]
        session: SessionArgs,
        /// Print one JSON object instead of lines
        #[arg(long)]
        json: bool,
    },
    /// Try to get out of the sandbox on this machine, in some sixty ways; the exit code is 1 if one succeeds
    #[command(after_long_help = help::SANDBOX_TEST_EXAMPLES)]
    Test {
        /// The session.
        #[command(flatten)]
        session: SessionArgs,
    },
}
