//! An agent ready to run: the resolved config, models and keys, open sessions, tools and hooks.
//!
//! Every front-end, and every program that embeds an agent, needs this crate and no other. [`run_agent`] answers one
//! message. A [`Session`] stays open between its runs and takes messages while it runs; all sessions of a front-end share
//! a [`Driver`]. This crate does not know terminals, the command line, exit codes or HTTP servers: a failure is an
//! [`AgentError`] with a class.
#![forbid(unsafe_code)]

pub mod agent_files;
pub mod approvals;
mod ask_once;
mod blocking;
mod browser_tool;
mod closed;
mod command_changes;
mod command_text;
pub mod config_check;
pub mod config_write;
pub mod confinement;
pub mod custom_commands;
mod declarations;
mod diagnostics;
mod direct_call;
mod driver;
mod error;
pub mod export;
mod git;
pub mod goal;
mod helper;
pub mod hiding;
mod home;
mod jobs;
pub mod key_lookup;
mod key_stores;
mod known_agent;
pub mod mcp;
mod memory;
mod memory_stores;
mod mode;
pub mod models;
mod once;
mod outgoing;
mod outputs;
pub mod packages;
pub mod permissions;
mod picture_tool;
pub mod plan;
mod program;
mod project;
pub mod provider_login;
mod providers;
pub mod requests;
mod run;
pub mod running;
mod secrets;
pub mod security_check;
pub mod selection;
mod session;
mod session_config;
pub mod setup;
mod side_files;
mod similar;
pub mod skills;
mod snapshots;
mod speech_setup;
mod stores;
pub mod subagents;
pub mod trial;
mod undo;
mod vector_stores;
mod web_tools;
pub mod workspace;
pub mod worktrees;

pub use browser_tool::browser_obstacle;
pub use declarations::declaration_of;
pub use direct_call::DirectTools;
pub use driver::{Driver, FrontEndTools};
pub use error::{AgentError, FailureClass};
pub use helper::helper_main;
pub use home::Home;
pub use jobs::JobWake;
pub use key_stores::KeyStores;
pub use known_agent::check_agent;
pub use memory_stores::{AgentMemory, MemoryStores};
pub use providers::{HttpProviders, engine, key_resolver};
pub use run::{RunAgentParams, run_agent, run_agent_with};
pub use secrets::written_secrets;
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
pub use similar::did_you_mean;
pub use stores::{ServerStores, Stores};
pub use undo::UndoMode;
pub use vector_stores::VectorStores;
pub use web_tools::FileDownloads;

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
