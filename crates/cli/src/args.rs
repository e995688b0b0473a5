//! The command line: its grammar and its help texts.
//!
//! Nothing is read or decided here; a parsed command is plain data.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use myclaw_front::args::{ContinueArgs, ImageArgs, SessionArgs, WorktreeArgs};
use myclaw_front::gateway::WhichGateway;
use myclaw_protocols::{AcpArgs, RpcArgs};
use myclaw_tui::{AttachArgs, ChatArgs};

mod agents;
pub(crate) mod auth;
pub(crate) mod backup;
mod bounds;
mod channels;
mod cluster;
mod config;
mod cron;
mod devices;
mod elsewhere;
mod gateway;
mod help;
mod host;
mod later;
mod mcp;
mod memory;
mod nodes;
mod onboard;
mod packages;
mod policy;
mod review;
mod runner;
mod sandbox;
mod sessions;
mod skills;
mod speech;
pub(crate) mod uninstall;
pub(crate) mod update;
mod usage;
mod worktrees;

pub(crate) use agents::AgentsArgs;
pub(crate) use bounds::BoundsArgs;
pub(crate) use channels::{
    AddChannelArgs, ChannelKind, ChannelsArgs, ChannelsCommand, PairingArgs, PairingCommand,
};
pub(crate) use cluster::{ClusterArgs, StoreArgs};
#[cfg(feature = "postgres")]
pub(crate) use cluster::{ClusterCommand, StoreCommand};
pub(crate) use config::{ConfigArgs, ConfigCommand};
pub(crate) use cron::{CronArgs, CronCommand, JobArgs};
pub(crate) use devices::{DeviceScope, DevicesArgs, DevicesCommand};
pub(crate) use gateway::{
    GatewayArgs, GatewayCommand, InstallArgs, LinkArgs, LogsArgs, ServiceManager, UninstallArgs,
};
pub(crate) use host::{
    AddGroupArgs, GroupsArgs, GroupsCommand, HostArgs, HostBackend, HostDirectory, WhoseWorkflows,
    WorkflowsArgs, WorkflowsCommand,
};
use later::Later;
pub(crate) use mcp::{AddServerArgs, ImportServersArgs, McpArgs, McpCommand, ServerNetwork};
pub(crate) use memory::{MemoryArgs, MemoryCommand, WhoseMemory};
pub(crate) use nodes::{NodeArgs, NodesArgs, NodesCommand};
pub(crate) use onboard::OnboardArgs;
pub(crate) use packages::{ApprovalArgs, PackagesArgs, PackagesCommand};
pub(crate) use policy::{ApprovalsArgs, ApprovalsCommand, ExplainArgs, PolicyArgs, PolicyCommand};
pub(crate) use review::ReviewArgs;
pub(crate) use runner::RunnerArgs;
pub(crate) use sandbox::{SandboxArgs, SandboxCommand};
pub(crate) use sessions::{SessionsArgs, SessionsCommand};
pub(crate) use skills::{SkillsArgs, SkillsCommand, WhoseSkills};
pub(crate) use speech::{ListenArgs, SpeakArgs};
pub(crate) use usage::UsageArgs;
pub(crate) use worktrees::{WhichRepository, WorktreesArgs, WorktreesCommand};

/// A personal AI agent in one binary.
#[derive(Debug, Parser)]
#[command(
    name = "myclaw",
    version,
    about = "A personal AI agent in one binary",
    long_about = help::ABOUT,
    after_long_help = help::ROOT_EXAMPLES,
    propagate_version = true
)]
pub(crate) struct Cli {
    /// What to do; without it an interactive chat begins.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Options of the chat that begins when no command is given.
    #[command(flatten)]
    pub(crate) chat: ChatArgs,
}

