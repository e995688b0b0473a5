//! The command lines of `myclaw policy` and `myclaw approvals`.

use clap::{Args, Subcommand};
use myclaw_agent::SessionOptions;

use super::help;

/// Arguments of `policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

/// What can be done with the policy.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Show whether a tool or a command may run in a session, and which rule decides
    #[command(after_long_help = help::POLICY_EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
}

/// Arguments of `policy explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The tool; without it all tools are listed
    pub(crate) tool: Option<String>,
    /// A command for the tool `bash`
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Name or key of the session; the default is the agent's main session
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Agent, by its id in the config file
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Model that answers, as PROVIDER/MODEL, for rules about providers
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Print one JSON object per tool
    #[arg(long)]
    pub(crate) json: bool,
}

impl ExplainArgs {
    /// The session in the form of the agent crate.
    pub(crate) fn options(&self) -> SessionOptions {
        let (session, agent) = (self.session.clone(), self.agent.clone());
        SessionOptions { session, agent, model: self.model.clone(), ..SessionOptions::default() }
    }
}

/// Arguments of `approvals`.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ApprovalsCommand,
}

/// What can be done with approvals.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List the calls that are always approved, and those that wait for an answer
    #[command(after_long_help = help::APPROVALS_LIST_EXAMPLES)]
    List {
        /// Print JSON, one approval per line
        #[arg(long)]
        json: bool,
    },
    /// Take an approval back, so that the call is asked about again
    #[command(after_long_help = help::APPROVALS_REVOKE_EXAMPLES)]
    Revoke {
        /// The approval, as `approvals list` prints it
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// Take all back
        #[arg(long)]
        all: bool,
    },
}
