//! The command lines of `myclaw rpc` and `myclaw acp`.

use std::path::PathBuf;

use clap::Args;
use myclaw_engine::Mode;
use myclaw_front::args::{ContinueArgs, SessionArgs};
use myclaw_front::gateway::WhichGateway;
use myclaw_llm::ThinkingLevel;

/// Arguments of `acp`. The editor chooses the directory and the session.
#[derive(Debug, Args)]
pub struct AcpArgs {
    /// Model to use instead of the configured one, as PROVIDER/MODEL
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// How much the model thinks before it answers: off, minimal, low, medium, high or xhigh
    #[arg(short, long, value_name = "LEVEL")]
    thinking: Option<ThinkingLevel>,
    /// Permission mode: read-only, plan, ask, auto or sandbox; the default is that of the session, else auto
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// The only auth profile to use, as `myclaw auth list` names it
    #[arg(long, value_name = "PROFILE")]
    auth_profile: Option<String>,
    /// Agent to talk to, by its id in the config file
    #[arg(short, long, value_name = "ID")]
    agent: Option<String>,
}

impl From<AcpArgs> for SessionArgs {
    fn from(args: AcpArgs) -> Self {
        let AcpArgs { model, thinking, mode, auth_profile, agent } = args;
        Self { model, thinking, mode, auth_profile, agent, ..Self::default() }
    }
}

/// Arguments of `rpc`.
#[derive(Debug, Args)]
pub struct RpcArgs {
    /// Which session to go on with.
    #[command(flatten)]
    pub last: ContinueArgs,
    /// The first current session.
    #[command(flatten)]
    pub session: SessionArgs,
    /// The gateway.
    #[command(flatten)]
    pub gateway: WhichGateway,
}

/// Arguments of `mcp serve`.
#[derive(Debug, Clone, Args)]
pub struct McpServeArgs {
    /// Model to use instead of the configured one, as PROVIDER/MODEL
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// How much the model thinks before it answers: off, minimal, low, medium, high or xhigh
    #[arg(short, long, value_name = "LEVEL")]
    thinking: Option<ThinkingLevel>,
    /// Permission mode: read-only, plan, ask, auto or sandbox; the default is that of the session, else auto
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// The only auth profile to use, as `myclaw auth list` names it
    #[arg(long, value_name = "PROFILE")]
    auth_profile: Option<String>,
    /// Agent to talk to, by its id in the config file
    #[arg(short, long, value_name = "ID")]
    agent: Option<String>,
    /// Directory in which the tools of new sessions work, instead of the current project or the agent's workspace
    #[arg(short = 'C', long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl From<McpServeArgs> for SessionArgs {
    fn from(args: McpServeArgs) -> Self {
        let McpServeArgs { model, thinking, mode, auth_profile, agent, directory } = args;
        Self { model, thinking, mode, auth_profile, agent, directory, ..Self::default() }
    }
}
