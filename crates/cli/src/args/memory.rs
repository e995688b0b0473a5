//! The command line of `myclaw memory`.

use clap::{Args, Subcommand};
use myclaw_agent::SessionOptions;

use super::bounds::most_shown;
use super::help;

/// Arguments of `memory`.
#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,
}

/// What can be done with what an agent remembers.
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List the facts
    #[command(after_long_help = help::MEMORY_LIST_EXAMPLES)]
    List {
        /// Also facts that hold no more
        #[arg(long)]
        all: bool,
        /// Whose.
        #[command(flatten)]
        whose: WhoseMemory,
        /// Print JSON, one fact per line
        #[arg(long)]
        json: bool,
    },
    /// Print a fact and where it comes from
    #[command(after_long_help = help::MEMORY_SHOW_EXAMPLES)]
    Show {
        /// Id of the fact, as `memory list` prints it
        id: String,
        /// Whose.
        #[command(flatten)]
        whose: WhoseMemory,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Search the notes and all sessions, by words, and by meaning where a model is there
    #[command(after_long_help = help::MEMORY_SEARCH_EXAMPLES)]
    Search {
        /// A question or some words; several words are joined by spaces
        #[arg(required = true)]
        query: Vec<String>,
        /// Most passages
        #[arg(long, value_name = "N", value_parser = most_shown)]
        limit: Option<usize>,
        /// Also sessions in which other people write
        #[arg(long)]
        everybody: bool,
        /// Whose.
        #[command(flatten)]
        whose: WhoseMemory,
        /// Print JSON, one passage per line
        #[arg(long)]
        json: bool,
    },
    /// Remember a fact
    #[command(after_long_help = help::MEMORY_ADD_EXAMPLES)]
    Add {
        /// The fact, in one short sentence; several words are joined by spaces
        #[arg(required = true)]
        fact: Vec<String>,
        /// Id of the older fact that no longer holds
        #[arg(long, value_name = "ID")]
        replaces: Option<String>,
        /// Whose.
        #[command(flatten)]
        whose: WhoseMemory,
    },
    /// Change the words of a fact
    #[command(after_long_help = help::MEMORY_EDIT_EXAMPLES)]
    Edit {
        /// Id of the fact, as `memory list` prints it
        id: String,
        /// The new words; several words are joined by spaces
        #[arg(required = true)]
        fact: Vec<String>,
        /// Whose.
        #[command(flatten)]
        whose: WhoseMemory,
    },
    /// Forget a fact, on request also in the messages of all sessions
    #[command(long_about = help::MEMORY_FORGET, after_long_help = help::MEMORY_FORGET_EXAMPLES)]
    Forget {
        /// Id of the fact, as `memory list` prints it; with --word it may be missing
        #[arg(required_unless_present = "words")]
        id: Option<String>,
        /// Also replace its words by stars in all messages and all other files that the program keeps
        #[arg(long)]
        redact: bool,
        /// A word to replace, instead of those of the fact; may be repeated
        #[arg(long = "word", value_name = "WORD", requires = "redact")]
        words: Vec<String>,
        /// Confirm --redact, which cannot be undone
        #[arg(long)]
        yes: bool,
        /// Whose.
        #[command(flatten)]
        whose: WhoseMemory,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say why the agent knows a fact: the message that it comes from
    #[command(after_long_help = help::MEMORY_WHY_EXAMPLES)]
    Why {
        /// Id of the fact, as `memory list` prints it
        id: String,
        /// Whose.
        #[command(flatten)]
        whose: WhoseMemory,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The agent and the session whose notes a command uses.
#[derive(Debug, Args)]
pub(crate) struct WhoseMemory {
    /// Agent, by its id in the config file
    #[arg(short, long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Session of other people, which has notes of its own, by its key
    #[arg(short, long, value_name = "KEY")]
    pub(crate) session: Option<String>,
}

impl WhoseMemory {
    /// The same in the form of the agent crate.
    pub(crate) fn options(&self) -> SessionOptions {
        let (agent, session) = (self.agent.clone(), self.session.clone());
        SessionOptions { agent, session, ..SessionOptions::default() }
    }
}
