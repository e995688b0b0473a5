//! Options that several commands have in common.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use myclaw_agent::SessionOptions;
use myclaw_engine::Mode;
use myclaw_llm::ThinkingLevel;

mod duration;

pub use duration::Age;

/// Options that select a session, its agent, its model and its directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct SessionArgs {
    /// Name of the session to continue or begin; the default is a new one in a project, else the agent's main session
    #[arg(short, long, value_name = "NAME")]
    pub session: Option<String>,
    /// Model to use instead of the configured one, as PROVIDER/MODEL
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub model: Option<String>,
    /// How much the model thinks before it answers: off, minimal, low, medium, high or xhigh
    #[arg(short, long, value_name = "LEVEL")]
    pub thinking: Option<ThinkingLevel>,
    /// Permission mode: read-only, plan, ask, auto or sandbox; the default is that of the session, else auto
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,
    /// The only auth profile to use, as `myclaw auth list` names it
    #[arg(long, value_name = "PROFILE")]
    pub auth_profile: Option<String>,
    /// Agent to talk to, by its id in the config file
    #[arg(short, long, value_name = "ID")]
    pub agent: Option<String>,
    /// Directory in which the tools work, as a project, instead of the current one or the agent's workspace
    #[arg(short = 'C', long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

impl SessionArgs {
    /// Takes from `other` what is not set here.
    pub fn complete(&mut self, other: Self) {
        let Self { session, model, thinking, mode, auth_profile, agent, directory } = other;
        self.session = self.session.take().or(session);
        self.model = self.model.take().or(model);
        self.thinking = self.thinking.or(thinking);
        self.mode = self.mode.or(mode);
        self.auth_profile = self.auth_profile.take().or(auth_profile);
        self.agent = self.agent.take().or(agent);
        self.directory = self.directory.take().or(directory);
    }

    /// The options in the form of the agent crate.
    pub fn options(&self) -> SessionOptions {
        let Self { session, model, thinking, auth_profile, agent, directory, .. } = self.clone();
        let options = SessionOptions::default();
        SessionOptions { session, agent, directory, model, thinking, auth_profile, ..options }
    }
}

/// Whether to work in a worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct WorktreeArgs {
    /// Work in a git worktree of its own, new or of this NAME, on a branch myclaw/NAME
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub worktree: Option<String>,
}

impl WorktreeArgs {
    /// Takes the one of `other` if none is named here.
    pub fn complete(&mut self, other: Self) {
        self.worktree = self.worktree.take().or(other.worktree);
    }
}

/// Pictures for a message.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub struct ImageArgs {
    /// Picture to send with the message: PNG, JPEG, GIF or WebP; may be repeated
    #[arg(short = 'i', long = "image", value_name = "FILE")]
    pub paths: Vec<PathBuf>,
}

impl ImageArgs {
    /// Takes the pictures of `other` before these.
    pub fn complete(&mut self, other: Self) {
        self.paths.splice(0..0, other.paths);
    }
}

/// Whether to go on with the last session.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Args)]
pub struct ContinueArgs {
    /// Continue the last session of this directory
    #[arg(short, long = "continue", conflicts_with = "session")]
    pub continue_last: bool,
}

/// The sessions that a command reads.
#[derive(Debug, Default, Args)]
pub struct WhichSessions {
    /// Only those of this agent
    #[arg(short, long, value_name = "ID")]
    pub agent: Option<String>,
    /// Only those with this label; repeat it to require several labels
    #[arg(long, value_name = "LABEL")]
    pub label: Vec<String>,
}

/// Arguments of `sessions compact`.
#[derive(Debug, Args)]
pub struct CompactArgs {
    /// Name or key, as `sessions list` prints it
    pub name: String,
    /// What the summary should focus on
    #[arg(short, long, value_name = "TEXT")]
    pub focus: Option<String>,
    /// Model that writes the summary, instead of the configured one
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub model: Option<String>,
    /// The only auth profile to use, as `myclaw auth list` names it
    #[arg(long, value_name = "PROFILE")]
    pub auth_profile: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `sessions undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Name or key, as `sessions list` prints it
    pub name: String,
    /// The turn, counted from the latest that changed files, which is 1; the default is the latest not yet undone
    #[arg(long, value_name = "N")]
    pub turn: Option<usize>,
    /// Make the changes again that were undone last
    #[arg(long)]
    pub redo: bool,
    /// Only print what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// List the turns that changed files
    #[arg(long, conflicts_with_all = ["turn", "redo", "dry_run"])]
    pub list: bool,
    /// Directory in which the tools worked, if it was not the agent's workspace
    #[arg(short = 'C', long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `sessions export` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// The transcript, one JSON row per message; `sessions import` reads it.
    Jsonl,
    /// A document for people.
    Markdown,
    /// A page for a browser, with everything in one file.
    Html,
}
