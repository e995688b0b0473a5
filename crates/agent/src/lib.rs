//! An agent ready to run: the resolved config, models and keys, open sessions, tools and hooks.
//!
//! Every front-end, and every program that embeds an agent, needs this crate and no other. [`run_agent`] answers one
//! message. A [`Session`] stays open between its runs and takes messages while it runs; all sessions of a front-end share
//! a [`Driver`]. This crate does not know terminals, the command line, exit codes or HTTP servers: a failure is an
//! [`AgentError`] with a class.
#![forbid(unsafe_code)]

mod agent_files;
pub mod approvals;
mod ask_once;
mod blocking;
mod browser_tool;
mod closed;
mod command_changes;
mod command_text;
mod config_check;
mod config_write;
mod confinement;
pub mod custom_commands;
mod declarations;
mod diagnostics;
mod direct_call;
mod driver;
mod error;
pub mod export;
mod git;
mod goal;
mod helper;
mod hiding;
mod home;
mod jobs;
mod key_lookup;
mod key_stores;
mod known_agent;
pub mod mcp;
mod memory;
mod memory_stores;
mod mode;
mod models;
mod once;
mod outgoing;
mod outputs;
pub mod packages;
pub mod permissions;
mod picture_tool;
mod plan;
mod project;
mod provider_login;
mod providers;
pub mod requests;
mod run;
mod running;
mod secrets;
mod security_check;
mod selection;
mod session;
mod session_config;
mod setup;
mod side_files;
mod similar;
mod skills;
mod snapshots;
mod speech_setup;
mod stores;
pub mod subagents;
mod trial;
mod undo;
mod vector_stores;
mod web_tools;
mod workspace;
pub mod worktrees;

pub use agent_files::{AgentFile, AgentFileOrigin, AgentFiles, BadAgentFile};
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
pub use goal::{Goal, GoalOrder, GoalStep, Judge, Pursuit, turns_left};
pub use helper::helper_main;
pub use hiding::{IfHidingFails, StateDirectoryReport};
pub use home::Home;
pub use jobs::JobWake;
pub use key_lookup::{KeyPresence, find_program, look_for_key, look_for_profile};
pub use key_stores::KeyStores;
pub use known_agent::check_agent;
pub use memory_stores::{AgentMemory, MemoryStores};
pub use models::{configured_model, meant_provider, profiles_in_order};
pub use picture_tool::IMAGE_GENERATE;
pub use plan::{Plan, PlanStep, StepStatus};
pub use provider_login::{
    BegunProviderLogin, LoginStep, ProviderLogin, ProviderLoginError, providers_with_logins,
    read_client_file,
};
pub use providers::{HttpProviders, engine, key_resolver};
pub use run::{RunAgentParams, run_agent, run_agent_with};
pub use running::{
    Doing, NotAnswered, RunningCall, RunningSession, SeenTurn, answer_from_outside, ask_to_stop,
    running_sessions,
};
pub use secrets::written_secrets;
pub use security_check::{SecurityFinding, Severity, security_findings};
pub use selection::{
    LOCAL_SERVERS_VARIABLE, Selection, SelectionSource, Wanted, apply_served_facts,
    configured_local_probe, environment_key, known_providers, local_base_url, local_probe, select,
    unknown_provider,
};
pub use session::{
    Accepted, CommandAnswer, Done, Foreground, Handover, Next, Outcome, RAN_COMMAND, Rewound, Said,
    Session, SessionCallback, SessionCommand, SessionEvent, SessionWork, compacted, is_remark,
    is_reminder, last_usage, messages_of_user, new_session_name, offered_levels, put_reminder,
    thinking_difference, undone_in_words, window_tokens,
};
pub use session_config::{
    CRON_CHANNEL, HEARTBEAT_PEER, MAIN_SESSION, PERSON_CHANNEL, RunAdditions, RunOptions,
    SUBAGENT_CHANNEL, SessionConfig, SessionOptions, call_limits, exhausted_today, spent_today,
};
pub use setup::{
    ModelSetUp, NewModel, SetupError, default_agent_key, set_up_model, try_key, usable_model,
};
pub use similar::did_you_mean;
pub use skills::{FoundSkill, FoundSkills};
pub use stores::{ServerStores, Stores};
pub use trial::{Trial, TrialAnswer, TrialFailure, TrialQuestion};
pub use undo::UndoMode;
pub use vector_stores::VectorStores;
pub use web_tools::FileDownloads;
pub use workspace::{
    MovedSession, Party, Quota, WorkspaceUse, moved_sessions, protected_names, workspace_of_session,
};

// What follows belongs to other crates. It is what a program needs that embeds an agent and depends on this crate alone: to
// write a tool, a hook, an approver or a store, and to read events and results. The crates of this workspace take these
// names from where they are defined.
pub use futures_util::future::BoxFuture;
pub use myclaw_engine::{
    AgentRunEvent, AgentStart, AlwaysScope, Approval, ApprovalRequest, ApprovalTerms, Approver,
    CallArguments, CallEffect, CallSubject, Clock, Engine, EventCallback, Hook, HookError, Notice,
    PendingToolCall, PreparedCall, Providers, RunError, RunEvent, RunOutcome, RunResult,
    SystemClock, Tool, ToolCallVerdict, ToolContext, ToolDeclaration, ToolError, ToolInvocation,
    ToolKind, ToolOutput, ToolUpdate,
};
pub use tokio_util::sync::CancellationToken;

/// The config file and its place.
pub mod config {
    pub use myclaw_config::{Config, Environment, Paths, SecretString, load_or_default};
}

/// Messages and the parts of a model's answer.
pub mod llm {
    pub use myclaw_llm::{
        AssistantMessage, CallFailure, ContentBlock, EventSink, HttpOptions, Message, ModelRequest,
        Provider, StopReason, StreamEvent, ThinkingLevel, ToolSchema, Usage,
    };
}

/// Sessions: keys, and the traits of their stores.
pub mod sessions {
    pub use myclaw_session::{
        Catalog, Inbox, JsonSessions, MemorySessions, MemorySpending, OpenSession, ReadSession,
        SessionError, SessionKey, Sessions, Spending, Spent,
    };
}

/// What agents remember: the search over sessions, and forgetting.
pub mod remembered {
    pub use crate::memory::{
        ChangeStore, ForgetRecord, Forgot, Redaction, SessionsOf, about_rows, fact_rows,
        refuse_store, still_said, why_lines,
    };
}

/// Speech: who speaks and who listens, as the config says.
pub mod speech {
    pub use crate::speech_setup::{speaker, speech_obstacles, transcriber};
}

/// The example of this page must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/develop/engine.md")]
struct EnginePage;

/// The example of this page must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/develop/stores.md")]
struct StoresPage;
