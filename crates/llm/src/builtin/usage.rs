//! Estimates tokens for the planner, which has none: a quarter of the bytes, as is usual for English text.

use std::io::{self, Write};

use serde::Serialize;

use crate::{ContentBlock, Message, ModelRequest};

/// Bytes that count as one token.
pub(super) const BYTES_PER_TOKEN: u64 = 4;

pub(super) fn tokens_of(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// Tokens of everything in the request that a model would read. Images are not read, so they count nothing.
pub(super) fn input_tokens(request: &ModelRequest<'_>) -> u64 {
    let prompt = request.system_prompt.len();
    let messages: usize = request.messages.as_slice().iter().map(message_bytes).sum();
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + json_bytes(&tool.parameters))
        .sum();
    tokens_of(prompt + messages + tools)
}

fn message_bytes(message: &Message) -> usize {
    let content = match message {
        Message::User(user) => &user.content,
        Message::Assistant(assistant) => &assistant.content,
        Message::ToolResult(result) => &result.content,
    };
    content.iter().map(block_bytes).sum()
}

fn block_bytes(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Thinking(thinking) => thinking.thinking.len(),
        ContentBlock::Image(_) => 0,
        ContentBlock::ToolCall(call) => call.name.len() + json_bytes(&call.arguments),
    }
}

/// Length of the JSON text, without making it.
fn json_bytes(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail; a value that is not valid JSON counts up to the failure.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
