//! The schema of the config file: one strict type per object, with defaults.
//!
//! The types are validated while they are read, so a [`Config`] that exists is valid by itself; checks across several
//! keys are in [`crate::semantics`]. Editors show the doc comments of the fields as descriptions, so they are written
//! for the person who edits the file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::{Environment, Paths};

mod agents;
mod auth;
mod bindings;
mod browser;
pub(crate) mod channels;
mod diagnostics;
mod gateway;
mod heartbeat;
mod hooks;
mod host;
mod limits;
mod mcp;
mod memory;
mod messages;
mod models;
mod node;
mod packages;
mod persona;
mod policy;
mod project;
mod sandbox;
mod side_files;
mod skills;
mod speech;
mod subagents;
mod terminal;
mod values;
mod web;

pub use agents::{
    AgentConfig, AgentDefaults, AgentEntry, AgentsConfig, CompactionConfig, ContextPruning,
};
pub use auth::{AuthConfig, CooldownConfig};
pub use bindings::{KeyBindings, KeyName};
pub use browser::BrowserToolConfig;
pub(crate) use channels::*;
pub use diagnostics::{DiagnosticsConfig, TrustedProject};
pub use gateway::{Bind, GatewayConfig, HostName, Network, PageOrigin, TelemetryConfig, TlsConfig};
pub use heartbeat::{ActiveHoursConfig, CronConfig, Heartbeat, HeartbeatConfig, HeartbeatSession};
pub use hooks::{
    AnyHookCommand, CommandLine, HookCommand, HookEvent, HooksConfig, ToolHookCommand,
};
pub use host::{HostBinding, HostConfig};
pub use limits::{AgentLimits, LaneWidths, RunLimits};
pub use mcp::{McpAuth, McpConfig, McpSandbox, McpServerConfig, McpToolRules};
pub use memory::{MemoryConfig, MemorySearch, MemorySearchConfig, NotePath};
pub use messages::{
    AckReactionScope, DeliveryMode, DropPolicy, MessagesConfig, QueueConfig, QueueMode,
};
pub use models::{
    AttributionConfig, AuthProfile, ModelApi, ModelCompat, ModelDefinition, ModelInput, ModelPrice,
    ModelTimeouts, ModelsConfig, OutputLimitName, ProviderConfig, ProviderModels,
    ReasoningReplayRule, StreamUsageRule, SystemRoleName, ThinkingDefault, ThinkingFormName,
    ThinkingWords,
};
pub use node::{NodeCommands, NodeConfig};
pub use packages::PackagesConfig;
pub(crate) use persona::pattern as mention_pattern;
pub use persona::{
    GroupChatConfig, HumanDelayConfig, HumanDelayMode, IdentityConfig, MessageToolConfig,
    OtherChats, Persona,
};
pub use policy::{
    AgentSandboxRules, AgentToolRules, ApprovalConfig, CommandRule, ExecAsk, ExecRules,
    ExecSecurity, ProgramRule, SandboxMode, SandboxRules, ToolProfile, ToolRules,
};
pub use project::{ProjectConfig, ProjectMarker, ProjectStart};
pub use sandbox::{
    ConfinementConfig, ConfinementLevel, ConfinementLimits, SandboxNetwork, WorkspaceAccessName,
};
pub use side_files::SideFilesConfig;
pub use skills::{SkillDirectory, SkillEntry, SkillPlaces, SkillsConfig};
pub use speech::{SpeechConfig, TranscriptionConfig};
pub use subagents::{SessionScope, SessionToolsConfig, Subagents, SubagentsConfig};
pub use terminal::{KeysName, NotificationsName, StatusPart, TerminalConfig, ThemeName};
pub use values::{ChatId, IterationCap, ModelChoice, ModelName, PrimaryModel};
pub(crate) use values::{FORMATS, Format};
pub use web::{HostEntry, SearchProvider, WebFetchConfig, WebSearchConfig, WebToolsConfig};

/// Overrides `gateway.port`.
pub use myclaw_files::variables::GATEWAY_PORT as GATEWAY_PORT_VARIABLE;
/// Seconds that a shell command may run: long enough for a build, short enough that a hung command is noticed.
const DEFAULT_BASH_TIMEOUT_SECONDS: u64 = 600;
/// As in OpenClaw.
const DEFAULT_YIELD_MS: u64 = 10_000;
/// Longer waits are the command's own time limit.
const MAX_YIELD_MS: u64 = 600_000;
/// A day: a longer task needs a service, not a tool call.
const MAX_SECONDS: u64 = 86_400;

