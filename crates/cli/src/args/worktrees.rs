//! The command line of `myclaw worktrees`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::help;

/// Arguments of `worktrees`.
#[derive(Debug, Args)]
pub(crate) struct WorktreesArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: WorktreesCommand,
}

/// What can be done with worktrees.
#[derive(Debug, Subcommand)]
pub(crate) enum WorktreesCommand {
    /// List the worktrees of the repository, with what is in them
    #[command(after_long_help = help::WORKTREES_LIST_EXAMPLES)]
    List {
        /// Whose.
        #[command(flatten)]
        whose: WhichRepository,
        /// Print JSON, one worktree per line
        #[arg(long)]
        json: bool,
    },
    /// Commit what is not committed in a worktree, merge its branch into what is checked out here, and remove both
    #[command(after_long_help = help::WORKTREES_MERGE_EXAMPLES)]
    Merge {
        /// Name of the worktree, as `worktrees list` prints it
        name: String,
        /// Whose.
        #[command(flatten)]
        whose: WhichRepository,
    },
    /// Remove a worktree; what is nowhere else stays on its branch
    #[command(visible_alias = "remove", after_long_help = help::WORKTREES_DROP_EXAMPLES)]
    Drop {
        /// Name of the worktree, as `worktrees list` prints it
        name: String,
        /// Whose.
        #[command(flatten)]
        whose: WhichRepository,
    },
}

/// The repository that a command is about.
#[derive(Debug, Args)]
pub(crate) struct WhichRepository {
    /// Directory of the repository, if not the current one
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}
