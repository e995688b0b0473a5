//! A tool call whose arguments still stream in, for display.

use myclaw_llm::partial_arguments;
use serde_json::{Map, Value};

/// Bytes of the arguments that are kept. What a call is about stands at their beginning.
const MAX_PARTIAL_ARGUMENTS: usize = 4096;

/// The call whose arguments stream in now.
#[derive(Default)]
pub struct ComingCall {
    block: usize,
    /// Name of the tool.
    pub tool: String,
    arguments: String,
    /// Length of the arguments when they were last read, in bytes.
    read: usize,
}

impl ComingCall {
    /// A call of `tool` in block `block` of the message.
    pub fn new(block: usize, tool: &str) -> Self {
        Self { block, tool: tool.to_owned(), ..Self::default() }
    }

    /// Adds a fragment of a block. Returns the arguments so far if it belongs to this call and they have doubled since
    /// they were last read, so that a long call costs time proportional to its length.
    pub fn push(&mut self, block: usize, fragment: &str) -> Option<Map<String, Value>> {
        if self.block != block || self.arguments.len() > MAX_PARTIAL_ARGUMENTS {
            return None;
        }
        self.arguments.push_str(fragment);
        if self.arguments.len() < 2 * self.read {
            return None;
        }
        self.read = self.arguments.len();
        Some(partial_arguments(&self.arguments))
    }

    /// Bytes of the arguments that are kept.
    pub fn kept(&self) -> usize {
        self.arguments.len()
    }
}
