//! Asking a person, or a program in their place, before a tool call is made.
//!
//! What requires an approval is decided elsewhere: today by a hook that answers [`crate::ToolCallVerdict::Ask`]. The
//! engine asks, waits, and binds the answer to what runs: the tool and its arguments.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_session::SessionKey;
use serde::Serialize;

use crate::{PendingToolCall, RunId};

/// Decides about tool calls that need an approval.
pub trait Approver: Send + Sync {
    /// Asked before the call is made, possibly about several calls at once. The time until the answer does not count
    /// against the run's time limit. When the run is aborted the future is dropped.
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval>;
}

/// A tool call that needs an approval.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// In which session.
    pub session: Arc<SessionKey>,
    /// In which run.
    pub run: Option<RunId>,
    /// The call as it would be made: its arguments are validated, and no hook changes them any more.
    pub call: PendingToolCall,
    /// Why it needs an approval: one line for each hook that asks.
    pub reason: String,
}

/// The answer to an [`ApprovalRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Approval {
    /// The call is made.
    Once,
    /// The call is made, and in this run the same call (tool, arguments and reason) is not asked about again. Whether
    /// that holds longer is for the approver to remember.
    Always,
    /// The call is not made.
    Denied {
        /// What the model reads about it.
        reason: String,
    },
}