impl Cli {
    /// Reads the command line.
    ///
    /// # Errors
    /// It cannot be understood, or it asks for help or the version.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::try_parse().map_err(elsewhere::with_advice).and_then(Self::arranged)
    }

    /// Gives the options before the command to the command, and refuses a command that does not exist, which would else be a
    /// message.
    fn arranged(mut self) -> Result<Self, clap::Error> {
        let before = std::mem::take(&mut self.chat.session);
        let resume = std::mem::take(&mut self.chat.resume);
        let images = std::mem::take(&mut self.chat.images);
        let worktree = std::mem::take(&mut self.chat.worktree);
        match &mut self.command {
            None => {
                self.chat.session = before;
                self.chat.resume = resume;
                self.chat.images = images;
                self.chat.worktree = worktree;
                return match elsewhere::refuse_message(&self.chat.message) {
                    Some(error) => Err(error),
                    None => Ok(self),
                };
            }
            Some(Command::Run(args)) if !resume.resume => {
                args.last.continue_last |= resume.continue_last;
                args.session.complete(before);
                args.images.complete(images);
                args.worktree.complete(worktree);
                return refuse_two(args.last.continue_last, &args.session).map(|()| self);
            }
            Some(Command::Chat(args)) => {
                args.resume.complete(resume);
                args.session.complete(before);
                args.images.complete(images);
                args.worktree.complete(worktree);
                return refuse_two(args.resume.is_given(), &args.session).map(|()| self);
            }
            Some(Command::Rpc(args))
                if !resume.resume
                    && images == ImageArgs::default()
                    && worktree == WorktreeArgs::default() =>
            {
                args.last.continue_last |= resume.continue_last;
                args.session.complete(before);
                return refuse_two(args.last.continue_last, &args.session).map(|()| self);
            }
            Some(_) if resume.is_given() => {
                let message = "--continue stands before `run`, `chat` and `rpc` only, --resume before `chat` only, or \
                               without a command";
                return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
            }
            Some(_) if worktree != WorktreeArgs::default() => {
                let message =
                    "--worktree stands before `run` and `chat` only, or without a command";
                return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
            }
            Some(_) if images != ImageArgs::default() => {
                let message = "--image stands before `run` and `chat` only, or without a command";
                return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
            }
            Some(_) if before == SessionArgs::default() => {}
            Some(_) => {
                let message = "the options of a session stand before `run`, `chat` and `rpc` only, \
                               or without a command";
                return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
            }
        }
        Ok(self)
    }
}