/// The config of MyClaw.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "MyClaw config")]
pub struct Config {
    /// Address of this file's JSON Schema, for editors. MyClaw itself does not read it.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The number of this file's format. A version of MyClaw that knows only lower ones refuses the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<u32>,
    /// The model provider that answers, with its keys. Leave it out to let MyClaw look for keys in the environment
    /// and for a model server on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ProviderConfig>,
    /// How an agent works, unless `agents` says otherwise.
    pub agent: AgentConfig,
    /// Several agents, each with its own workspace and model.
    pub agents: AgentsConfig,
    /// Channels through which messages arrive.
    pub channels: ChannelsConfig,
    /// Which agent answers which messages. The most specific entry counts, and among equals the first. Messages that
    /// none names are answered by the default agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
    /// Chats that are answered by container runners. With this section, even an empty one, the gateway runs a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostConfig>,
    /// How messages are received.
    pub messages: MessagesConfig,
    /// The long-lived process that serves the web chat and the channels.
    pub gateway: GatewayConfig,
    /// What this machine offers to a gateway elsewhere.
    pub node: NodeConfig,
    /// Jobs that the gateway runs by the clock.
    pub cron: CronConfig,
    /// What is logged.
    pub logging: LoggingConfig,
    /// The chat in the terminal.
    pub terminal: TerminalConfig,
    /// Config of the built-in tools.
    pub tools: ToolsConfig,
    /// Servers of the Model Context Protocol, whose tools the agents use.
    pub mcp: McpConfig,
    /// Commands that are run around an agent's work.
    pub hooks: HooksConfig,
    /// Skills: directories with a `SKILL.md` that teach the agent a task.
    pub skills: SkillsConfig,
    /// Packages of others, which `myclaw packages` adds.
    pub packages: PackagesConfig,
    /// Projects: directories in which the agent works instead of its workspace.
    pub project: ProjectConfig,
    /// What agents remember.
    pub memory: MemoryConfig,
    /// The room that files next to sessions take.
    pub side_files: SideFilesConfig,
    /// Who speaks: makes voice messages of texts.
    pub speech: SpeechConfig,
    /// Who listens: makes texts of voice notes that arrive on channels.
    pub transcription: TranscriptionConfig,
    /// Time limits of model calls, and models of your own.
    pub models: ModelsConfig,
    /// How keys that fail are treated.
    pub auth: AuthConfig,
    /// Directories of this installation, which relative and default workspaces are resolved against. Not part of the
    /// file: [`crate::load_config`] and [`crate::load_or_default`] fill it in.
    #[serde(skip)]
    #[schemars(skip)]
    pub paths: Option<Paths>,
}

impl Config {
    /// The port on which the gateway listens: `MYCLAW_GATEWAY_PORT` if that is a number from 1 to 65535, else the one
    /// in the file. Other values of the variable are ignored.
    pub fn gateway_port(&self, environment: &Environment) -> u16 {
        let given =
            environment.get(GATEWAY_PORT_VARIABLE).and_then(|text| text.trim().parse().ok());
        given.filter(|port| *port > 0).unwrap_or(self.gateway.port)
    }

    /// The database of a cluster, or where its address is kept: `MYCLAW_STORE_URL`, else the one in the file. `None` if
    /// everything is in the state directory.
    pub fn store_address(&self, environment: &Environment) -> Option<SecretString> {
        let given = environment.get(myclaw_files::variables::STORE_URL).map(str::trim);
        let given = given.filter(|address| !address.is_empty()).map(SecretString::from);
        given.or_else(|| self.gateway.store.clone())
    }

    /// The keys, tokens and passwords in it, as they are written. A key may be written as the place where it is kept
    /// ([`crate::KeySource`]).
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let profiles = self.provider.iter().flat_map(|provider| &provider.auth_profiles);
        let own = self.models.providers.values();
        profiles
            .map(|profile| &profile.api_key)
            .chain(own.filter_map(|own| own.api_key.as_ref()))
            .chain(&self.gateway.token)
            .chain(&self.gateway.store)
            .chain(&self.gateway.blobs)
            .chain(self.channels.secrets())
            .chain(&self.tools.web.search.api_key)
            .chain(&self.speech.api_key)
            .chain(&self.transcription.api_key)
    }

    /// The headers of requests in it and the variables of MCP servers, by their names. Each may hold a secret.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &SecretString)> {
        let own = self.models.providers.values().map(|own| &own.headers);
        let telemetry = self.gateway.telemetry.iter().map(|telemetry| &telemetry.headers);
        let own = own.chain(telemetry).flatten().map(|(name, value)| (name.as_str(), value));
        own.chain(self.all_mcp().flat_map(McpConfig::variables))
    }

    /// The servers of all agents, and those of each.
    fn all_mcp(&self) -> impl Iterator<Item = &McpConfig> {
        self.agents.list.iter().map(|entry| &entry.mcp).chain([&self.mcp])
    }

    /// The commands that this program starts itself: of hooks, and those that speak and listen.
    pub fn own_commands(&self) -> impl Iterator<Item = &CommandLine> {
        let hooks = self.hooks.commands().map(|(_, _, hook)| hook.command);
        hooks.chain(&self.speech.command).chain(&self.transcription.command)
    }
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LoggingConfig {
    /// Whether `myclaw.log` is written, in the directory `logs` of the state directory: at most five files of 10 MB.
    pub file: bool,
    /// The lowest level that is logged. The variable `MYCLAW_LOG` overrides it.
    pub level: LogLevel,
    /// Whether keys, and what looks like one, are removed from logs.
    pub redact_sensitive: bool,
}

