//! What is in the store.

use myclaw_exec::TreeTrace;
use myclaw_schedule::Schedule;
use serde::{Deserialize, Serialize};

use crate::{Folder, Outbound};

/// A message that came in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AcceptedMessage {
    /// As its source names it.
    pub(crate) source_id: String,
    pub(crate) chat: String,
    pub(crate) folder: Folder,
    pub(crate) sender: String,
    pub(crate) text: String,
    pub(crate) at_ms: u64,
    pub(crate) state: MessageState,
    /// Whether it was spoken, so that the answer is spoken too.
    #[serde(default)]
    pub(crate) is_spoken: bool,
    /// Names of recordings that are not transcribed yet. Their text is added to the message then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unheard: Vec<String>,
}

/// What has become of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum MessageState {
    /// It was not for the agent, which sees it with the next message that is.
    Overheard,
    /// It waits for an answer.
    Open,
    /// The query that it was part of has ended.
    Answered,
    /// The chat was told that it is not answered.
    Reported,
}

/// Something for a chat, and whether it has been delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutgoingPart {
    #[serde(flatten)]
    pub(crate) outbound: Outbound,
}

/// Work by the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    pub(crate) folder: Folder,
    pub(crate) prompt: String,
    /// As it was asked for, to show it.
    pub(crate) kind: TaskKind,
    pub(crate) value: String,
    pub(crate) schedule: Schedule,
    pub(crate) context: Context,
    pub(crate) state: TaskState,
    /// When it is due next, in milliseconds since the Unix epoch.
    pub(crate) next_run: Option<u64>,
    pub(crate) last_run: Option<u64>,
    /// The beginning of the last answer, or why there is none.
    pub(crate) last_result: Option<String>,
}

/// How a schedule is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskKind {
    Cron,
    Interval,
    Once,
}

/// Whether a task continues the session of the group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Context {
    Group,
    #[default]
    Isolated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskState {
    Active,
    Paused,
    Completed,
}

/// The state of a group between two runs, and of its current run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GroupState {
    /// The session to continue.
    pub(crate) session_id: Option<String>,
    /// How often a new session had been asked for when this one began.
    #[serde(default)]
    pub(crate) beginnings: u64,
    /// Runs for the open messages that have failed.
    pub(crate) failures: u32,
    /// When the next one may begin, in milliseconds since the Unix epoch.
    pub(crate) retry_at: u64,
    pub(crate) last_error: String,
    /// The current run, or the one that a killed host left.
    pub(crate) run: Option<RunState>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunState {
    pub(crate) traces: Traces,
    pub(crate) work: RunTask,
    /// The messages that were put into input files, with the names of the files.
    pub(crate) passed: Vec<(String, String)>,
    pub(crate) query: Query,
    /// How many queries of the run are over.
    #[serde(default)]
    pub(crate) queries: u32,
}

impl RunState {
    /// Names the current query.
    pub(crate) fn query_key(&self) -> String {
        format!("{}.{}", self.traces.name, self.queries)
    }
}

/// By what the processes of a run are found after a crash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Traces {
    /// The mark of the process tree, and the machine's start that it belongs to.
    pub(crate) mark: String,
    pub(crate) boot: String,
    /// The name of the container, if there is one.
    pub(crate) name: String,
}

/// What a run is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum RunTask {
    Messages { ids: Vec<String> },
    Task { id: String, due: u64 },
}

/// Progress of the current query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Query {
    /// It has not said anything.
    Silent,
    /// A part of its answer is on its way to the chat.
    Spoke,
    /// It has ended, and no other one has begun as far as is known.
    Over,
}

impl Traces {
    pub(crate) fn tree(&self) -> TreeTrace {
        TreeTrace { mark: self.mark.clone(), root: None, boot: self.boot.clone() }
    }
}