/// Refuses `--continue` and `--resume` beside the name of a session.
fn refuse_two(is_resumed: bool, session: &SessionArgs) -> Result<(), clap::Error> {
    if !is_resumed || session.session.is_none() {
        return Ok(());
    }
    let message =
        "--session names a session; --continue and --resume look for one. Give one of them";
    Err(Cli::command().error(ErrorKind::ArgumentConflict, message))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send one message and print the answer
    #[command(visible_alias = "agent", long_about = help::RUN, after_long_help = help::RUN_EXAMPLES)]
    Run(Later<RunArgs>),
    /// Review the working tree, a branch or a pull request
    #[command(long_about = help::REVIEW, after_long_help = help::REVIEW_EXAMPLES)]
    Review(Later<ReviewArgs>),
    /// Talk with the agent in the terminal (the default)
    #[command(long_about = help::CHAT, after_long_help = help::CHAT_EXAMPLES)]
    Chat(Later<ChatArgs>),
    /// Talk with the agent of a gateway, on this machine or elsewhere
    #[command(long_about = help::ATTACH, after_long_help = help::ATTACH_EXAMPLES)]
    Attach(Later<AttachArgs>),
    /// Serve a program that embeds MyClaw: JSON lines in, replies and events out
    #[command(long_about = help::RPC, after_long_help = help::RPC_EXAMPLES)]
    Rpc(Later<RpcArgs>),
    /// Serve an editor that speaks the Agent Client Protocol, such as Zed
    #[command(long_about = help::ACP, after_long_help = help::ACP_EXAMPLES)]
    Acp(Later<AcpArgs>),
    /// Run the process that is always on: messages of programs and web chats, each answered once
    #[command(long_about = help::GATEWAY, after_long_help = help::GATEWAY_EXAMPLES)]
    Gateway(Later<GatewayArgs>),
    /// Show and empty the gateways that share a database
    #[command(long_about = help::CLUSTER, after_long_help = help::CLUSTER_EXAMPLES)]
    Cluster(Later<ClusterArgs>),
    /// Create, check, fill and copy the database that several gateways share
    #[command(long_about = help::STORE, after_long_help = help::STORE_EXAMPLES)]
    Store(Later<StoreArgs>),
    /// Show and test the channels through which messages arrive: messengers, e-mail, webhooks, a socket
    #[command(long_about = help::CHANNELS, after_long_help = help::CHANNELS_EXAMPLES)]
    Channels(Later<ChannelsArgs>),
    /// Decide who may write to the agent
    #[command(long_about = help::PAIRING, after_long_help = help::PAIRING_EXAMPLES)]
    Pairing(Later<PairingArgs>),
    /// Decide which other browsers, scripts and machines may use the gateway
    #[command(long_about = help::DEVICES, after_long_help = help::DEVICES_EXAMPLES)]
    Devices(Later<DevicesArgs>),
    /// Connect this machine to a gateway elsewhere, which may then use it
    #[command(long_about = help::NODE, after_long_help = help::NODE_EXAMPLES)]
    Node(Later<NodeArgs>),
    /// Look after the other machines that the agent may use
    #[command(long_about = help::NODES, after_long_help = help::NODES_EXAMPLES)]
    Nodes(Later<NodesArgs>),
    /// Plan what the agent does by itself: once, at an interval, or at times of day
    #[command(long_about = help::CRON, after_long_help = help::CRON_EXAMPLES)]
    Cron(Later<CronArgs>),
    /// Run one job inside a container: JSON on standard input, answers between markers on standard output
    #[command(long_about = help::RUNNER, after_long_help = help::RUNNER_EXAMPLES)]
    Runner(Later<RunnerArgs>),
    /// Answer chats with one container per group, each with a runner in it
    #[command(long_about = help::HOST, after_long_help = help::HOST_EXAMPLES)]
    Host(Later<HostArgs>),
    /// Decide which chats a host answers, and where their files are
    #[command(long_about = help::GROUPS, after_long_help = help::GROUPS_EXAMPLES)]
    Groups(Later<GroupsArgs>),
    /// List, search, run and check the workflows of a group
    #[command(long_about = help::WORKFLOWS, after_long_help = help::WORKFLOWS_EXAMPLES)]
    Workflows(Later<WorkflowsArgs>),
    /// Show what models have used in sessions of the gateway: calls, tokens and cost
    #[command(long_about = help::USAGE, after_long_help = help::USAGE_EXAMPLES)]
    Usage(Later<UsageArgs>),
    /// Set up a model with its key, the workspace, a channel and the service, step by step; each is tried first
    #[command(long_about = help::ONBOARD, after_long_help = help::ONBOARD_EXAMPLES)]
    Onboard(Later<OnboardArgs>),
    /// Write a starter config and the workspace
    #[command(long_about = help::INIT, after_long_help = help::INIT_EXAMPLES)]
    Init,
    /// Check the config file, print its path or its JSON Schema
    #[command(long_about = help::CONFIG, after_long_help = help::CONFIG_EXAMPLES)]
    Config(Later<ConfigArgs>),
    /// List, search, show, fork, compact, undo, export, import or delete sessions
    #[command(long_about = help::SESSIONS, after_long_help = help::SESSIONS_EXAMPLES)]
    Sessions(Later<SessionsArgs>),
    /// List, merge and remove the git worktrees in which sessions work
    #[command(long_about = help::WORKTREES, after_long_help = help::WORKTREES_EXAMPLES)]
    Worktrees(Later<WorktreesArgs>),
    /// See, search, correct and delete what the agent remembers
    #[command(long_about = help::MEMORY, after_long_help = help::MEMORY_EXAMPLES)]
    Memory(Later<MemoryArgs>),
    /// List the models that can be used, show what is known about one, try one
    #[command(long_about = help::MODELS, after_long_help = help::MODELS_EXAMPLES)]
    Models(Later<ModelsArgs>),
    /// List the skills, show one, say which cannot be used
    #[command(long_about = help::SKILLS, after_long_help = help::SKILLS_EXAMPLES)]
    Skills(Later<SkillsArgs>),
    /// List the agents that are files, which sub-agents can be
    #[command(long_about = help::AGENTS, after_long_help = help::AGENTS_EXAMPLES)]
    Agents(Later<AgentsArgs>),
    /// Add packages of others: skills, commands, hooks, MCP servers and agents
    #[command(long_about = help::PACKAGES, after_long_help = help::PACKAGES_EXAMPLES)]
    Packages(Later<PackagesArgs>),
    /// Add, test, approve and list MCP servers, whose tools the agent uses
    #[command(long_about = help::MCP, after_long_help = help::MCP_EXAMPLES)]
    Mcp(Later<McpArgs>),
    /// Show what the sandbox of a session enforces, and test it on this machine
    #[command(long_about = help::SANDBOX, after_long_help = help::SANDBOX_EXAMPLES)]
    Sandbox(Later<SandboxArgs>),
    /// List, add, test and order the keys of providers
    #[command(long_about = help::AUTH, after_long_help = help::AUTH_EXAMPLES)]
    Auth(Later<auth::AuthArgs>),
    /// Show what a session may do, and which rule of the config decides
    #[command(long_about = help::POLICY, after_long_help = help::POLICY_EXAMPLES)]
    Policy(Later<PolicyArgs>),
    /// List or revoke the approvals of tool calls
    #[command(long_about = help::APPROVALS, after_long_help = help::APPROVALS_EXAMPLES)]
    Approvals(Later<ApprovalsArgs>),
    /// Show what is configured, what is missing and what to do next
    #[command(long_about = help::DOCTOR, after_long_help = help::DOCTOR_EXAMPLES)]
    Doctor(Later<DoctorArgs>),
    /// Print a completion script for a shell
    #[command(long_about = help::COMPLETIONS, after_long_help = help::COMPLETIONS_EXAMPLES)]
    Completions(Later<CompletionsArgs>),
    /// Write everything that MyClaw keeps into one file, or check such a file
    #[command(long_about = help::BACKUP, after_long_help = help::BACKUP_EXAMPLES)]
    Backup(Later<backup::BackupArgs>),
    /// Make a state directory of a backup
    #[command(long_about = help::RESTORE, after_long_help = help::RESTORE_EXAMPLES)]
    Restore(Later<backup::RestoreArgs>),
    /// Install another version, for copies that install.sh has installed
    #[command(long_about = help::UPDATE, after_long_help = help::UPDATE_EXAMPLES)]
    Update(Later<update::UpdateArgs>),
    /// Remove what MyClaw has written for this user: config, keys, sessions, the service
    #[command(long_about = help::UNINSTALL, after_long_help = help::UNINSTALL_EXAMPLES)]
    Uninstall(Later<uninstall::UninstallArgs>),
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The message; several words are joined by spaces, `-` alone reads standard input
    #[arg(value_name = "MESSAGE|-", required_unless_present = "goal")]
    pub(crate) message: Vec<String>,
    /// Go on, turn after turn, until this holds, or until !COMMAND succeeds; else exit code 1
    #[arg(long, value_name = "CONDITION", conflicts_with = "output_schema")]
    pub(crate) goal: Option<String>,
    /// Print one event per line as JSON instead of the text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only the answer, errors, and a line when builtin/demo answers
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Pictures.
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    /// Which session to go on with.
    #[command(flatten)]
    pub(crate) last: ContinueArgs,
    /// The session.
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// The worktree.
    #[command(flatten)]
    pub(crate) worktree: WorktreeArgs,
    /// The gateway.
    #[command(flatten)]
    pub(crate) gateway: WhichGateway,
    /// Keep nothing of what is said: no session is read or written
    #[arg(long, conflicts_with_all = ["session", "continue_last", "url"])]
    pub(crate) no_session: bool,
    /// What the run may do.
    #[command(flatten)]
    pub(crate) bounds: BoundsArgs,
    /// Answer with one JSON value that fits the JSON Schema in this file; else exit code 9
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
}

