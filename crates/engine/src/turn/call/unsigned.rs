//! Part of step `call`: messages without thinking, for a provider that rejected the signatures of earlier thoughts.
//!
//! The messages in memory and in the log stay unchanged; the log records which model rejected which of them.

use myclaw_llm::{AssistantMessage, ContentBlock, Message, PairedMessages};

/// The time at which the newest message of a model was written; 0 if there is none.
pub(super) fn newest_answer(messages: &[Message]) -> u64 {
    let times = messages.iter().filter_map(|message| match message {
        Message::Assistant(assistant) => Some(assistant.timestamp),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    times.max().unwrap_or(0)
}

/// Removes thinking and signatures from the messages of models up to `until_ms`.
pub(super) fn strip(messages: &[Message], until_ms: u64) -> PairedMessages {
    let mut messages = messages.to_vec();
    for message in &mut messages {
        if let Message::Assistant(assistant) = message
            && assistant.timestamp <= until_ms
        {
            strip_message(assistant);
        }
    }
    PairedMessages::repair(messages)
}

fn strip_message(assistant: &mut AssistantMessage) {
    assistant.content.retain(|block| !matches!(block, ContentBlock::Thinking(_)));
    for block in &mut assistant.content {
        match block {
            ContentBlock::Text(text) => text.text_signature = None,
            ContentBlock::ToolCall(call) => call.thought_signature = None,
            ContentBlock::Thinking(_) | ContentBlock::Image(_) => {}
        }
    }
}

/// Whether the request continues with the calls of a stripped message. A provider that expects thoughts before such
/// calls accepts the request only with thinking turned off.
pub(super) fn goes_on_with_stripped(messages: &[Message], until_ms: u64) -> bool {
    let last = messages.iter().rfind(|message| !matches!(message, Message::ToolResult(_)));
    matches!(last, Some(Message::Assistant(assistant)) if assistant.timestamp <= until_ms)
}