impl Default for LoggingConfig {
    fn default() -> Self {
        Self { file: false, level: LogLevel::default(), redact_sensitive: true }
    }
}

/// How important a log message is, least first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LogLevel {
    /// Details for finding faults.
    Debug,
    /// Normal operation.
    #[default]
    Info,
    /// Possible problems.
    Warn,
    /// Failures.
    Error,
}

impl LogLevel {
    /// The name used in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// Config of the built-in tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolsConfig {
    /// A named set of tools. Tools outside it are denied. Default: `full`, every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ToolProfile>,
    /// The only tools that may run: names, names with `*`, and groups such as `group:fs`. Leave it out to set no
    /// limit; an empty list denies every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Tools that may not run, written as in `allow`. A tool in both lists is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<String>>,
    /// Tools whose calls need your approval, written as in `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Vec<String>>,
    /// Which commands may run.
    pub exec: ExecRules,
    /// Further rules for models of a provider, by its name, or for one model, as `provider/model`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_provider: BTreeMap<String, ToolRules>,
    /// Further rules for messages of one channel, such as `telegram`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_channel: BTreeMap<String, ToolRules>,
    /// Further rules for messages of one person, as `channel:id` or `id`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_sender: BTreeMap<String, ToolRules>,
    /// How questions about tool calls are asked.
    pub approvals: ApprovalConfig,
    /// The tools that read and change files.
    pub fs: FsToolConfig,
    /// The tool that runs shell commands.
    pub bash: BashToolConfig,
    /// The tools that read and search the web.
    pub web: WebToolsConfig,
    /// The errors that edits add, from language servers.
    pub diagnostics: DiagnosticsConfig,
    /// The tool that uses a web browser.
    pub browser: BrowserToolConfig,
    /// The tools that read sessions and write to them.
    pub sessions: SessionToolsConfig,
    /// The tool that says something in chats.
    pub message: MessageToolConfig,
}

impl ToolsConfig {
    /// The rules for tools alone.
    pub fn rules(&self) -> ToolRules {
        let Self { profile, allow, deny, ask, .. } = self.clone();
        ToolRules { profile, allow, deny, ask }
    }
}

/// The tools that read and change files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FsToolConfig {
    /// Whether file tools refuse every path outside the agent's workspace.
    pub workspace_only: bool,
    /// Directories below the state directory that tools may read and change, such as `"skills"`. All of the state directory
    /// but the workspaces is closed to tools otherwise; its `skills` may be read in any case.
    pub state_directories: Vec<String>,
}

/// The tool that runs shell commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BashToolConfig {
    /// Seconds after which a command is stopped when the model asked for no limit of its own; at most 86400 (a day).
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    pub timeout_seconds: u64,
    /// Milliseconds after which a command continues as a background job, in sessions that stay open; 0 for never, at most
    /// 600000 (10 minutes).
    #[serde(deserialize_with = "values::within::<_, _, 0, MAX_YIELD_MS>")]
    #[schemars(range(min = 0, max = MAX_YIELD_MS))]
    pub yield_ms: u64,
    /// Whether commands outside a sandbox find the state directory (config, keys, sessions).
    pub state_directory: StateDirectoryAccess,
}

/// Whether commands outside a sandbox find the state directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StateDirectoryAccess {
    /// It is hidden where the program runs as root, and where commands are restricted (`tools.exec.security`). Other users
    /// would lose sudo and the like.
    #[default]
    Auto,
    /// It is hidden, or the command does not run.
    Hidden,
    /// It is there.
    Open,
}

impl BashToolConfig {
    /// The longest time that a command may be given, in seconds.
    pub const LONGEST_SECONDS: u64 = MAX_SECONDS;
}

impl Default for BashToolConfig {
    fn default() -> Self {
        Self {
            timeout_seconds: DEFAULT_BASH_TIMEOUT_SECONDS,
            yield_ms: DEFAULT_YIELD_MS,
            state_directory: StateDirectoryAccess::default(),
        }
    }
}
