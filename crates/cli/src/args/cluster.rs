//! The command lines of `myclaw cluster` and `myclaw store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::help;

/// Arguments of `cluster`.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

/// What can be done with a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Show the gateways that share the database, what each holds, and how many messages wait
    #[command(after_long_help = help::CLUSTER_STATUS_EXAMPLES)]
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Stop the gateway of a machine: the others take over what it holds at once
    #[command(long_about = help::CLUSTER_DRAIN, after_long_help = help::CLUSTER_DRAIN_EXAMPLES)]
    Drain {
        /// Its name, as `cluster status` shows it
        node: String,
    },
}

/// Arguments of `store`.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

/// What can be done with the database of a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Create the tables, or bring them to the form of this version
    #[command(after_long_help = help::STORE_MIGRATE_EXAMPLES)]
    Migrate,
    /// Show whether the database can be used, and what is in it; changes nothing
    #[command(after_long_help = help::STORE_CHECK_EXAMPLES)]
    Check {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Copy the sessions and records of a state directory into an empty database
    #[command(long_about = help::STORE_IMPORT, after_long_help = help::STORE_IMPORT_EXAMPLES)]
    Import {
        /// The state directory; by default that of this program
        directory: Option<PathBuf>,
    },
    /// Copy the sessions and records of the database into a new state directory
    #[command(long_about = help::STORE_EXPORT, after_long_help = help::STORE_EXPORT_EXAMPLES)]
    Export {
        /// The directory, which must not exist or be empty
        directory: PathBuf,
    },
}
