//! Hooks: code that is called around a run and its tool calls.
//!
//! When a gate ([`Hook::before_agent_start`], [`Hook::tool_call`], [`Hook::judge`]) fails, the run does not start or the
//! call is not made. When an editor ([`Hook::context`], [`Hook::tool_result`], [`Hook::before_session_compact`]) fails, nothing is
//! changed. An observer ([`Hook::call_begins`], [`Hook::session_compact`], [`Hook::agent_end`]) never changes anything.
//! Failures of editors and observers are reported as notices.

use futures_util::future::BoxFuture;
use myclaw_llm::{ContentBlock, Message};
use myclaw_session::TranscriptMessage;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::transcript::row_to_message;
use crate::{CompactionReport, PreparedCall, RunError, RunResult, ToolContext, ToolOutput};

/// Called around a run. Every method has a default that does nothing.
///
/// When the run is aborted, the future of a method that has not returned is dropped, which counts as a failure of the
/// hook. [`Hook::tool_result`] gets some seconds to finish, and [`Hook::agent_end`] gets all the time it needs.
pub trait Hook: Send + Sync {
    /// Name shown when the hook fails or blocks.
    fn name(&self) -> &str;

    /// Whether [`Hook::before_agent_start`] does anything. The waiting messages are read for it.
    fn heeds_start(&self) -> bool {
        true
    }

    /// Called before the user message is stored. May change the message and the system prompt.
    ///
    /// # Errors
    /// The run does not start.
    fn before_agent_start<'a>(
        &'a self,
        _start: &'a mut AgentStart,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async { Ok(()) })
    }

    /// Called before each attempt of a model call. May return other messages to send. Only what is sent changes; the
    /// log does not, and the next call begins with the log's messages again. The returned messages are repaired to what
    /// a provider accepts. `None` means no change.
    ///
    /// # Errors
    /// Reported; the messages are sent unchanged.
    fn context<'a>(
        &'a self,
        _messages: &'a [Message],
    ) -> BoxFuture<'a, Result<Option<Vec<Message>>, HookError>> {
        Box::pin(async { Ok(None) })
    }

    /// Called before a tool runs, after its arguments were validated. May change the arguments, which must still fit
    /// the tool's schema, or block the call.
    ///
    /// # Errors
    /// The call is not made; the model gets the error as its result.
    fn tool_call<'a>(
        &'a self,
        _call: &'a mut PendingToolCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async { Ok(ToolCallVerdict::Allow) })
    }

    /// Called after [`Hook::tool_call`] of all hooks, with the call as it will be made: what the tool has read from the
    /// arguments. Nothing changes them any more.
    ///
    /// # Errors
    /// The call is not made; the model gets the error as its result.
    fn judge<'a>(
        &'a self,
        _call: &'a PreparedCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async { Ok(ToolCallVerdict::Allow) })
    }

    /// Called when a call begins, which everybody allows that is asked.
    ///
    /// # Errors
    /// Reported; the call is made.
    fn call_begins<'a>(
        &'a self,
        _call: &'a PreparedCall,
        _context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async { Ok(()) })
    }

    /// Called after a tool ran, before its result is stored. May change the result.
    ///
    /// # Errors
    /// Reported; the result is unchanged.
    fn tool_result<'a>(
        &'a self,
        _call: &'a PreparedCall,
        _output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async { Ok(()) })
    }

    /// Called before the older messages are summarised. May set the focus, supply the summary, or forbid the
    /// compaction. If the session no longer fits the model and the compaction is forbidden, it is not requested again;
    /// the run continues without it, or fails.
    ///
    /// # Errors
    /// Reported; the summary is made without the hook.
    fn before_session_compact<'a>(
        &'a self,
        _compaction: &'a mut PendingCompaction<'_>,
    ) -> BoxFuture<'a, Result<CompactionVerdict, HookError>> {
        Box::pin(async { Ok(CompactionVerdict::Proceed) })
    }

    /// Called after the older messages were replaced by `summary`.
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

    /// Called when the run has ended with a reply, a failure or an abort.
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

/// The system prompt and the messages that a run starts with.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentStart {
    /// The whole system prompt.
    pub system_prompt: String,
    /// The user message's blocks; empty in a run that continues with waiting messages.
    pub user_message: Vec<ContentBlock>,
    /// The blocks of the messages that wait for this run, the oldest first. They were acknowledged, so hooks cannot
    /// change them. They keep waiting if a hook refuses the run.
    pub queued_messages: Vec<Vec<ContentBlock>>,
}

/// A tool call whose arguments may still change.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingToolCall {
    /// Tool name.
    pub tool_name: String,
    /// The model's id for the call.
    pub tool_call_id: String,
    /// Validated arguments.
    pub arguments: Map<String, Value>,
    /// The model that made the call, as `provider/model`.
    pub model: String,
}

/// The decision about a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCallVerdict {
    /// The call may run.
    Allow,
    /// The call may run if the run's [`crate::Approver`] agrees. Without an approver it may not.
    Ask {
        /// Why the call needs an approval.
        reason: String,
    },
    /// A rule denies the call: the model gets the reason, and a notice is emitted.
    Deny {
        /// The tool and the rule.
        reason: String,
    },
    /// The call may not run; the model gets the reason.
    Block {
        /// The reason, and what to do instead.
        reason: String,
    },
}

/// A compaction that is about to be made.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingCompaction<'m> {
    /// Why the session is compacted.
    pub reason: CompactionReason,
    /// Estimated tokens of the request before the compaction.
    pub tokens_before: u64,
    /// What the summary should concentrate on. The only field that a hook can usefully change.
    pub focus: Option<String>,
    /// The summary that precedes `messages`, if there is one. The new summary replaces it.
    pub previous_summary: Option<String>,
    /// The rows of the messages to summarise.
    #[serde(rename = "messages", serialize_with = "as_messages")]
    pub(crate) rows: &'m [TranscriptMessage],
}

impl PendingCompaction<'_> {
    /// The messages to summarise. They are made from their rows only when a hook needs them, because in a long session
    /// they take many megabytes.
    pub fn messages(&self) -> impl Iterator<Item = Message> {
        self.rows.iter().cloned().filter_map(row_to_message)
    }
}

fn as_messages<S: Serializer>(
    rows: &&[TranscriptMessage],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().cloned().filter_map(row_to_message))
}

/// Why a session is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionReason {
    /// The estimate of the next request leaves the model too little room.
    Estimate,
    /// The provider refused a request as too long.
    Overflow,
    /// The user asked for it.
    Manual,
}

/// A hook's decision about a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionVerdict {
    /// The next hook is asked. If no hook decides, the model writes the summary.
    Proceed,
    /// Uses this summary if it is shorter than the messages it replaces.
    Summary(String),
    /// Forbids the compaction.
    Veto {
        /// The reason, shown as a notice.
        reason: String,
    },
}

/// The failure of a hook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// Waits for a hook until the run is aborted.
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
