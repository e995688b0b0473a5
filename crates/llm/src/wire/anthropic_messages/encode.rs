//! A request in the Messages format.
//!
//! The provider caches the longest prefix it has seen up to a cache point, so the order is from what never changes
//! to what always does: tools, system prompt, conversation, and behind the last cache point the values of this turn.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::thinking::{OutputConfig, Thinking, ThinkingField, ThinkingHistory};
use crate::wire::compat::ToolIdRule;
use crate::wire::{EncodedRequest, endpoint, history, json_request};
use crate::{
    AssistantMessage, ContentBlock, ErrorClass, ImageContent, Message, Model, ModelError,
    ModelRequest, ThinkingContent, ToolResultMessage, ToolSchema, UserMessage,
};

/// What the API allows as the id of a call: letters, digits, `_` and `-`, of 64 bytes to be safe.
const TOOL_IDS: ToolIdRule = ToolIdRule::Token(64);

/// The format demands a limit; this one stands in where the model's is not known.
const FALLBACK_MAX_TOKENS: u64 = 8192;

/// How many of the newest user messages carry a cache point: the last one of this call, and the last one of the call
/// before, so that the cache is found again even when a turn added more blocks than the provider looks back over.
/// With one for the tools and one for the system prompt this makes the four that the API allows.
const CACHED_USER_MESSAGES: usize = 2;

/// Image types that the API takes.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Encodes `request`.
///
/// # Errors
/// When there is no message to send, the base URL is none, or the key cannot stand in a header.
pub fn encode(request: &ModelRequest<'_>) -> Result<EncodedRequest, ModelError> {
    let url = endpoint::call_url(request.model.api, &request.model.base_url)?;
    let limit = Some(request.max_output.unwrap_or(request.model.max_output));
    let max_tokens = limit.filter(|&limit| limit > 0).unwrap_or(FALLBACK_MAX_TOKENS);
    let has_tools = !request.tools.is_empty();
    let mut thinking = Thinking::new(request.model, request.thinking, max_tokens, has_tools);
    let mut messages = conversation(request.model, thinking.history, request.messages.as_slice());
    if messages.is_empty() {
        return Err(ModelError::new(
            ErrorClass::Unknown,
            "there is no message to send to the model",
        ));
    }
    if thinking.needs_thinking_before_calls() && continues_calls_without_thinking(&messages) {
        thinking = Thinking::default();
    }
    place_cache_points(&mut messages);
    let last_tool = request.tools.len().saturating_sub(1);
    let system = (!history::is_blank(request.system_prompt)).then(|| {
        [Block::Text {
            text: Cow::Borrowed(request.system_prompt),
            cache_control: Some(CacheControl::EPHEMERAL),
        }]
    });
    let body = Body {
        model: &request.model.id,
        max_tokens,
        stream: true,
        thinking: thinking.field,
        output_config: thinking.effort,
        tools: request
            .tools
            .iter()
            .enumerate()
            .map(|(index, tool)| Tool::new(tool, index == last_tool))
            .collect(),
        system,
        messages,
    };
    let mut encoded = json_request(request, url, &body)?;
    if let Some(beta) = thinking.beta {
        encoded.headers.append("anthropic-beta", beta);
    }
    Ok(encoded)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingField>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a>; 1]>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> Tool<'a> {
    fn new(schema: &'a ToolSchema, is_last: bool) -> Self {
        Self {
            name: &schema.name,
            description: &schema.description,
            input_schema: &schema.parameters,
            cache_control: is_last.then_some(CacheControl::EPHEMERAL),
        }
    }
}

/// A cache point: everything up to its block may be read from the cache next time.
#[derive(Serialize, Clone, Copy)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

impl CacheControl {
    const EPHEMERAL: Self = Self { kind: "ephemeral" };
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: ImageSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Map<String, Value>>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
struct ImageSource<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

impl<'a> Block<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into(), cache_control: None }
    }

    fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }
}

/// The messages with roles that alternate: results and what the user says behind them are one message.
fn conversation<'a>(
    model: &Model,
    history: ThinkingHistory,
    messages: &'a [Message],
) -> Vec<WireMessage<'a>> {
    let mut wire: Vec<WireMessage<'a>> = Vec::with_capacity(messages.len());
    for message in messages {
        let (role, content) = match message {
            Message::User(user) => (Role::User, user_blocks(model, user)),
            Message::Assistant(assistant) => {
                (Role::Assistant, assistant_blocks(model, history, assistant))
            }
            Message::ToolResult(result) => (Role::User, vec![result_block(model, result)]),
        };
        match wire.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => wire.push(WireMessage { role, content }),
        }
    }
    wire
}

