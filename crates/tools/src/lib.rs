//! The tools that come with MyClaw: reading and changing files, searching them, running commands.
//!
//! Each tool is one module with one type that implements [`Tool`]. What they share (paths, arguments, cutting of
//! text) is in `support`. This room knows nothing of models and sessions: a tool sees its arguments and a
//! [`ToolContext`](myclaw_engine::ToolContext), and returns what the model shall read.
#![forbid(unsafe_code)]

mod support;

use std::sync::Arc;

use myclaw_engine::Tool;

/// All built-in tools, in the order in which models see them: read, bash, edit, write, grep, find, ls, apply_patch.
pub fn builtin_tools() -> Vec<Arc<dyn Tool>> {
    vec![]
}
