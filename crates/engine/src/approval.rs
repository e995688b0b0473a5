//! Approval of a tool call before it runs, by a person or by a program acting for them.
//!
//! Hooks decide which calls require an approval, by answering [`crate::ToolCallVerdict::Ask`]. The engine asks, waits,
//! and binds the answer to what runs: the tool and its arguments.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_session::SessionKey;
use serde::Serialize;

use crate::{PendingToolCall, RunId};

/// Decides about tool calls that need an approval.
pub trait Approver: Send + Sync {
    /// Called before the tool call is made, possibly for several calls at once. The time until the answer does not
    /// count against the run's time limit. When the run is aborted the future is dropped.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval>;

    /// Whether an earlier answer covers the call, so that nobody is asked.
    fn has_approved<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }

    /// Whether an earlier run ended, because its process was killed, while it waited for the answer about this call. The
    /// call had not begun then, so it is asked about again.
    fn was_asked<'a>(
        &'a self,
        _session: &'a SessionKey,
        _tool_call_id: &'a str,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }

    /// Called when the call gets a result without an answer, because the run was aborted.
    fn forget<'a>(&'a self, _session: &'a SessionKey, _tool_call_id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

/// A tool call that needs an approval.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The session of the call.
    pub session: Arc<SessionKey>,
    /// The run of the call.
    pub run: Option<RunId>,
    /// The call as it would be made: its arguments are validated, and hooks no longer change them.
    pub call: PendingToolCall,
    /// Why the call needs an approval: one line for each hook that asks.
    pub reason: String,
    /// What the answer [`Approval::Always`] covers. The engine's own rule unless an approver in between sets another.
    pub always: String,
    /// The change that the call would make to files, as a unified diff, if an approver in between adds it.
    pub diff: Option<String>,
}

/// What [`Approval::Always`] covers for the engine.
pub(crate) const SAME_CALL: &str = "the same call in this run";

/// The answer to an [`ApprovalRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Approval {
    /// The call is made.
    Once,
    /// The call is made, and the same call (tool, arguments and reason) needs no further approval in this run. An
    /// approver that wants this to hold longer has to remember it.
    Always,
    /// The call is not made.
    Denied {
        /// The reason, for the model to read.
        reason: String,
    },
}
