//! The command lines of `myclaw host`, `groups` and `workflows`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{ListenArgs, SpeakArgs, help};
use myclaw_front::args::Age;

/// Where a host has its files.
#[derive(Debug, Args)]
pub(crate) struct HostDirectory {
    /// Directory of the host; the default is `host` in the state directory
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// What runs the runners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostBackend {
    /// Containers of podman
    Podman,
    /// Containers of docker
    Docker,
    /// This program's own sandbox: bubblewrap if it is installed, else Landlock
    Sandbox,
    /// Plain processes, which can do what this user can
    Process,
}

/// Arguments of `host`.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Where.
    #[command(flatten)]
    pub(crate) directory: HostDirectory,
    /// Name of the assistant; `@NAME` at its beginning addresses a message to it
    #[arg(long, value_name = "NAME", default_value = "Assistant")]
    pub(crate) name: String,
    /// What runs the runners
    #[arg(long, value_enum, default_value = "podman")]
    pub(crate) backend: HostBackend,
    /// Image of the containers
    #[arg(long, default_value = "myclaw-runner:latest")]
    pub(crate) image: String,
    /// Network of the containers, as podman or docker name it; the default is theirs
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Option<String>,
    /// Runners get neither the key nor the network: they reach the model through a socket of the host, which adds the key
    /// and counts what each group uses. `--network` gives them a network nevertheless
    #[arg(long)]
    pub(crate) model_socket: bool,
    /// With --model-socket: tokens of a day (UTC) after which a group's calls are refused
    #[arg(long, value_name = "N", requires = "model_socket")]
    pub(crate) model_tokens: Option<u64>,
    /// With --model-socket: most calls of a group within a minute
    #[arg(long, value_name = "N", default_value = "60", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) model_calls: u16,
    /// Most containers at a time
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) containers: u16,
    /// How long a runner waits for a further message of its group
    #[arg(long, value_name = "TIME", default_value = "30m")]
    pub(crate) idle_limit: Age,
    /// How long a runner may say nothing; at least the idle limit and twice --grace
    #[arg(long, value_name = "TIME", default_value = "30m")]
    pub(crate) hard_limit: Age,
    /// How long a runner may take to end when it is told to, and again when it is stopped
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) grace: Age,
    /// The wait before the first of five retries, in milliseconds; each further one is twice as long
    #[arg(long, value_name = "MS", default_value = "5000")]
    pub(crate) retry_base: u64,
    /// List of directories that may be mounted; the default is ~/.config/myclaw/mount-allowlist.json
    #[arg(long, value_name = "FILE")]
    pub(crate) allowlist: Option<PathBuf>,
    /// Program to run instead of this one, as `PROGRAM runner …`
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) runner: Option<PathBuf>,
    /// Who speaks answers to voice notes, and what runners ask for without a voice of their own.
    #[command(flatten)]
    pub(crate) speaking: SpeakArgs,
    /// Who makes texts of voice notes.
    #[command(flatten)]
    pub(crate) listening: ListenArgs,
    /// Further option of `myclaw runner`, such as --runner-option=--max-turns=20; can be repeated
    #[arg(long = "runner-option", value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) runner_options: Vec<String>,
}

/// The options of `host` without a command line around them.
#[derive(Debug, Parser)]
#[command(name = "host.options", no_binary_name = true)]
struct HostLine {
    #[command(flatten)]
    args: HostArgs,
}

impl HostArgs {
    /// Reads options as on the command line.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub(crate) fn from_options(options: &[String]) -> Result<Self, String> {
        let parsed = HostLine::try_parse_from(options);
        parsed.map(|line| line.args).map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        })
    }
}

/// Arguments of `groups`.
#[derive(Debug, Args)]
pub(crate) struct GroupsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: GroupsCommand,
}

