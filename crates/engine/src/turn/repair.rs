//! Step `repair`: closes what an earlier, interrupted run left open.
//!
//! A process that dies while tools run leaves calls without results. They get their result here, in the log, before
//! anything else is added behind them. Whatever else may be out of order in an old log is put right in what is sent
//! only, by `PairedMessages`.

use myclaw_llm::{ContentBlock, INTERRUPTED_RESULT, Message, ToolResultMessage};

use super::Turn;
use crate::RunError;
use crate::conversation::NextStep;

pub(super) fn close_interrupted_calls(turn: &mut Turn<'_>) -> Result<(), RunError> {
    let NextStep::RunTools(pending) = turn.conversation.next_step() else { return Ok(()) };
    for call in pending.calls {
        turn.conversation.append(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.id,
            tool_name: call.name,
            content: vec![ContentBlock::text(INTERRUPTED_RESULT)],
            is_error: true,
            details: None,
            timestamp: turn.params.clock.now_ms(),
        }))?;
    }
    Ok(())
}
