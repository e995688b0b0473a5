//! An agent ready to run: the resolved config, models and keys, open sessions, tools and hooks.
//!
//! Every front-end, and every program that embeds an agent, needs this crate and no other. [`run_agent`] answers one
//! message. A [`Session`] stays open between its runs and takes messages while it runs; all sessions of a front-end share
//! a [`Driver`]. This crate does not know terminals, the command line, exit codes or HTTP servers: a failure is an
//! [`AgentError`] with a class.
#![forbid(unsafe_code)]

pub mod approvals;
mod ask_once;
mod blocking;
mod browser_tool;
mod closed;
mod config_check;
mod config_write;
mod confinement;
mod declarations;
mod direct_call;
mod driver;
mod error;
pub mod export;
mod helper;
mod hiding;
mod home;
mod jobs;
mod key_lookup;
mod known_agent;
pub mod mcp;
mod memory;
mod models;
mod outgoing;
mod outputs;
pub mod permissions;
mod project;
mod providers;
mod run;
mod secrets;
mod security_check;
mod selection;
mod session;
mod session_config;
mod setup;
mod side_files;
mod similar;
mod skills;
mod speech_setup;
mod stores;
mod trial;
mod undo;
mod web_tools;
mod workspace;

pub use browser_tool::browser_obstacle;
pub use config_check::{Examination, load_checked};
pub use config_write::{
    ConfigProposal, ConfigWriteError, WrittenConfig, change_config, check_config, replace_config,
};
#[cfg(target_os = "linux")]
pub use confinement::try_escapes;
pub use confinement::{SandboxProblem, SandboxReport, StoppedRuns, own_sandbox, sandbox_problems};
pub use declarations::declaration_of;
pub use direct_call::DirectTools;
pub use driver::{Driver, FrontEndTools};
pub use error::{AgentError, FailureClass};
pub use helper::helper_main;
pub use hiding::{IfHidingFails, StateDirectoryReport};
pub use home::Home;
pub use jobs::JobWake;
pub use key_lookup::{KeyPresence, find_program, look_for_key, look_for_profile};
pub use known_agent::check_agent;
pub use models::{configured_model, profiles_in_order};
pub use providers::{HttpProviders, engine, key_resolver};
pub use run::{RunAgentParams, run_agent, run_agent_with};
pub use secrets::written_secrets;
pub use security_check::{SecurityFinding, Severity, security_findings};
pub use selection::{
    LOCAL_SERVERS_VARIABLE, Selection, SelectionSource, Wanted, apply_served_facts,
    configured_local_probe, environment_key, known_providers, local_base_url, local_probe, select,
    unknown_provider,
};
pub use session::{
    Accepted, Done, Foreground, Handover, Next, Outcome, RAN_COMMAND, Session, SessionCallback,
    SessionEvent, Work, is_remark,
};
pub use session_config::{
    CRON_CHANNEL, HEARTBEAT_PEER, MAIN_SESSION, PERSON_CHANNEL, RunAdditions, SUBAGENT_CHANNEL,
    SessionConfig, SessionOptions, call_limits, exhausted_today, spent_today, stored_keys,
};
pub use setup::{
    ModelSetUp, NewModel, SetupError, default_agent_key, set_up_model, try_key, usable_model,
};
pub use similar::did_you_mean;
pub use skills::{FoundSkill, FoundSkills};
pub use stores::Stores;
pub use trial::{Question, Trial, TrialAnswer, TrialFailure};
pub use undo::UndoMode;
pub use web_tools::FileDownloads;
pub use workspace::{
    MovedSession, Party, Quota, WorkspaceUse, moved_sessions, protected_names, workspace_of_session,
};

pub use futures_util::future::BoxFuture;
pub use myclaw_engine::{
    About, ActiveModel, AgentRunEvent, AgentStart, AlwaysScope, Approval, ApprovalRequest,
    ApprovalTerms, Approver, Bound, BoundFact, CallArguments, CallEffect, CallSubject, Clock,
    CompactionOutcome, CompactionReason, CompactionReport, CompactionVerdict, ContextChange,
    CutAnswers, Engine, EventCallback, FactForm, Hook, HookError, Notice, PendingCompaction,
    PendingMessage, PendingToolCall, Power, Powers, PreparedCall, ProgramRequest, Providers,
    QuietMessages, RunError, RunEvent, RunId, RunOutcome, RunParams, RunResult, RunWork, ScopeKind,
    SharedSchemas, ShownFact, SkillSummary, SystemClock, TakenState, Target, TargetAccess, Tool,
    ToolAliases, ToolCallVerdict, ToolContext, ToolDeclaration, ToolError, ToolGroup,
    ToolInvocation, ToolKind, ToolOutput, ToolUpdate, TurnId, WorkPlace, cleaned_name,
    incomplete_remark, message_to_row, written_call,
};
pub use myclaw_exec::{end_child, give_back_memory, hide_environment, use_one_heap};
pub use myclaw_executor::{CallHandler, with_handler};

/// Keys of providers, and the store that keeps them.
pub mod auth {
    pub use myclaw_auth::{
        Arranged, AuthFile, AuthProfile, AuthStore, AuthStoreError, CredentialType, FailureReason,
        OrderRules, ProfileOrigin, StoredProfile, UsageStats, Validity, arrange, is_private,
        replacing_command,
    };
}

