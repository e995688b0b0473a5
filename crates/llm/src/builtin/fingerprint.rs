//! Names derived from content, so that the same messages always give the same ids.

use crate::{ContentBlock, Message, ModelRequest};

/// FNV-1a, 64 bits: not for secrets, but the same on every machine and in every version.
pub(super) struct Fingerprint(u64);

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

impl Fingerprint {
    pub(super) fn new() -> Self {
        Self(OFFSET_BASIS)
    }

    /// Adds a field; its length is part of it, so that two fields never run together.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().copied().chain((bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }

    pub(super) fn value(&self) -> u64 {
        self.0
    }
}

/// The id of the call that answers these messages. Each message's time is part of it: a session may come to the same
/// words twice (when old messages are left out of the request), but not at the same time.
pub(super) fn call_id(request: &ModelRequest<'_>) -> String {
    let mut fingerprint = Fingerprint::new();
    for message in request.messages.as_slice() {
        let (role, content, timestamp) = match message {
            Message::User(user) => ("user", &user.content, user.timestamp),
            Message::Assistant(assistant) => ("assistant", &assistant.content, assistant.timestamp),
            Message::ToolResult(result) => {
                (result.tool_call_id.as_str(), &result.content, result.timestamp)
            }
        };
        fingerprint.add(role.as_bytes());
        fingerprint.add(&timestamp.to_le_bytes());
        for block in content {
            match block {
                ContentBlock::Text(text) => fingerprint.add(text.text.as_bytes()),
                ContentBlock::Thinking(thinking) => fingerprint.add(thinking.thinking.as_bytes()),
                ContentBlock::Image(image) => fingerprint.add(image.data.as_bytes()),
                ContentBlock::ToolCall(call) => fingerprint.add(call.id.as_bytes()),
            }
        }
    }
    format!("demo_{:016x}", fingerprint.value())
}