/// What can be done with groups.
#[derive(Debug, Subcommand)]
pub(crate) enum GroupsCommand {
    /// Answer a chat; a host that runs begins at once
    #[command(after_long_help = help::GROUPS_ADD_EXAMPLES)]
    Add(AddGroupArgs),
    /// List the groups
    #[command(after_long_help = help::GROUPS_LIST_EXAMPLES)]
    List {
        /// Where.
        #[command(flatten)]
        directory: HostDirectory,
        /// Print JSON, one group per line
        #[arg(long)]
        json: bool,
    },
    /// Show one group with its directories
    #[command(after_long_help = help::GROUPS_SHOW_EXAMPLES)]
    Show {
        /// Its folder
        folder: String,
        /// Where.
        #[command(flatten)]
        directory: HostDirectory,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Answer a chat no longer; its files stay
    #[command(after_long_help = help::GROUPS_REMOVE_EXAMPLES)]
    Remove {
        /// Its folder
        folder: String,
        /// Where.
        #[command(flatten)]
        directory: HostDirectory,
    },
}

/// Arguments of `groups add`.
#[derive(Debug, Args)]
pub(crate) struct AddGroupArgs {
    /// The chat, as the channel names it
    pub(crate) chat: String,
    /// Name of its directory; `main` is the owner's own group, which has more rights
    #[arg(long)]
    pub(crate) folder: String,
    /// Name for people; the default is the folder
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Word at the beginning of a message for the agent, instead of @NAME
    #[arg(long, value_name = "WORD", conflicts_with = "all")]
    pub(crate) trigger: Option<String>,
    /// Answer every message
    #[arg(long)]
    pub(crate) all: bool,
    /// Further directory for its containers, as PATH, PATH:NAME or PATH:NAME:rw; can be repeated
    #[arg(long = "mount", value_name = "MOUNT")]
    pub(crate) mounts: Vec<String>,
    /// Where.
    #[command(flatten)]
    pub(crate) directory: HostDirectory,
}

/// Arguments of `workflows`.
#[derive(Debug, Args)]
pub(crate) struct WorkflowsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: WorkflowsCommand,
}

/// Whose workflows.
#[derive(Debug, Args)]
pub(crate) struct WhoseWorkflows {
    /// Folder of the group
    #[arg(short, long, value_name = "FOLDER", default_value = "main", conflicts_with = "path")]
    pub(crate) group: String,
    /// Directory with registry.json, instead of a group's
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
    /// Where.
    #[command(flatten)]
    pub(crate) directory: HostDirectory,
}

/// What can be done with workflows.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowsCommand {
    /// List the workflows
    #[command(after_long_help = help::WORKFLOWS_LIST_EXAMPLES)]
    List {
        /// Whose.
        #[command(flatten)]
        whose: WhoseWorkflows,
        /// Print JSON, one workflow per line
        #[arg(long)]
        json: bool,
    },
    /// Find workflows by a description, as the tool search_tools does
    #[command(after_long_help = help::WORKFLOWS_SEARCH_EXAMPLES)]
    Search {
        /// The description
        #[arg(required = true)]
        query: Vec<String>,
        /// Whose.
        #[command(flatten)]
        whose: WhoseWorkflows,
        /// Directory with all-MiniLM-L6-v2, as of `myclaw runner --weights`; without it, shared words count
        #[arg(long, value_name = "DIR")]
        weights: Option<PathBuf>,
        /// Print JSON, one workflow per line
        #[arg(long)]
        json: bool,
    },
    /// Run a workflow, as the tool run_workflow does
    #[command(after_long_help = help::WORKFLOWS_RUN_EXAMPLES)]
    Run {
        /// Its name
        name: String,
        /// Arguments, which become variables in capitals
        #[arg(value_name = "NAME=VALUE")]
        arguments: Vec<String>,
        /// Time limit
        #[arg(long, value_name = "TIME", default_value = "120s")]
        limit: Age,
        /// Whose.
        #[command(flatten)]
        whose: WhoseWorkflows,
    },
    /// Say everything that is wrong with the registry; the exit code is 1 if there is anything
    #[command(after_long_help = help::WORKFLOWS_CHECK_EXAMPLES)]
    Check {
        /// Whose.
        #[command(flatten)]
        whose: WhoseWorkflows,
    },
}
