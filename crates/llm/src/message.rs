//! Messages in a form that is independent of providers: three kinds, each made of ordered content blocks.
//!
//! The serialised names are the ones that the transcript stores (`meta.contentBlocks`), so they must stay readable by
//! later versions.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Api, Usage};

/// One message. The system prompt is not a message: it is sent apart from the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role")]
pub enum Message {
    /// What a person (or the engine on a person's behalf) said.
    #[serde(rename = "user")]
    User(UserMessage),
    /// What the model answered.
    #[serde(rename = "assistant")]
    Assistant(AssistantMessage),
    /// What a tool call returned.
    #[serde(rename = "toolResult")]
    ToolResult(ToolResultMessage),
}

/// A message from the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Text and image blocks, in order.
    pub content: Vec<ContentBlock>,
    /// Text for the model that the user did not write, such as the time of the message. It follows the content. It must
    /// be the same in every request of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: u64,
}

/// A model's answer, whole or cut off (see [`AssistantMessage::stop_reason`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, thinking and tool-call blocks in the order the model produced them.
    pub content: Vec<ContentBlock>,
    /// The wire format it came through; opaque block state is only valid for the same one.
    pub api: Api,
    /// Provider name, such as `anthropic`.
    pub provider: String,
    /// Model id as it was requested.
    pub model: String,
    /// Tokens and cost of this one call.
    pub usage: Usage,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// Present when `stop_reason` is [`StopReason::Error`] or [`StopReason::Aborted`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: u64,
}

/// The result of one tool call, as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// Id of the call this answers.
    pub tool_call_id: String,
    /// Name of the tool that was called.
    pub tool_name: String,
    /// Text and image blocks for the model.
    pub content: Vec<ContentBlock>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// For user interfaces only; stored, never sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: u64,
}

/// One block of content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ContentBlock {
    /// Plain text.
    #[serde(rename = "text")]
    Text(TextContent),
    /// A model's visible or redacted reasoning.
    #[serde(rename = "thinking")]
    Thinking(ThinkingContent),
    /// An image.
    #[serde(rename = "image")]
    Image(ImageContent),
    /// A request of the model to run a tool.
    #[serde(rename = "toolCall")]
    ToolCall(ToolCall),
}

/// Plain text, with the provider's opaque state for it if there is any.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Opaque provider state, sent back unchanged to the same provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
    /// In a user message: the bytes that are not the user's own words, such as those of a message from a channel. A model
    /// is sent them as [`crate::outside::harmless`] leaves them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Range<usize>>,
}

/// A model's reasoning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingContent {
    /// Readable reasoning; empty when redacted.
    pub thinking: String,
    /// Signature (or, when redacted, the encrypted data), sent back unchanged to the same provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    /// Whether the provider withheld the text; then the signature carries its encrypted form.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

/// An image, inline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// Standard base64 of the file's bytes.
    pub data: String,
    /// Such as `image/png`.
    pub mime_type: String,
}

/// A call the model wants to make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The provider's id for the call, or one the decoder made up where the provider sends none.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// The arguments, if they are a whole JSON object.
    pub arguments: Map<String, Value>,
    /// The raw text of arguments that are not a JSON object. Such a call is never run; it gets an error result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid_arguments: Option<String>,
    /// Opaque provider state, sent back unchanged to the same provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The answer is complete.
    Stop,
    /// The output limit was reached; tool calls in such a message are not run.
    Length,
    /// The model waits for tool results.
    ToolUse,
    /// The provider refused to answer.
    Refusal,
    /// The call failed; the content is what had arrived.
    Error,
    /// The caller gave up; the content is what had arrived.
    Aborted,
}

impl ContentBlock {
    /// A plain text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), ..TextContent::default() })
    }
}

impl TextContent {
    /// The program's own words, followed by text from outside.
    pub fn followed_by_outside(own: impl Into<String>, outside: &str) -> Self {
        let mut text = own.into();
        let from = text.len();
        text.push_str(outside);
        let outside = from..text.len();
        Self { text, outside: Vec::from([outside]), ..Self::default() }
    }
}

impl UserMessage {
    /// A user message that is one text block.
    pub fn text(text: impl Into<String>, timestamp: u64) -> Self {
        Self { content: vec![ContentBlock::text(text)], annotation: None, timestamp }
    }
}

impl AssistantMessage {
    /// True for a normal stop with neither text nor tool calls. Some servers end a failed answer like this, a few as if
    /// tools were to run. One more call may help.
    pub fn is_empty_answer(&self) -> bool {
        matches!(self.stop_reason, StopReason::Stop | StopReason::ToolUse) && self.says_nothing()
    }

    /// True if it has neither tool calls nor text other than white space. It may have thinking.
    pub fn says_nothing(&self) -> bool {
        self.content.iter().all(|block| match block {
            ContentBlock::Text(text) => text.text.trim().is_empty(),
            ContentBlock::Thinking(_) => true,
            ContentBlock::Image(_) | ContentBlock::ToolCall(_) => false,
        })
    }

    /// The tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// All text blocks, concatenated.
    pub fn text(&self) -> String {
        joined_text(&self.content, "")
    }
}

impl ToolResultMessage {
    /// All text blocks, joined by newlines.
    pub fn text(&self) -> String {
        joined_text(&self.content, "\n")
    }
}

/// The text blocks of `content`, joined by `separator`.
pub fn joined_text(content: &[ContentBlock], separator: &str) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    texts.join(separator)
}
