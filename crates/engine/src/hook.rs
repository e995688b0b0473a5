//! Code that is called around a run and its tool calls.
//!
//! A gate ([`Hook::before_agent_start`], [`Hook::tool_call`]) that fails closes: the run does not start, the call is
//! not made. An observer or editor ([`Hook::tool_result`], [`Hook::agent_end`]) that fails is reported as a notice.

use futures_util::future::BoxFuture;
use myclaw_llm::ContentBlock;
use serde_json::{Map, Value};

use crate::{RunError, RunResult, ToolOutput};

/// Called around a run. Every method has a default that does nothing.
pub trait Hook: Send + Sync {
    /// Name shown when the hook fails or blocks.
    fn name(&self) -> &str;

    /// Before the user message is stored: may change it and the system prompt.
    ///
    /// # Errors
    /// The run does not start.
    fn before_agent_start<'a>(
        &'a self,
        _start: &'a mut AgentStart,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async { Ok(()) })
    }

    /// Before a tool runs, after its arguments were validated: may change the arguments or block the call.
    ///
    /// # Errors
    /// The call is not made; the model is told.
    fn tool_call<'a>(
        &'a self,
        _call: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async { Ok(ToolCallVerdict::Allow) })
    }

    /// After a tool ran, before its result is stored: may change the result.
    ///
    /// # Errors
    /// Reported; the result stands.
    fn tool_result<'a>(
        &'a self,
        _call: &'a PendingToolCall,
        _output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async { Ok(()) })
    }

    /// When the run is over, whether it gave a reply, failed or was aborted.
    ///
    /// # Errors
    /// Reported.
    fn agent_end<'a>(
        &'a self,
        _outcome: &'a Result<RunResult, RunError>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async { Ok(()) })
    }
}

/// What a run is about to start with.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentStart {
    /// The whole system prompt.
    pub system_prompt: String,
    /// The user message's blocks.
    pub user_message: Vec<ContentBlock>,
}

/// A tool call about to run.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingToolCall {
    /// Tool name.
    pub tool_name: String,
    /// The model's id for the call.
    pub tool_call_id: String,
    /// Validated arguments.
    pub arguments: Map<String, Value>,
}

/// Whether a tool call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCallVerdict {
    /// It may.
    Allow,
    /// It may not; the model gets the reason.
    Block {
        /// Why, and what to do instead.
        reason: String,
    },
}

/// A hook that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);