/// Arguments of `models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ModelsCommand,
}

/// What can be done with models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the known models and those of a server on this machine
    #[command(after_long_help = help::MODELS_LIST_EXAMPLES)]
    List(ModelsListArgs),
    /// Show all that is known about one model, with the source of each value
    #[command(after_long_help = help::MODELS_SHOW_EXAMPLES)]
    Show(ModelArgs),
    /// Make one tiny call to a model, and show what works
    #[command(long_about = help::MODELS_TEST, after_long_help = help::MODELS_TEST_EXAMPLES)]
    Test(ModelArgs),
}

/// Arguments of `models list`.
#[derive(Debug, Args)]
pub(crate) struct ModelsListArgs {
    /// Only those of this provider
    pub(crate) provider: Option<String>,
    /// The same as an option
    #[arg(short, long = "provider", value_name = "PROVIDER", conflicts_with = "provider")]
    pub(crate) provider_option: Option<String>,
    /// Only those whose name contains this text, ignoring upper and lower case
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Print JSON, one model per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of the commands about one model.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The model
    #[arg(value_name = "PROVIDER/MODEL")]
    pub(crate) model: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Show what is open in this set-up, and the command that closes it
    #[arg(long)]
    pub(crate) security: bool,
    /// Print JSON, one check per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, required_unless_present = "values")]
    pub(crate) shell: Option<Shell>,
    /// Print the values of an option, one per line, as the scripts do
    #[arg(long, value_enum, hide = true, conflicts_with = "shell")]
    pub(crate) values: Option<CompletedValues>,
}

/// The options whose values a shell completes by asking this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletedValues {
    /// Names of sessions.
    Session,
    /// Models, as provider/model.
    Model,
    /// Levels of thinking.
    Thinking,
    /// Ids of agents.
    Agent,
    /// Names of auth profiles.
    AuthProfile,
}

#[cfg(test)]
mod tests;
