//! Step `repair`: closes what an earlier, interrupted run left open.
//!
//! A process that dies while tools run leaves calls without results. They get their result here, in the log, before
//! anything else is added behind them. Whatever else may be out of order in an old log is put right in what is sent
//! only, by `PairedMessages`.

use myclaw_llm::{ContentBlock, INTERRUPTED_RESULT, Message, ToolResultMessage};

use super::Shared;
use crate::RunError;
use crate::conversation::NextStep;

pub(super) fn close_interrupted_calls(shared: &mut Shared) -> Result<(), RunError> {
    let NextStep::RunTools(pending) = shared.conversation.next_step() else { return Ok(()) };
    for call in pending.calls {
        let timestamp = shared.now_ms();
        shared.conversation.append(Message::ToolResult(ToolResultMessage {
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
