//! The command lines of `myclaw node` and `myclaw nodes`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::help;

/// Arguments of `node`.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Address of the gateway to pair with, such as wss://claw.example.org:18789
    #[arg(long, requires = "pair")]
    pub(crate) url: Option<String>,
    /// The code to pair with, from `myclaw devices code --scope node` on the gateway's machine
    #[arg(long, value_name = "CODE", requires = "url")]
    pub(crate) pair: Option<String>,
    /// PEM file with the certificate of that gateway, or of the authority that signed it
    #[arg(long, value_name = "FILE", requires = "pair")]
    pub(crate) ca: Option<PathBuf>,
    /// Accept ws:// to another machine: a VPN or a tunnel encrypts the whole way
    #[arg(long, requires = "pair")]
    pub(crate) protected_link: bool,
    /// How this node is called; the name of the machine by default
    #[arg(long, requires = "pair")]
    pub(crate) name: Option<String>,
}

/// Arguments of `nodes`.
#[derive(Debug, Args)]
pub(crate) struct NodesArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: NodesCommand,
}

/// What can be done with nodes.
#[derive(Debug, Subcommand)]
pub(crate) enum NodesCommand {
    /// List the nodes, and whether they are connected
    #[command(after_long_help = help::NODES_LIST_EXAMPLES)]
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print what is known about a node as JSON
    #[command(after_long_help = help::NODES_DESCRIBE_EXAMPLES)]
    Describe {
        /// Its id or name
        node: String,
    },
    /// Let a node in that has paired
    #[command(after_long_help = help::NODES_APPROVE_EXAMPLES)]
    Approve {
        /// Its id or name
        node: String,
    },
    /// Refuse a node that has paired
    #[command(after_long_help = help::NODES_REJECT_EXAMPLES)]
    Reject {
        /// Its id or name
        node: String,
    },
}
