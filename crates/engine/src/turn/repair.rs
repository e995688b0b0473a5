//! Step `repair`: completes what an interrupted run left open.
//!
//! A process that dies while tools run leaves calls without results. They get their results here, in the log, before
//! anything else is appended. Any other disorder in an old log is corrected by `PairedMessages`, and only in what is
//! sent.

use myclaw_llm::{ContentBlock, INTERRUPTED_RESULT, Message, ToolResultMessage};

use super::Shared;
use crate::RunError;
use crate::open_log::NextStep;

pub(super) fn close_interrupted_calls(shared: &mut Shared) -> Result<(), RunError> {
    let NextStep::RunTools(pending) = shared.log.next_step() else { return Ok(()) };
    for call in pending.calls {
        let timestamp = shared.now_ms();
        shared.log.append(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.id,
            tool_name: call.name,
            content: vec![ContentBlock::text(INTERRUPTED_RESULT)],
            is_error: true,
            details: None,
            timestamp,
        }))?;
    }
    Ok(())
}
