//! The command line of `myclaw devices`.

use clap::{Args, Subcommand, ValueEnum};

use super::help;

/// Arguments of `devices`.
#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: DevicesCommand,
}

/// What can be done with devices.
#[derive(Debug, Subcommand)]
pub(crate) enum DevicesCommand {
    /// List the devices that have access, and those that wait for an approval
    #[command(after_long_help = help::DEVICES_LIST_EXAMPLES)]
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Make a code with which one new device can pair; it works once and for ten minutes
    #[command(after_long_help = help::DEVICES_CODE_EXAMPLES)]
    Code {
        /// What the device may do
        #[arg(long, value_enum, default_value = "operator")]
        scope: DeviceScope,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Let a device in that has paired
    #[command(after_long_help = help::DEVICES_APPROVE_EXAMPLES)]
    Approve {
        /// Its id or name
        device: String,
    },
    /// Refuse a device that has paired
    #[command(after_long_help = help::DEVICES_DENY_EXAMPLES)]
    Deny {
        /// Its id or name
        device: String,
    },
    /// Take the access of a device away, and end its connections at once
    #[command(after_long_help = help::DEVICES_REVOKE_EXAMPLES)]
    Revoke {
        /// Its id or name
        device: String,
    },
    /// Print a new token for a device; the old one no longer holds
    #[command(after_long_help = help::DEVICES_ROTATE_EXAMPLES)]
    Rotate {
        /// Its id or name
        device: String,
    },
}

/// What a device may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeviceScope {
    /// Everything, devices and the config included
    Owner,
    /// Talk to the agent, abort and approve
    Operator,
    /// Run what the gateway asks for
    Node,
    /// Deliver messages, and read nothing
    Webhook,
    /// See everything that is no secret, and change nothing
    ReadOnly,
}
