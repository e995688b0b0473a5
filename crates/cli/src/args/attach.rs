//! The command line of `myclaw attach`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `attach`.
#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// Name of the session to continue or begin; the default is the agent's main session
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// A gateway elsewhere, such as wss://claw.example.org:18789; the default is the one of this state directory
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// File with the token of that gateway; the default is the variable MYCLAW_GATEWAY_TOKEN
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) token_file: Option<PathBuf>,
    /// PEM file with the certificate of that gateway, or of the authority that signed it
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,
    /// Accept ws:// to another machine: a VPN or a tunnel encrypts the whole way
    #[arg(long, requires = "url")]
    pub(crate) protected_link: bool,
}
