//! The one config file: its schema, loading, substitution, paths and diagnostics.
//!
//! This crate knows where the file is, what it may contain and how to report its mistakes. It must not know what the
//! config is used for: models, sessions, tools and terminals appear here only as keys. The process environment is read
//! in one place, [`Environment::from_process`]; everything else takes an [`Environment`].
#![forbid(unsafe_code)]

mod agent;
mod cache;
mod config_path;
mod diagnose;
mod digest;
mod dotenv;
mod edit;
mod environment;
mod error;
mod file;
mod hints;
mod json_schema;
mod key_source;
mod load;
mod locate;
mod lookup;
mod mask;
mod masked;
mod paths;
mod project;
mod report;
mod scaffold;
mod schema;
mod semantics;
mod strict;
mod substitute;
mod suggest;
mod syntax;
mod tree;
mod validate;

pub use agent::{AgentId, ResolvedAgent};
pub use cache::ConfigCache;
pub use config_path::{ConfigPath, NotAPath};
pub use digest::{digest, secret_digest};
pub use dotenv::with_variable;
pub use edit::{ConfigChange, EditError, EditProblem, edit_config};
pub use environment::Environment;
pub use error::ConfigError;
pub use file::{ConfigFile, WriteError};
pub use json_schema::{json_schema, schema_outline, unknown_key};
pub use key_source::{KEYRING_SERVICE, KeySource};
pub use load::{Loaded, Mistake, load_config, load_or_default};
pub use lookup::{SubstitutionLookup, Workspaces};
pub use mask::{holds_literal_secret, is_secret_key};
pub use masked::{MASKED, MaskedValues};
pub use paths::{CONFIG_PATH_VARIABLE, HOME_VARIABLE, Paths, STATE_DIR_VARIABLE};
pub use project::{PROJECT_MARKERS, project_root};
pub use report::{Issue, Location, RenderStyle, Report};
pub use scaffold::{
    STARTER_CONFIG, Scaffold, StarterModel, scaffold_config_if_missing, starter_config,
    write_config_if_missing,
};
pub use schema::channels::*;
pub use schema::{
    AckReactionScope, ActiveHoursConfig, AgentConfig, AgentDefaults, AgentEntry, AgentLimits,
    AgentSandboxRules, AgentToolRules, AgentsConfig, AnyHookCommand, ApprovalConfig,
    AttributionConfig, AuthConfig, AuthProfile, BashToolConfig, Bind, BrowserToolConfig, ChatId,
    CommandLine, CommandRule, CompactionConfig, Config, ConfinementConfig, ConfinementLevel,
    ConfinementLimits, ContextPruning, CooldownConfig, CronConfig, DeliveryMode, DiagnosticsConfig,
    DropPolicy, ExecAsk, ExecRules, ExecSecurity, FsToolConfig, GATEWAY_PORT_VARIABLE,
    GatewayConfig, GroupChatConfig, Heartbeat, HeartbeatConfig, HeartbeatSession, HookCommand,
    HookEvent, HooksConfig, HostBinding, HostConfig, HostEntry, HostName, HumanDelayConfig,
    HumanDelayMode, IdentityConfig, IterationCap, KeyBindings, KeyName, KeysName, LaneWidths,
    LogLevel, LoggingConfig, McpAuth, McpConfig, McpSandbox, McpServerConfig, McpToolRules,
    MemoryConfig, MemorySearch, MemorySearchConfig, MessageToolConfig, MessagesConfig, ModelApi,
    ModelChoice, ModelCompat, ModelDefinition, ModelInput, ModelName, ModelPrice, ModelTimeouts,
    ModelsConfig, Network, NodeCommands, NodeConfig, NotePath, NotificationsName, OtherChats,
    OutputLimitName, PackagesConfig, PageOrigin, Persona, PrimaryModel, ProgramRule, ProjectConfig,
    ProjectMarker, ProjectStart, ProviderConfig, ProviderModels, QueueConfig, QueueMode,
    ReasoningReplayRule, RunLimits, SandboxMode, SandboxNetwork, SandboxRules, SearchProvider,
    SessionScope, SessionToolsConfig, SideFilesConfig, SkillDirectory, SkillEntry, SkillPlaces,
    SkillsConfig, SpeechConfig, StateDirectoryAccess, StatusPart, StreamUsageRule, Subagents,
    SubagentsConfig, SystemRoleName, TelemetryConfig, TerminalConfig, ThemeName, ThinkingDefault,
    ThinkingFormName, ThinkingWords, TlsConfig, ToolHookCommand, ToolProfile, ToolRules,
    ToolsConfig, TranscriptionConfig, TrustedProject, WebFetchConfig, WebSearchConfig,
    WebToolsConfig, WorkspaceAccessName,
};
pub use secrecy::{ExposeSecret, SecretString};
pub use semantics::mcp::is_mcp_server_name;
pub use substitute::has_env_reference;
pub use suggest::nearest;
pub use tree::json5_value;
