//! The turn: its steps, failover, context recovery, hooks and prompt.
//!
//! The session log decides the next step; see `ARCHITECTURE.md`. This room reaches files, sockets and processes only
//! through the `session` and `llm` rooms and the [`Tool`], [`Hook`] and [`Clock`] traits.
#![forbid(unsafe_code)]

mod clock;
mod tool;

pub use clock::{Clock, SystemClock};
pub use tool::{Tool, ToolContext, ToolError, ToolInvocation, ToolOutput, ToolUpdate};
