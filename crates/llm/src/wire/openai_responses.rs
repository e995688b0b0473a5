//! OpenAI's Responses API, as OpenAI, Azure, xAI, OpenRouter and vLLM speak it.
//!
//! An answer is a list of items: messages, reasoning, function calls. Nothing is stored at the server, so everything
//! that it needs again is kept in the messages, in the opaque state of the blocks. This module defines that state for
//! both directions.

mod decode;
mod encode;
mod event;
mod slots;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use decode::Decoder;
pub use encode::encode;

/// A reasoning item, kept whole as the signature of its thinking block, because the server checks it in later requests.
#[derive(Debug, Serialize, Deserialize)]
struct ReasoningState<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    /// Required even if it is empty.
    #[serde(default)]
    summary: Vec<Value>,
    /// The reasoning itself, if the server shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    content: Vec<Value>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    encrypted_content: Option<Cow<'a, str>>,
    /// OpenRouter's: the signature of a model with another format, and the name of that format.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    format: Option<Cow<'a, str>>,
}

impl ReasoningState<'_> {
    /// Whether the server can use it. An id alone is useless, because the item was not stored.
    fn is_replayable(&self) -> bool {
        !self.content.is_empty() || self.encrypted_content.is_some() || self.signature.is_some()
    }
}

/// The data of a message item that is kept next to its text.
#[derive(Debug, Serialize, Deserialize)]
struct MessageState<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    /// Whether it is the answer or a message before it. Newer models give worse results if it is missing in later
    /// requests.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    phase: Option<Cow<'a, str>>,
}
