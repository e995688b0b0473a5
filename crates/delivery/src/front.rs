//! Who is shown what happens in sessions: in the gateway its clients, in tests nobody.

use myclaw_engine::RunEvent;
use serde_json::Value;

use crate::rows::{Incoming, MessageId, MessageState};

/// Shows events to those who watch sessions. Nothing here waits for them, and nothing fails that a run would see.
pub trait Front: Send + Sync {
    /// Shows an event of a session.
    fn publish(&self, session: &str, event: &Value);

    /// Shows an event of a run. Called in the task of the run, for each delta.
    fn publish_run(&self, session: &str, event: &RunEvent);

    /// Shows that a message was accepted. Called before a run can take it.
    fn accepted(&self, id: &MessageId, row: &Incoming);

    /// Shows how a message ended, which is not in `row` yet.
    fn ended(&self, id: &MessageId, row: &Incoming, state: &MessageState);

    /// Whether a message waits in a session that no run has taken.
    fn has_waiting(&self, session: &str) -> bool;

    /// Whether the newest run of a session has begun and not ended, as those who watch it have seen.
    fn is_running(&self, session: &str) -> bool;
}
