//! What a run reports while it happens.

use std::sync::Arc;

use myclaw_llm::{AssistantMessage, ErrorClass, StreamEvent};
use myclaw_session::{EntryId, QueuedKind};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{Bound, RunResult};

/// Receives the events of a run, in order. It is called on the run's task, so it must not block for long.
pub type EventCallback = Arc<dyn Fn(AgentRunEvent) + Send + Sync>;

/// How a context was made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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
pub enum AgentRunEvent {
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
        /// The text that the model gets.
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
    Notice {
        /// One line.
        message: String,
    },
    /// The run is complete. Not sent when it failed.
    Done {
        /// What the caller of `run_agent` gets too.
        result: RunResult,
    },
}
