//! The events that a provider reports while a message arrives.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{AssistantMessage, StopReason, ToolCall};

/// A step in the arrival of one assistant message. `index` is the position of the block in the message's content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum StreamEvent {
    /// The host does not take an option of the request, and is asked again without it.
    OptionLeftOut {
        /// Name of the field.
        option: String,
        /// What the host said, in one line.
        error: String,
    },
    /// The provider began to answer.
    Start,
    /// A text block begins.
    TextStart {
        /// Block position.
        index: usize,
    },
    /// More text of a block.
    TextDelta {
        /// Block position.
        index: usize,
        /// The new text.
        delta: String,
    },
    /// A text block is complete.
    TextEnd {
        /// Block position.
        index: usize,
    },
    /// A thinking block begins.
    ThinkingStart {
        /// Block position.
        index: usize,
    },
    /// More text of a thinking block.
    ThinkingDelta {
        /// Block position.
        index: usize,
        /// The new text.
        delta: String,
    },
    /// A thinking block is complete.
    ThinkingEnd {
        /// Block position.
        index: usize,
    },
    /// A tool call begins.
    #[serde(rename = "toolcall_start")]
    ToolCallStart {
        /// Block position.
        index: usize,
        /// Call id.
        id: String,
        /// Tool name.
        name: String,
    },
    /// More of a call's arguments: a raw fragment of their JSON text.
    #[serde(rename = "toolcall_delta")]
    ToolCallDelta {
        /// Block position.
        index: usize,
        /// The fragment.
        delta: String,
        /// The arguments as far as they can be read, for display ([`crate::partial_arguments`]). They come with the first
        /// fragment and each time their text has doubled, so that all of them together are no longer than twice the text.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<Map<String, Value>>,
    },
    /// A tool call is complete.
    #[serde(rename = "toolcall_end")]
    ToolCallEnd {
        /// Block position.
        index: usize,
        /// The whole call.
        tool_call: ToolCall,
    },
    /// The message is complete.
    Done {
        /// Why the model stopped.
        reason: StopReason,
        /// The whole message.
        message: Box<AssistantMessage>,
    },
    /// The call failed or was aborted.
    Error {
        /// [`StopReason::Error`] or [`StopReason::Aborted`].
        reason: StopReason,
        /// One line for a person.
        error: String,
    },
}

impl StreamEvent {
    /// Whether a user may have seen it: after such an event a failed call is not silently retried elsewhere.
    pub fn is_visible_output(&self) -> bool {
        match self {
            Self::TextDelta { .. }
            | Self::ThinkingDelta { .. }
            | Self::ToolCallStart { .. }
            | Self::ToolCallDelta { .. }
            | Self::ToolCallEnd { .. } => true,
            Self::OptionLeftOut { .. }
            | Self::Start
            | Self::TextStart { .. }
            | Self::TextEnd { .. }
            | Self::ThinkingStart { .. }
            | Self::ThinkingEnd { .. }
            | Self::Done { .. }
            | Self::Error { .. } => false,
        }
    }
}