/// Text and images; what the API would refuse is left out or replaced by a note.
fn user_blocks<'a>(model: &Model, user: &'a UserMessage) -> Vec<Block<'a>> {
    let mut blocks = content_blocks(model, &user.content);
    if !blocks.is_empty() {
        blocks.extend(history::annotation(user).map(Block::text));
    }
    blocks
}

fn content_blocks<'a>(model: &Model, content: &'a [ContentBlock]) -> Vec<Block<'a>> {
    content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) if history::is_blank(&text.text) => None,
            ContentBlock::Text(text) => Some(Block::text(text.text.as_str())),
            ContentBlock::Image(image) => Some(image_block(model, image)),
            ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) => None,
        })
        .collect()
}

fn image_block<'a>(model: &Model, image: &'a ImageContent) -> Block<'a> {
    if !history::takes_images(model) {
        return Block::text(history::IMAGE_OMITTED);
    }
    if !IMAGE_TYPES.contains(&image.mime_type.as_str()) {
        return Block::text(format!("[image omitted: {} is not supported here]", image.mime_type));
    }
    let source = ImageSource { kind: "base64", media_type: &image.mime_type, data: &image.data };
    Block::Image { source, cache_control: None }
}

fn assistant_blocks<'a>(
    model: &Model,
    history: ThinkingHistory,
    message: &'a AssistantMessage,
) -> Vec<Block<'a>> {
    let same_origin = history::has_same_origin(model, message);
    let mut blocks: Vec<Block<'a>> = message
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) if history::is_blank(&text.text) => None,
            ContentBlock::Text(text) => Some(Block::text(text.text.as_str())),
            ContentBlock::Thinking(thinking) if same_origin => own_thinking(thinking, history),
            ContentBlock::Thinking(thinking) => {
                history::thinking_as_text(thinking).map(Block::text)
            }
            ContentBlock::ToolCall(call) => Some(Block::ToolUse {
                id: TOOL_IDS.apply(&call.id),
                name: history::tool_name(&call.name),
                input: history::arguments(call),
            }),
            ContentBlock::Image(_) => None,
        })
        .collect();
    // The API refuses an answer that ends with thinking: one that was cut off there.
    while blocks.last().is_some_and(Block::is_thinking) {
        blocks.pop();
    }
    blocks
}

/// The model's own thinking goes back unchanged if it is signed. What has no signature is from an answer that was cut
/// off, and only its text means something.
fn own_thinking(thinking: &ThinkingContent, history: ThinkingHistory) -> Option<Block<'_>> {
    let signature = history::usable_signature(thinking.thinking_signature.as_ref());
    match (signature, history) {
        (Some(_), ThinkingHistory::LeftOut) => None,
        (Some(data), ThinkingHistory::Kept) if thinking.redacted => {
            Some(Block::RedactedThinking { data })
        }
        (Some(signature), ThinkingHistory::Kept) => {
            Some(Block::Thinking { thinking: &thinking.thinking, signature })
        }
        (None, _) => history::thinking_as_text(thinking).map(Block::text),
    }
}

/// Whether tool calls go on that this model made without thinking, or another model made: with a budget it may then not
/// begin to think before they are over.
fn continues_calls_without_thinking(messages: &[WireMessage<'_>]) -> bool {
    let [.., assistant, results] = messages else { return false };
    let goes_on = results.content.iter().any(|block| matches!(block, Block::ToolResult { .. }));
    goes_on && !assistant.content.first().is_some_and(Block::is_thinking)
}

fn result_block<'a>(model: &Model, result: &'a ToolResultMessage) -> Block<'a> {
    let mut content = content_blocks(model, &result.content);
    if content.is_empty() {
        content.push(Block::text(history::NO_OUTPUT));
    }
    Block::ToolResult {
        tool_use_id: TOOL_IDS.apply(&result.tool_call_id),
        content,
        is_error: result.is_error,
        cache_control: None,
    }
}

fn place_cache_points(messages: &mut [WireMessage<'_>]) {
    let newest = messages
        .iter_mut()
        .rev()
        .filter(|message| message.role == Role::User)
        .take(CACHED_USER_MESSAGES);
    for message in newest {
        if let Some(
            Block::Text { cache_control, .. }
            | Block::Image { cache_control, .. }
            | Block::ToolResult { cache_control, .. },
        ) = message.content.last_mut()
        {
            *cache_control = Some(CacheControl::EPHEMERAL);
        }
    }
}
