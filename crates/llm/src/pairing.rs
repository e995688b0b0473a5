//! The invariant that every provider checks: each tool call has exactly one result, directly behind its message.
//!
//! [`PairedMessages`] is the only list a [`crate::ModelRequest`] takes, and its constructor repairs whatever it is
//! given, so a request that breaks pairing cannot be built.

use std::collections::{HashMap, HashSet};

use crate::{ContentBlock, Message, StopReason, ToolCall, ToolResultMessage};

/// Text of the result that stands in for a call whose run was interrupted.
pub const INTERRUPTED_RESULT: &str = "[Tool result missing — session was interrupted]";

/// Messages that a provider accepts: they start with a user message, each call is answered once, directly behind
/// its message and in call order, call ids are unique, and no result stands alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairedMessages(Vec<Message>);

impl PairedMessages {
    /// Repairs `messages`: moves results behind their calls, adds [`INTERRUPTED_RESULT`] where one is missing, drops
    /// stray and duplicate results and calls, calls of cut-off messages, empty messages, and whatever stands before
    /// the first user message.
    pub fn repair(messages: Vec<Message>) -> Self {
        let mut results = ResultPool::collect(&messages);
        let mut seen_calls = HashSet::new();
        let mut paired = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                Message::ToolResult(_) => {}
                Message::User(user) => {
                    if !user.content.is_empty() {
                        paired.push(Message::User(user));
                    }
                }
                Message::Assistant(_) if paired.is_empty() => {}
                Message::Assistant(mut assistant) => {
                    let keeps_calls = assistant.stop_reason.keeps_tool_calls();
                    assistant.content.retain(|block| match block {
                        ContentBlock::ToolCall(call) => {
                            keeps_calls && seen_calls.insert(call.id.clone())
                        }
                        _ => true,
                    });
                    if assistant.content.is_empty() {
                        continue;
                    }
                    let timestamp = assistant.timestamp;
                    let answers: Vec<_> =
                        assistant.tool_calls().map(|call| results.take(call, timestamp)).collect();
                    paired.push(Message::Assistant(assistant));
                    paired.extend(answers.into_iter().map(Message::ToolResult));
                }
            }
        }
        Self(paired)
    }

    /// The messages.
    pub fn as_slice(&self) -> &[Message] {
        &self.0
    }

    /// The messages, to add to them before the next repair.
    pub fn into_vec(self) -> Vec<Message> {
        self.0
    }
}

impl StopReason {
    /// Whether the tool calls of a message that stopped so are part of the conversation. Those that a cut-off message
    /// holds are: they get a result that says why they did not run.
    pub fn keeps_tool_calls(self) -> bool {
        match self {
            Self::Stop | Self::ToolUse | Self::Length => true,
            Self::Refusal | Self::Error | Self::Aborted => false,
        }
    }

    /// Whether the tool calls of a message that stopped so may run. A message that was cut off may hold half a call.
    pub fn runs_tool_calls(self) -> bool {
        match self {
            Self::Stop | Self::ToolUse => true,
            Self::Length | Self::Refusal | Self::Error | Self::Aborted => false,
        }
    }
}

/// The first result for each call id.
struct ResultPool(HashMap<String, ToolResultMessage>);

impl ResultPool {
    fn collect(messages: &[Message]) -> Self {
        let mut pool = HashMap::new();
        for message in messages {
            if let Message::ToolResult(result) = message {
                pool.entry(result.tool_call_id.clone()).or_insert_with(|| result.clone());
            }
        }
        Self(pool)
    }

    fn take(&mut self, call: &ToolCall, timestamp: u64) -> ToolResultMessage {
        self.0.remove(&call.id).unwrap_or_else(|| ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![ContentBlock::text(INTERRUPTED_RESULT)],
            is_error: true,
            details: None,
            timestamp,
        })
    }
}