/// The config file, its place and its mistakes.
pub mod config {
    pub use myclaw_config::{
        AckReactionScope, AgentId, Binding, BindingMatch, ChatId, ChatRules, CommandLine, Config,
        ConfigChange, ConfigError, ConfigFile, ConfigPath, ConnectionSecurity, DEFAULT_ACCOUNT,
        DiscordConfig, DmPolicy, DmScope, EditError, EditProblem, EmailConfig, Environment,
        ExposeSecret, GroupConfig, GroupPolicy, Heartbeat, HeartbeatSession, HostBinding,
        HostConfig, HostName, IrcConfig, KEYRING_SERVICE, KeySource, Loaded, LogLevel, MASKED,
        MailServerConfig, MailSession, MaskedValues, MatrixConfig, McpServerConfig, Mistake,
        ModelDefinition, Network, NodeConfig, NotificationsName, OtherChats, PageOrigin, Paths,
        Persona, ProjectStart, QueueMode, RenderStyle, Report, ResolvedAgent, SecretString,
        SenderCheckConfig, SessionScope, SessionToolsConfig, SignalConfig, SlackConfig,
        SocketConfig, StarterModel, Subagents, TelegramBot, TelegramConfig, TelemetryConfig,
        TerminalConfig, ThemeName, TlsConfig, UncertainDelivery, WebhookConfig, WhatsAppConfig,
        WhatsAppNumber, WriteError, XmppConfig, digest, holds_literal_secret, is_secret_key,
        json_schema, json5_value, load_config, load_or_default, schema_outline, secret_digest,
        starter_config, unknown_key, write_config_if_missing,
    };
}

/// Files of a front-end's own, such as the history of typed messages, and those in directories that others can change.
pub mod files {
    pub use myclaw_files::{
        Access, Durability, EntryKind, NewFile, SharedDirectory, create_private_directory, hex,
        now_ms, private_options, read_regular, remove_if_there, text_of_bytes,
    };
}

/// The commands of the config that are run as hooks.
pub mod hooks {
    pub use myclaw_hooks::{UnusableCommand, run_command, unusable_commands};
}

/// Models, messages and the parts of a model's answer.
pub mod llm {
    pub use myclaw_llm::outside;
    pub use myclaw_llm::{
        AnswerFormat, AnswerOptions, Api, AssistantMessage, BUILTIN_PROVIDER, CallFailure,
        CallLimits, Catalog, ContentBlock, Cost, EventSink, ForcedCall, HttpOptions, HttpProvider,
        ImageContent, InputKind, KeyNeed, LocalCandidate, LocalFacts, LocalFinding, Message, Model,
        ModelError, ModelRef, ModelRequest, PairedMessages, Price, Provider, ProviderInfo,
        Redactor, StopReason, StreamEvent, TextContent, ThinkingContent, ThinkingLevel, ToolCall,
        ToolResultMessage, ToolSchema, Usage, UserMessage, joined_text, parse_model_ref,
        partial_arguments, provider_info, redact, survey_local,
    };
    /// The login of GitHub Copilot.
    pub use myclaw_llm_cloud::copilot;
}

/// What agents remember: facts, the search over sessions, and forgetting.
pub mod remembered {
    pub use crate::memory::{ChangeStore, Forgot, Redaction, SessionsOf};
    pub use myclaw_memory::{Added, Fact, FactId, NewFact, Notebook, NotebookError, Origin};
}

/// What the operating system enforces in sandboxed sessions.
pub mod sandbox {
    pub use myclaw_config::SandboxMode;
    #[cfg(target_os = "linux")]
    pub use myclaw_sandbox::escapes::{Row, Verdict};
    pub use myclaw_sandbox::{Confinement, Engine, Level, Limits, Network, WorkspaceAccess};
}

/// Sessions: keys, what they hold, and the traits of their stores.
pub mod sessions {
    pub use myclaw_session::{
        About, AboutEntry, CLI_CHANNEL, Case, Catalog, CompactionEntry, CreateSession, Entry,
        EntryId, Epoch, FIRST_WORDS, HeldInbox, Inbox, InboxWatch, IndexedSession, JsonSessions,
        LockWait, LogEnd, MemorySessions, MemorySpending, MetaPatch, OpenSession, PeerKind,
        PruneScope, QueuedKind, ReadEntries, ReadSession, Role, SearchHit, SearchQuery,
        SearchScope, SessionEntry, SessionError, SessionKey, SessionKeyParts, SessionReader,
        SessionUse, Sessions, Spending, Spent, TailLimit, TranscriptMessage, UpdatedAt,
        first_words, indexed_title, title_of_beginning,
    };
}

/// Directories with a `SKILL.md`, and what is wrong with some.
pub mod skill {
    pub use myclaw_skills::{Origin, Problem, Requirements, Skill, without_front_matter};
}

/// Speech: who speaks and who listens, as the config says.
pub mod speech {
    pub use crate::speech_setup::{speaker, speech_obstacles, transcriber};
    pub use myclaw_speech::{Audio, AudioFormat, Speaker, SpeechError, Transcriber};
}

/// Tools and what prepares their input.
pub mod tools {
    pub use myclaw_tools::{
        ChangedTurn, Compared, Direction, FROM_PROGRAM, FileOutcome, JobEnd, JobEnding, JobRecord,
        Meaning, Memory, MemoryHits, MemoryOptions, Pixels, ToolOptions, Undone, UndoneFile,
        WhichTurn, builtin_tools, picture_from_base64, picture_from_bytes, picture_pixels, preview,
        shown_size,
    };
}

/// The example of this page must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/develop/engine.md")]
struct EnginePage;

/// The example of this page must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/develop/stores.md")]
struct StoresPage;
