//! What a run reports while it happens.

use std::fmt;
use std::sync::Arc;

use myclaw_llm::{AssistantMessage, ErrorClass, StreamEvent};
use myclaw_session::{EntryId, QueuedKind, SessionKey};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::notice::with_message;
use crate::{Bound, Notice, RunError, RunResult};

/// Receives the events of a run, in order. It is called on the run's task, so it must not block for long.
pub type EventCallback = Arc<dyn Fn(RunEvent) + Send + Sync>;

/// Names a run: a UUID of version 7, so ids sort by the time at which the run was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Uuid);

impl RunId {
    /// A new id.
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
    /// In which session.
    #[serde(serialize_with = "key_text")]
    pub session: Arc<SessionKey>,
    /// In which run; `None` for what happens to a session's inbox outside a run of this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

fn key_text<S: Serializer>(key: &SessionKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key.as_str())
}

/// Gives the events of one run to its callback.
#[derive(Clone)]
pub(crate) struct Events {
    pub(crate) session: Arc<SessionKey>,
    pub(crate) run: Option<RunId>,
    pub(crate) callback: Option<EventCallback>,
}

impl Events {
    pub(crate) fn emit(&self, kind: AgentRunEvent) {
        if let Some(callback) = &self.callback {
            callback(RunEvent { kind, session: Arc::clone(&self.session), run: self.run });
        }
    }

    pub(crate) fn notice(&self, notice: Notice) {
        self.emit(AgentRunEvent::Notice(notice));
    }
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunWork {
    /// It answers messages.
    Turn,
    /// It puts a summary in the place of older messages.
    Compaction,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunOutcome {
    /// There is a reply, also where a limit ended the run.
    Answered,
    /// The compaction is over, also where there was nothing to do.
    Compacted,
    /// It failed.
    Failed {
        /// See [`RunError::class`].
        class: &'static str,
        /// For people.
        error: String,
    },
    /// It was aborted, interrupted, or given up by its caller.
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

/// Emits the begin of a run, and its end however it ends: also when the future of the run is dropped.
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

/// How a context was made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContextChange {
    /// A summary took the place of older messages.
    Summary,
    /// Older messages were left out; at most a note stands for them.
    LeftOut,
    /// Long results of tools are sent in part.
    ResultsCut,
    /// Long results and long messages of the user's are sent in part.
    TextsCut,
}

/// One step of a run. Serialised as an object with a `type`, as printed by `myclaw run --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum AgentRunEvent {
    /// The run begins: the first event of every run.
    RunStart {
        /// What it is for.
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
        /// Which loop iteration, from 0.
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
        /// What is new, as text.
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
        /// The text that enters the log and that the model reads next. A later `pruning` or `compaction` event tells when
        /// less of it is sent.
        text: String,
        /// For user interfaces only.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
    /// A failed model call is tried again.
    Retry {
        /// Which retry of this iteration, from 1.
        attempt: u32,
        /// Why the attempt before failed.
        reason: ErrorClass,
        /// The profile about to be tried.
        profile_id: String,
        /// How long the run waits before it, in milliseconds.
        delay_ms: u64,
        /// The failure, in one line.
        message: String,
    },
    /// A model cannot answer; the next one of the agent's models is asked instead, until the run is over.
    Fallback {
        /// The model that was given up, as `provider/model`.
        from: String,
        /// The model that is asked from now on, as `provider/model`.
        to: String,
        /// Why.
        reason: ErrorClass,
        /// The failure, in one line.
        message: String,
    },
    /// The context was made smaller.
    Compaction {
        /// Messages before.
        old_count: usize,
        /// Messages after; as many if parts of them are no longer sent.
        new_count: usize,
        /// What was done.
        change: ContextChange,
    },
    /// Old results of tools are sent shorter from now on, or not at all; see the setting `contextPruning`.
    Pruning {
        /// How many.
        results: usize,
    },
    /// A message for the run is on disk and waits.
    Queued {
        /// Names it.
        id: EntryId,
        /// When it is to be taken.
        kind: QueuedKind,
    },
    /// The run took waiting messages in.
    Taken {
        /// Those that became one message of the conversation.
        ids: Vec<EntryId>,
        /// Its text.
        text: String,
    },
    /// A tool call is not made, because the user said something before it began.
    ToolSkipped {
        /// Tool name.
        tool_name: String,
        /// The model's id for the call.
        tool_call_id: String,
    },
    /// The run would go on, but a limit is reached.
    BoundReached {
        /// Which.
        bound: Bound,
        /// One line.
        message: String,
    },
    /// Something the user should know that did not stop the run.
    #[serde(serialize_with = "with_message")]
    Notice(Notice),
    /// The run gave a reply, also at a limit. Not sent when it failed.
    Done {
        /// What the caller of `run_agent` gets too.
        result: RunResult,
    },
}
