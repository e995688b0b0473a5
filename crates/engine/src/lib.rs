//! The turn: its steps, failover, context recovery, hooks and prompt.
//!
//! The session log decides the next step; see `ARCHITECTURE.md`. This room reaches files, sockets and processes only
//! through the `session` and `llm` rooms, the [`Tool`], [`Hook`] and [`Clock`] traits, and one module of its own
//! that reads the workspace.
#![forbid(unsafe_code)]

mod arguments;
mod clock;
mod conversation;
mod engine;
mod error;
mod estimate;
mod event;
mod failover;
mod hook;
mod model_choice;
mod prompt;
mod reduction;
mod run;
mod tool;
mod transcript;
mod turn;
mod workspace;

pub use clock::{Clock, SystemClock};
pub use engine::{Engine, run_agent};
pub use error::RunError;
pub use event::{AgentRunEvent, EventCallback};
pub use hook::{
    AgentStart, CompactionReason, CompactionVerdict, Hook, HookError, PendingCompaction,
    PendingToolCall, ToolCallVerdict,
};
pub use model_choice::{AuthProfile, ModelChoice};
pub use run::{RunAgentParams, RunResult};
pub use tool::{Tool, ToolContext, ToolError, ToolInvocation, ToolOutput, ToolUpdate};
pub use turn::CompactionReport;

/// The example of this page must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/engine.md")]
struct EnginePage;
