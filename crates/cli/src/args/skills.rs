//! The command line of `myclaw skills`.

use clap::{Args, Subcommand};
use myclaw_agent::SessionOptions;

use super::help;

/// Arguments of `skills`.
#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SkillsCommand,
}

/// What can be done with skills.
#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills, and what keeps some from being used
    #[command(after_long_help = help::SKILLS_LIST_EXAMPLES)]
    List {
        /// Whose.
        #[command(flatten)]
        whose: WhoseSkills,
        /// Print JSON, one skill per line
        #[arg(long)]
        json: bool,
    },
    /// Print the path of a skill's file, and its text
    #[command(after_long_help = help::SKILLS_SHOW_EXAMPLES)]
    Show {
        /// Name of the skill, as `skills list` prints it
        name: String,
        /// Whose.
        #[command(flatten)]
        whose: WhoseSkills,
    },
    /// Say which skills cannot be used, and why; the exit code is 1 if there are any
    #[command(after_long_help = help::SKILLS_CHECK_EXAMPLES)]
    Check {
        /// Whose.
        #[command(flatten)]
        whose: WhoseSkills,
    },
}

/// The agent whose skills a command reads.
#[derive(Debug, Args)]
pub(crate) struct WhoseSkills {
    /// Agent whose workspace is searched too, by its id in the config file
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
}

impl WhoseSkills {
    /// The same in the form of the agent crate.
    pub(crate) fn options(&self) -> SessionOptions {
        SessionOptions { agent: self.agent.clone(), ..SessionOptions::default() }
    }
}
