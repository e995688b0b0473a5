//! What is counted of messages and runs: in the gateway metrics, traces and usage, in tests nothing.

use myclaw_engine::RunEvent;
use myclaw_llm::Usage;
use serde::{Deserialize, Serialize};

use crate::rows::{PartKind, PartState};

/// Counts. Nothing here waits or fails.
pub trait Counters: Send + Sync {
    /// A message was stored.
    fn accepted(&self);

    /// Messages got an answer or a report. Each has the time in milliseconds that this took.
    fn ended(&self, milliseconds: &[u64], kind: PartKind);

    /// A part is over.
    fn delivered(&self, channel: &str, state: &PartState);

    /// An event of a run. Called for each delta.
    fn heed(&self, event: &RunEvent);

    /// An event of a run of `agent` that is no delta.
    fn trace(&self, event: &RunEvent, agent: &str);

    /// A model call has used something.
    fn used(&self, caller: Caller, usage: &Usage);
}

/// Who made a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Caller {
    /// As `provider/model`.
    pub model: String,
    /// The agent's id.
    pub agent: String,
    /// Where the message came from that is answered: a channel, `schedule`, `heartbeat`, or `none`.
    pub channel: String,
    /// The session's key.
    pub session: String,
}
