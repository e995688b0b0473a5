//! Code that is called around a run and its tool calls.
//!
//! A gate ([`Hook::before_agent_start`], [`Hook::tool_call`]) that fails closes: the run does not start, the call is
//! not made. An editor ([`Hook::context`], [`Hook::tool_result`], [`Hook::before_session_compact`]) that fails changes
//! nothing, and an observer ([`Hook::session_compact`], [`Hook::agent_end`]) changes nothing anyway; their failures are
//! reported as notices.

use futures_util::future::BoxFuture;
use myclaw_llm::{ContentBlock, Message};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{CompactionReport, RunError, RunResult, ToolOutput};

/// Called around a run. Every method has a default that does nothing.
///
/// When the run is aborted the future of a method that has not returned is dropped, which counts as its failure;
/// [`Hook::tool_result`] is left some seconds, and [`Hook::agent_end`] all the time that it takes.
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

    /// Before each attempt of a model call: may give other messages to be sent. Only what is sent changes; the log does
    /// not, and the next call begins with the log's messages again. What is given is repaired to what a provider
    /// accepts. `None` means no change.
    ///
    /// # Errors
    /// Reported; the messages are sent as they were.
    fn context<'a>(
        &'a self,
        _messages: &'a [Message],
    ) -> BoxFuture<'a, Result<Option<Vec<Message>>, HookError>> {
        Box::pin(async { Ok(None) })
    }

    /// Before a tool runs, after its arguments were validated: may change the arguments, which have to fit the tool's
    /// schema still, or block the call.
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

    /// Before the older messages become a summary: may set the focus, give the summary, or forbid it. What is forbidden
    /// when the conversation no longer fits the model is not asked for again; the run then gets on without, or fails.
    ///
    /// # Errors
    /// Reported; the summary is made as without the hook.
    fn before_session_compact<'a>(
        &'a self,
        _compaction: &'a mut PendingCompaction,
    ) -> BoxFuture<'a, Result<CompactionVerdict, HookError>> {
        Box::pin(async { Ok(CompactionVerdict::Proceed) })
    }

    /// After the older messages have become `summary`.
    ///
    /// # Errors
    /// Reported.
    fn session_compact<'a>(
        &'a self,
        _report: &'a CompactionReport,
        _summary: &'a str,
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
    /// The user message's blocks; none in a run that goes on with what waits.
    pub user_message: Vec<ContentBlock>,
    /// The blocks of the messages that wait for this run, the oldest first. They were acknowledged, so they are taken as
    /// they are, and a hook that refuses the run leaves them waiting.
    pub queued_messages: Vec<Vec<ContentBlock>>,
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
#[non_exhaustive]
pub enum ToolCallVerdict {
    /// It may.
    Allow,
    /// It may if the run's [`crate::Approver`] agrees. Without an approver it may not.
    Ask {
        /// Why somebody has to decide.
        reason: String,
    },
    /// It may not; the model gets the reason.
    Block {
        /// Why, and what to do instead.
        reason: String,
    },
}

/// A compaction about to be made.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingCompaction {
    /// Why.
    pub reason: CompactionReason,
    /// Tokens of the request before, estimated.
    pub tokens_before: u64,
    /// What the summary should pay attention to; the only field whose change matters.
    pub focus: Option<String>,
    /// The summary of what came before `messages`, if they follow one. The new summary takes its place.
    pub previous_summary: Option<String>,
    /// What is to be summarised.
    pub messages: Vec<Message>,
}

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionReason {
    /// By the estimate the next request leaves the model too little room.
    Estimate,
    /// The provider refused a request as too long.
    Overflow,
    /// Somebody asked for it.
    Manual,
}

/// What becomes of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionVerdict {
    /// The next hook is asked, and after the last one the model.
    Proceed,
    /// This is the summary. It is used if it is shorter than what it stands for.
    Summary(String),
    /// There is to be none.
    Veto {
        /// Why; shown as a notice.
        reason: String,
    },
}

/// A hook that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// Waits for a hook, but not beyond the abort of the run.
pub(crate) async fn unless_aborted<T>(
    cancel: &CancellationToken,
    hook: impl Future<Output = Result<T, HookError>>,
) -> Result<T, HookError> {
    tokio::select! {
        biased;
        outcome = hook => outcome,
        () = cancel.cancelled() => Err(HookError("the run was aborted".to_owned())),
    }
}
