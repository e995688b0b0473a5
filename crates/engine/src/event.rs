//! The events that a run reports.

use std::fmt;
use std::sync::Arc;

use myclaw_llm::{AssistantMessage, StreamEvent, Usage};
use myclaw_session::{EntryId, QueuedKind, SessionKey};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::notice::with_message;
use crate::{Approval, Bound, Mode, Notice, RunError, RunResult, SessionMode};

/// Receives the events of a run, in order. It is called on the run's task, so it must not block for long.
pub type EventCallback = Arc<dyn Fn(RunEvent) + Send + Sync>;

/// Identifies a run: a UUID of version 7, so ids sort by the time at which the parameters of the run were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Uuid);

impl RunId {
    /// Creates a new id.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An event with its session and run. Serialised as the event's own object with two more fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunEvent {
    /// What happened.
    #[serde(flatten)]
    pub kind: AgentRunEvent,
    /// The session.
    #[serde(serialize_with = "key_text")]
    pub session: Arc<SessionKey>,
    /// The run; `None` for events of a session's inbox outside a run of this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The permission mode of the session at this moment; `None` for events of its inbox and its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

impl RunEvent {
    /// A notice about a session, outside a run.
    pub fn notice(session: SessionKey, notice: Notice) -> Self {
        Self::outside(session, AgentRunEvent::Notice(notice), None)
    }

    /// The permission mode of a session was changed, outside a run or during one.
    pub fn mode_changed(session: SessionKey, mode: Mode) -> Self {
        Self::outside(session, AgentRunEvent::ModeChanged { to: mode }, Some(mode))
    }

    fn outside(session: SessionKey, kind: AgentRunEvent, mode: Option<Mode>) -> Self {
        Self { kind, session: Arc::new(session), run: None, mode }
    }
}

fn key_text<S: Serializer>(key: &SessionKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key.as_str())
}

/// Passes the events of one run to its callback.
#[derive(Clone)]
pub(crate) struct Events {
    pub(crate) session: Arc<SessionKey>,
    pub(crate) run: Option<RunId>,
    pub(crate) mode: Option<SessionMode>,
    pub(crate) callback: Option<EventCallback>,
}

impl Events {
    pub(crate) fn emit(&self, kind: AgentRunEvent) {
        if let Some(callback) = &self.callback {
            let (session, mode) =
                (Arc::clone(&self.session), self.mode.as_ref().map(SessionMode::get));
            callback(RunEvent { kind, session, run: self.run, mode });
        }
    }

    pub(crate) fn notice(&self, notice: Notice) {
        self.emit(AgentRunEvent::Notice(notice));
    }
}

/// The purpose of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunWork {
    /// It answers messages.
    Turn,
    /// It replaces older messages by a summary.
    Compaction,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunOutcome {
    /// There is a reply, even if a limit ended the run.
    Answered,
    /// The compaction has ended, even if there was nothing to do.
    Compacted,
    /// It failed.
    Failed {
        /// See [`RunError::class`].
        class: &'static str,
        /// The message, for people.
        error: String,
    },
    /// It was aborted, interrupted, or dropped by its caller.
    Aborted,
}

impl From<&RunError> for RunOutcome {
    fn from(error: &RunError) -> Self {
        match error {
            RunError::Aborted => Self::Aborted,
            error => Self::Failed { class: error.class(), error: error.to_string() },
        }
    }
}

/// Emits the start of a run, and its end however it ends, even when the future of the run is dropped.
pub(crate) struct RunFrame {
    events: Events,
    has_ended: bool,
}

impl RunFrame {
    pub(crate) fn begin(events: Events, work: RunWork) -> Self {
        events.emit(AgentRunEvent::RunStart { work });
        Self { events, has_ended: false }
    }

    pub(crate) fn end<T>(mut self, result: &Result<T, RunError>, success: RunOutcome) {
        let outcome = result.as_ref().map_or_else(RunOutcome::from, |_| success);
        self.emit_end(outcome);
    }

    fn emit_end(&mut self, outcome: RunOutcome) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.events.emit(AgentRunEvent::RunEnd { outcome });
        }
    }
}

impl Drop for RunFrame {
    fn drop(&mut self) {
        self.emit_end(RunOutcome::Aborted);
    }
}

/// The way in which a context was made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContextChange {
    /// A summary replaced older messages.
    Summary,
    /// Older messages were left out, or replaced by a note.
    LeftOut,
    /// Long tool results are sent in part.
    ResultsCut,
    /// Long tool results and long user messages are sent in part.
    TextsCut,
}

