//! The command line of `myclaw uninstall`.

use clap::Args;

/// Arguments of `uninstall`.
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Print what would be removed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove it without a question
    #[arg(short, long, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// Remove the workspaces, skills, commands and folders of groups in the state directory too
    #[arg(long)]
    pub(crate) workspace: bool,
}
