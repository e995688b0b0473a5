//! Estimates the tokens of a message before a provider has counted them.
//!
//! Four bytes per token is the usual rule of thumb for English and code. Where a provider has reported the count of an
//! earlier request, only what was added since is estimated.

use myclaw_llm::{ContentBlock, Message, StopReason};
use myclaw_session::{Meta, Reduction, Role, TranscriptMessage};

/// Bytes of text in a token, on average.
const BYTES_PER_TOKEN: u64 = 4;

/// Tokens of an image: about what the large providers charge for an image of one megapixel.
const IMAGE_TOKENS: u64 = 1_600;

/// Tokens of a message's overhead: role, ids, separators.
const MESSAGE_OVERHEAD: u64 = 8;

/// The beginning of an image block in a stored row.
const IMAGE_BLOCK: &str = r#"{"type":"image""#;

/// Bytes per character in most of the scripts that need more than one.
const LONGEST_USUAL_CHAR: usize = 3;

/// Bytes of the note that replaces omitted text.
const REDUCTION_NOTE_BYTES: usize = 40;

/// Bytes of an assistant row's meta that are not its content: names, counters, braces.
const ASSISTANT_META_BYTES: usize = 400;

/// Tokens of a text.
pub(crate) fn text_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// Tokens of a list of messages, the system prompt and the tool schemas (`fixed_tokens`) included.
pub(crate) fn request_tokens(messages: &[Message], fixed_tokens: u64) -> u64 {
    let counted = messages.iter().enumerate().rev().find_map(|(at, message)| match message {
        Message::Assistant(assistant)
            if assistant.usage.total_tokens > 0
                && !matches!(assistant.stop_reason, StopReason::Error | StopReason::Aborted) =>
        {
            Some((at + 1, assistant.usage.total_tokens))
        }
        _ => None,
    });
    let (from, known) = counted.unwrap_or((0, fixed_tokens));
    known + messages[from..].iter().map(message_tokens).sum::<u64>()
}

/// Tokens of one message.
pub(crate) fn message_tokens(message: &Message) -> u64 {
    let content = match message {
        Message::User(user) => &user.content,
        Message::Assistant(assistant) => &assistant.content,
        Message::ToolResult(result) => &result.content,
    };
    MESSAGE_OVERHEAD + content.iter().map(block_tokens).sum::<u64>()
}

/// Tokens of what is sent of a stored row. The tail of the log is measured with it. It uses only lengths, because it is
/// called for each row of a long log.
pub(crate) fn row_cost(row: &TranscriptMessage, reduction: Option<&Reduction>) -> u64 {
    let Some(reduction) = reduction else { return whole_row_cost(row) };
    let kept = (reduction.head + reduction.tail) * bytes_per_char(row) + REDUCTION_NOTE_BYTES;
    if row.role == Role::Assistant {
        // The text and the arguments of the calls are each cut to the same length.
        let text = row.content.len();
        let rest = answer_bytes(row) - text;
        if text <= kept && rest <= kept {
            return whole_row_cost(row);
        }
        return MESSAGE_OVERHEAD + text_tokens(text.min(kept) + rest.min(kept));
    }
    if kept >= row.content.len() {
        return whole_row_cost(row);
    }
    let images = if reduction.head + reduction.tail == 0 { 0 } else { images(row) };
    MESSAGE_OVERHEAD + text_tokens(kept) + images * IMAGE_TOKENS
}

/// Characters of a row that can be sent if it may cost at most `tokens`.
pub(crate) fn chars_of(row: &TranscriptMessage, tokens: u64) -> usize {
    let bytes = usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
    bytes.saturating_sub(REDUCTION_NOTE_BYTES) / bytes_per_char(row)
}

fn bytes_per_char(row: &TranscriptMessage) -> usize {
    let is_ascii = match (row.role, &row.meta) {
        (Role::Assistant, Some(meta)) => meta.as_str().is_ascii(),
        _ => row.content.is_ascii(),
    };
    if is_ascii { 1 } else { LONGEST_USUAL_CHAR }
}

fn whole_row_cost(row: &TranscriptMessage) -> u64 {
    let images = images(row);
    // Images have many bytes but few tokens.
    let bytes = match row.role {
        Role::Assistant if images == 0 => answer_bytes(row),
        _ => row.content.len(),
    };
    MESSAGE_OVERHEAD + text_tokens(bytes) + images * IMAGE_TOKENS
}

/// Bytes of an assistant's blocks, which repeat its text and add its thinking and its calls.
fn answer_bytes(row: &TranscriptMessage) -> usize {
    let meta = row.meta.as_ref().map_or("", Meta::as_str);
    meta.len().saturating_sub(ASSISTANT_META_BYTES).max(row.content.len())
}

fn images(row: &TranscriptMessage) -> u64 {
    row.meta.as_ref().map_or("", Meta::as_str).matches(IMAGE_BLOCK).count() as u64
}

fn block_tokens(block: &ContentBlock) -> u64 {
    match block {
        ContentBlock::Text(text) => text_tokens(text.text.len()),
        ContentBlock::Thinking(thinking) => text_tokens(
            thinking.thinking.len() + thinking.thinking_signature.as_ref().map_or(0, String::len),
        ),
        ContentBlock::Image(_) => IMAGE_TOKENS,
        ContentBlock::ToolCall(call) => text_tokens(
            call.name.len()
                + call
                    .arguments
                    .iter()
                    .map(|(name, value)| name.len() + value_bytes(value))
                    .sum::<usize>(),
        ),
    }
}

/// Approximate length of the value's JSON text, computed without writing it.
fn value_bytes(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        Value::String(text) => text.len() + 3,
        Value::Array(items) => items.iter().map(|item| value_bytes(item) + 1).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + value_bytes(value) + 4).sum()
        }
    }
}

#[cfg(test)]
mod tests;