/// One step of a run. Serialised as an object with a `type`, as printed by `myclaw run --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum AgentRunEvent {
    /// The run begins: the first event of every run.
    RunStart {
        /// The purpose of the run.
        work: RunWork,
    },
    /// The run is over: the last event of every run.
    RunEnd {
        /// How it ended.
        #[serde(flatten)]
        outcome: RunOutcome,
    },
    /// A model call begins; one per attempt.
    LlmStart {
        /// The iteration of the loop, from 0.
        iteration: u32,
        /// Provider name.
        provider: String,
        /// Model id.
        model: String,
    },
    /// Something arrived from the model.
    LlmStream {
        /// What arrived.
        event: StreamEvent,
    },
    /// A model call gave a message.
    LlmEnd {
        /// The whole message, with the call's usage.
        message: Box<AssistantMessage>,
    },
    /// A model call has ended and used something: also one that failed, and one for a summary. These events add up to the
    /// usage of the run.
    LlmUsage {
        /// Provider name.
        provider: String,
        /// Model id.
        model: String,
        /// What the provider counted.
        usage: Usage,
    },
    /// A tool call waits for an approval.
    ApprovalRequested {
        /// Tool name.
        tool_name: String,
        /// The model's id for the call.
        tool_call_id: String,
        /// Its validated arguments.
        arguments: Map<String, Value>,
        /// Why the call needs an approval.
        reason: String,
    },
    /// The approval was given or denied. Not sent when the run is aborted while it waits.
    ApprovalResolved {
        /// The model's id for the call.
        tool_call_id: String,
        /// The answer.
        #[serde(flatten)]
        approval: Approval,
    },
    /// A tool begins to run.
    ToolStart {
        /// Tool name.
        tool_name: String,
        /// The model's id for the call.
        tool_call_id: String,
        /// Its validated arguments.
        arguments: Map<String, Value>,
    },
    /// A running tool reports progress.
    ToolExecutionUpdate {
        /// Tool name.
        tool_name: String,
        /// The model's id for the call.
        tool_call_id: String,
        /// The latest progress, as text.
        text: String,
        /// Anything else for a user interface.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
    /// A tool ended.
    ToolEnd {
        /// Tool name.
        tool_name: String,
        /// The model's id for the call.
        tool_call_id: String,
        /// How long it ran, in milliseconds.
        duration_ms: u64,
        /// Whether it failed.
        is_error: bool,
        /// The text that enters the log and that the model reads next. A later `pruning` or `compaction` event reports
        /// when less of it is sent.
        text: String,
        /// For user interfaces only.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
    /// A failed model call is tried again.
    Retry {
        /// Number of the retry within this iteration, from 1.
        attempt: u32,
        /// Why the previous attempt failed ([`myclaw_llm::ModelError::name`]).
        reason: &'static str,
        /// The same in a few words, for people ([`myclaw_llm::ModelError::cause`]).
        cause: &'static str,
        /// The profile about to be tried.
        profile_id: String,
        /// How long the run waits before the retry, in milliseconds.
        delay_ms: u64,
        /// The failure, in one line.
        message: String,
    },
    /// A model cannot answer; the next of the agent's models is asked until the end of the run.
    Fallback {
        /// The model that failed, as `provider/model`.
        from: String,
        /// The model that is asked from now on, as `provider/model`.
        to: String,
        /// Why ([`myclaw_llm::ModelError::name`]).
        reason: &'static str,
        /// The same in a few words, for people.
        cause: &'static str,
        /// The failure, in one line.
        message: String,
    },
    /// The context was made smaller.
    Compaction {
        /// Messages before.
        old_count: usize,
        /// Messages after; the same number if only parts of them are no longer sent.
        new_count: usize,
        /// The kind of change.
        change: ContextChange,
    },
    /// Old tool results are now sent shorter, or not at all; see the config key `contextPruning`.
    Pruning {
        /// Number of results.
        results: usize,
    },
    /// A message for the run is on disk and waits.
    Queued {
        /// Id of the message.
        id: EntryId,
        /// When the run is to take it.
        kind: QueuedKind,
    },
    /// The run took waiting messages in.
    Taken {
        /// Ids of the messages that became one message of the session.
        ids: Vec<EntryId>,
        /// The text of that message.
        text: String,
    },
    /// The permission mode of the session was changed.
    ModeChanged {
        /// The mode from now on.
        to: Mode,
    },
    /// A tool call is not made, because the user sent a message before it began.
    ToolSkipped {
        /// Tool name.
        tool_name: String,
        /// The model's id for the call.
        tool_call_id: String,
    },
    /// A limit is reached before the run is finished.
    BoundReached {
        /// The limit.
        bound: Bound,
        /// The explanation, in one line.
        message: String,
    },
    /// Something the user should know that did not stop the run.
    #[serde(serialize_with = "with_message")]
    Notice(Notice),
    /// The run gave a reply, even if a limit ended it. Not sent when it failed.
    Done {
        /// The result that the caller of `run_agent` gets.
        result: RunResult,
    },
}

#[cfg(test)]
mod tests;
