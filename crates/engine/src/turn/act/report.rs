//! What others learn of a call: the row of the log, and the events.

use std::time::Duration;

use myclaw_llm::{ContentBlock, Message, ToolCall, ToolResultMessage, joined_text};

use crate::turn::{RunContext, Shared};
use crate::{AgentRunEvent, RunError, ToolOutput};

pub(super) fn result_message(call: &ToolCall, output: ToolOutput, timestamp: u64) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: output.content,
        is_error: output.is_error,
        details: output.details,
        timestamp,
    })
}

pub(super) fn emit_start(
    run: &RunContext,
    tool_name: String,
    tool_call_id: String,
    arguments: serde_json::Map<String, serde_json::Value>,
) {
    run.events.emit(AgentRunEvent::ToolStart { tool_name, tool_call_id, arguments });
}

pub(super) fn emit_end(run: &RunContext, call: &ToolCall, took: Duration, output: &ToolOutput) {
    run.events.emit(AgentRunEvent::ToolEnd {
        tool_name: call.name.clone(),
        tool_call_id: call.id.clone(),
        duration_ms: took.as_millis() as u64,
        is_error: output.is_error,
        text: joined_text(&output.content, "\n"),
        details: output.details.clone(),
    });
}

impl ToolOutput {
    pub(in crate::turn) fn error(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], details: None, is_error: true }
    }
}

pub(in crate::turn) fn append_result(
    shared: &mut Shared,
    call: &ToolCall,
    output: ToolOutput,
) -> Result<(), RunError> {
    let timestamp = shared.now_ms();
    Ok(shared.log.append(result_message(call, output, timestamp))?)
}
