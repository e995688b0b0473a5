//! The command line of `myclaw packages`.

use clap::{Args, Subcommand};

use super::help;

/// Arguments of `packages`.
#[derive(Debug, Args)]
pub(crate) struct PackagesArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: PackagesCommand,
}

/// What can be done with packages.
#[derive(Debug, Subcommand)]
pub(crate) enum PackagesCommand {
    /// Show what a package holds and asks for, and add it once you approve that
    #[command(long_about = help::PACKAGES_ADD, after_long_help = help::PACKAGES_ADD_EXAMPLES)]
    Add {
        /// A directory, a .tar.gz or .zip, `npm:NAME`, the https address of an archive, or of a git repository (`URL#BRANCH`)
        source: String,
        /// The directory of the source that is the package
        #[arg(long, value_name = "DIR")]
        subdirectory: Option<String>,
        /// Its name here; by default the one that it gives itself
        #[arg(long)]
        name: Option<String>,
        /// How it is approved.
        #[command(flatten)]
        approval: ApprovalArgs,
    },
    /// List the packages, and which are off
    #[command(after_long_help = help::PACKAGES_LIST_EXAMPLES)]
    List {
        /// Print JSON, one package per line
        #[arg(long)]
        json: bool,
    },
    /// Show what a package holds, what it asked for, and its files
    #[command(after_long_help = help::PACKAGES_SHOW_EXAMPLES)]
    Show {
        /// Name of the package
        name: String,
    },
    /// Fetch a package again, show what has changed, and take it once you approve that
    #[command(long_about = help::PACKAGES_UPDATE, after_long_help = help::PACKAGES_UPDATE_EXAMPLES)]
    Update {
        /// Name of the package
        name: String,
        /// How it is approved.
        #[command(flatten)]
        approval: ApprovalArgs,
    },
    /// Remove a package
    #[command(after_long_help = help::PACKAGES_REMOVE_EXAMPLES)]
    Remove {
        /// Name of the package
        name: String,
    },
    /// Compare each byte of the packages with what you approved; the exit code is 1 if one differs
    #[command(after_long_help = help::PACKAGES_VERIFY_EXAMPLES)]
    Verify {
        /// Name of the package; all without it
        name: Option<String>,
    },
}

/// How a package is approved.
#[derive(Debug, Args)]
pub(crate) struct ApprovalArgs {
    /// Approve without a question the package with the digest that --digest names
    #[arg(short, long, requires = "digest")]
    pub(crate) yes: bool,
    /// The digest of the package that is approved, as the command prints it
    #[arg(long, value_name = "SHA256", requires = "yes")]
    pub(crate) digest: Option<String>,
}
