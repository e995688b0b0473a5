//! The events and the work of a session.

use std::sync::Arc;

use myclaw_engine::{CompactionReport, RunEvent, RunResult};
use myclaw_session::{EntryId, SessionKey};
use serde::Serialize;

use crate::AgentError;

/// Receives the events of a session, in order.
pub type SessionCallback = Arc<dyn Fn(&SessionKey, SessionEvent<'_>) + Send + Sync>;

/// An event of a session.
#[derive(Debug)]
pub enum SessionEvent<'a> {
    /// Work begins.
    Begin(SessionWork),
    /// An event of the turn or the compaction.
    Run(&'a RunEvent),
    /// Work has ended; `Next` says whether more follows at once.
    End(&'a Outcome, Next),
}

/// A piece of work of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionWork {
    /// Answers the messages that wait.
    Turn,
    /// Replaces older messages with a summary.
    Compaction,
}

/// How work ended: an answer or a report, or an error, also if the work was aborted.
pub type Outcome = Result<Done, AgentError>;

/// The result of a piece of work.
#[derive(Debug)]
pub enum Done {
    /// There is an answer.
    Answered(Box<RunResult>),
    /// Older messages are summarised, unless there was nothing to summarise.
    Compacted(CompactionReport),
}

/// What follows a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// More work, because a message still waits for an answer.
    GoesOn,
    /// Nothing.
    Idle,
}

/// How a message was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// A turn begins with it.
    Started(EntryId),
    /// The current work or the turn after it takes the message, here or in another process.
    Queued(EntryId),
    /// The current turn is aborted, and the next one begins with the message.
    Interrupting(EntryId),
}
