//! A request in the Converse format.
//!
//! Models cache the longest prefix they have seen up to a cache point, in the order tools, system prompt,
//! conversation. A cache point is a block of its own here, behind what is to be cached.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::HeaderValue;
use serde::Serialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::families::{CachePoints, Family, ThinkingFields};
use crate::wire::anthropic_messages::thinking::{Thinking, ThinkingHistory};
use crate::wire::compat::ToolIdRule;
use crate::wire::{EncodedRequest, endpoint, history, json_request};
use crate::{
    AssistantMessage, ContentBlock, ErrorClass, ImageContent, Message, Model, ModelError,
    ModelRequest, ThinkingContent, ThinkingLevel, ToolResultMessage, ToolSchema, UserMessage,
};

/// What every model behind the API allows as the id of a call.
const TOOL_IDS: ToolIdRule = ToolIdRule::Token(64);

/// How many of the newest user messages carry a cache point; see the Messages format, whose limit of four points in
/// all holds here too.
const CACHED_USER_MESSAGES: usize = 2;

/// What stays as it is in the path: the model's id is one segment, with colons and slashes encoded.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Stands in where the output limit is not known, for the budget that depends on it: every Claude that thinks has more.
const UNKNOWN_LIMIT: u64 = 8192;

/// Older models need a beta for it, and of those some refuse the beta here.
const ASKS_TO_THINK_BETWEEN_CALLS: bool = false;

/// Encodes `request`.
///
/// # Errors
/// When there is no message to send, the base URL is none, or the key cannot stand in a header.
pub fn encode(request: &ModelRequest<'_>) -> Result<EncodedRequest, ModelError> {
    let url = call_url(request.model)?;
    let family = Family::of(&request.model.id);
    let limit = request.max_output.unwrap_or(request.model.max_output);
    let (thinking, past) = thinking_fields(request, family, limit);
    let mut messages = conversation(request.model, family, past, request.messages.as_slice());
    if messages.is_empty() {
        return Err(ModelError::new(
            ErrorClass::Unknown,
            "there is no message to send to the model",
        ));
    }
    if family.cache_points != CachePoints::None {
        place_cache_points(&mut messages);
    }
    let body = Body {
        tool_config: tool_config(request, family),
        system: system(request.system_prompt, family),
        inference_config: (limit > 0).then_some(InferenceConfig { max_tokens: limit }),
        additional_model_request_fields: thinking,
        messages,
    };
    let mut encoded = json_request(request, url, &body)?;
    let accepted = HeaderValue::from_static("application/vnd.amazon.eventstream");
    encoded.headers.insert("accept", accepted);
    Ok(encoded)
}

/// Where a call of `model` goes. A base URL that already names a model is taken as it is.
fn call_url(model: &Model) -> Result<Url, ModelError> {
    let mut url = endpoint::parse_base(&model.base_url)?;
    if url.path().ends_with("/converse-stream") {
        return Ok(url);
    }
    let base = url.path().trim_end_matches('/').to_owned();
    let id = utf8_percent_encode(&model.id, UNRESERVED);
    url.set_path(&format!("{base}/model/{id}/converse-stream"));
    Ok(url)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inference_config: Option<InferenceConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_model_request_fields: Option<Value>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InferenceConfig {
    max_tokens: u64,
}

#[derive(Serialize)]
struct ToolConfig<'a> {
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Tool<'a> {
    ToolSpec(ToolSpec<'a>),
    CachePoint(CachePoint),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolSpec<'a> {
    name: Cow<'a, str>,
    /// Left out when empty: the API wants at least one character.
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: InputSchema<'a>,
}

#[derive(Serialize)]
struct InputSchema<'a> {
    json: Cow<'a, Value>,
}

/// Everything up to this block may be read from the cache next time.
#[derive(Serialize, Clone, Copy)]
struct CachePoint {
    #[serde(rename = "type")]
    kind: &'static str,
}

impl CachePoint {
    const DEFAULT: Self = Self { kind: "default" };
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

/// A block of the system prompt, of a message or of a tool result; its name is the key of an object with one member.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Block<'a> {
    Text(Cow<'a, str>),
    Image { format: &'static str, source: ImageSource<'a> },
    ReasoningContent(Reasoning<'a>),
    ToolUse { tool_use_id: Cow<'a, str>, name: Cow<'a, str>, input: Cow<'a, Map<String, Value>> },
    ToolResult(ToolResult<'a>),
    CachePoint(CachePoint),
}

#[derive(Serialize)]
struct ImageSource<'a> {
    bytes: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Reasoning<'a> {
    ReasoningText { text: &'a str, signature: &'a str },
    RedactedContent(&'a str),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    tool_use_id: Cow<'a, str>,
    content: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

impl<'a> Block<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }
}

fn system<'a>(prompt: &'a str, family: Family) -> Vec<Block<'a>> {
    if history::is_blank(prompt) {
        return Vec::new();
    }
    let mut blocks = vec![Block::text(prompt)];
    if family.cache_points != CachePoints::None {
        blocks.push(Block::CachePoint(CachePoint::DEFAULT));
    }
    blocks
}

/// The tools on offer. A conversation that holds calls is refused without any tools, so those that it called stand in
/// where none are offered.
fn tool_config<'a>(request: &ModelRequest<'a>, family: Family) -> Option<ToolConfig<'a>> {
    let mut tools: Vec<Tool<'a>> = request.tools.iter().map(offered_tool).collect();
    if tools.is_empty() {
        tools = called_tools(request.messages.as_slice());
    }
    if tools.is_empty() {
        return None;
    }
    if family.cache_points == CachePoints::Everywhere {
        tools.push(Tool::CachePoint(CachePoint::DEFAULT));
    }
    Some(ToolConfig { tools })
}

fn offered_tool(schema: &ToolSchema) -> Tool<'_> {
    Tool::ToolSpec(ToolSpec {
        name: Cow::Borrowed(&schema.name),
        description: &schema.description,
        input_schema: InputSchema { json: Cow::Borrowed(&schema.parameters) },
    })
}

/// The tools that the conversation called, each once, in the order of their first call.
fn called_tools(messages: &[Message]) -> Vec<Tool<'_>> {
    let mut names: Vec<Cow<'_, str>> = Vec::new();
    let assistants = messages.iter().filter_map(|message| match message {
        Message::Assistant(assistant) => Some(assistant),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    for call in assistants.flat_map(AssistantMessage::tool_calls) {
        let name = history::tool_name(&call.name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let tool = |name| {
        Tool::ToolSpec(ToolSpec {
            name,
            description: "Not available any more.",
            input_schema: InputSchema { json: Cow::Owned(json!({"type": "object"})) },
        })
    };
    names.into_iter().map(tool).collect()
}

/// What asks the model to think, in its vendor's own words, and what becomes of its earlier thinking.
fn thinking_fields(
    request: &ModelRequest<'_>,
    family: Family,
    limit: u64,
) -> (Option<Value>, ThinkingHistory) {
    let model = request.model;
    match family.thinking {
        ThinkingFields::None => (None, ThinkingHistory::Kept),
        ThinkingFields::Effort => (effort(model, request.thinking), ThinkingHistory::Kept),
        ThinkingFields::Claude => {
            let limit = if limit == 0 { UNKNOWN_LIMIT } else { limit };
            let thinking =
                Thinking::new(model, request.thinking, limit, ASKS_TO_THINK_BETWEEN_CALLS);
            let goes_on = goes_on_without_thinking(model, request.messages.as_slice());
            if thinking.needs_thinking_before_calls() && goes_on {
                return (None, thinking.history);
            }
            let mut fields = Map::new();
            let mut add = |name: &str, value: Option<Value>| {
                fields.extend(value.map(|value| (name.to_owned(), value)));
            };
            add("thinking", thinking.field.map(|field| json!(field)));
            add("output_config", thinking.effort.map(|effort| json!(effort)));
            let beta = thinking.beta.as_ref().and_then(|beta| beta.to_str().ok());
            add("anthropic_beta", beta.map(|beta| json!([beta])));
            ((!fields.is_empty()).then_some(Value::Object(fields)), thinking.history)
        }
    }
}

/// Effort in OpenAI's words, which begin with `low`.
fn effort(model: &Model, requested: ThinkingLevel) -> Option<Value> {
    let word = match model.thinking_level(requested) {
        ThinkingLevel::Off => return None,
        ThinkingLevel::Minimal => ThinkingLevel::Low.as_str(),
        level => model.thinking_word(level),
    };
    Some(json!({"reasoning_effort": word}))
}

/// Whether the turn under way was begun without thinking that this model knows as its own, as after a switch of models.
/// Claude with a budget refuses to begin to think between a call and its result.
fn goes_on_without_thinking(model: &Model, messages: &[Message]) -> bool {
    let mut newest = messages.iter().rev();
    if !matches!(newest.next(), Some(Message::ToolResult(_))) {
        return false;
    }
    newest
        .find_map(|message| match message {
            Message::Assistant(assistant) => Some(assistant),
            Message::User(_) | Message::ToolResult(_) => None,
        })
        .is_some_and(|assistant| {
            !history::has_same_origin(model, assistant)
                || !assistant.content.first().is_some_and(is_signed_thinking)
        })
}

fn is_signed_thinking(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Thinking(thinking) => {
            history::usable_signature(thinking.thinking_signature.as_ref()).is_some()
        }
        _ => false,
    }
}

/// The messages with roles that alternate: results and what the user says behind them are one message.
fn conversation<'a>(
    model: &Model,
    family: Family,
    past: ThinkingHistory,
    messages: &'a [Message],
) -> Vec<WireMessage<'a>> {
    let mut wire: Vec<WireMessage<'a>> = Vec::with_capacity(messages.len());
    for message in messages {
        let (role, content) = match message {
            Message::User(user) => (Role::User, user_blocks(model, user)),
            Message::Assistant(assistant) => {
                (Role::Assistant, assistant_blocks(model, past, assistant))
            }
            Message::ToolResult(result) => (Role::User, vec![result_block(model, family, result)]),
        };
        match wire.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => wire.push(WireMessage { role, content }),
        }
    }
    wire
}

fn user_blocks<'a>(model: &Model, user: &'a UserMessage) -> Vec<Block<'a>> {
    let mut blocks = content_blocks(model, &user.content);
    if !blocks.is_empty() {
        blocks.extend(history::annotation(user).map(Block::text));
    }
    blocks
}

/// Text and images; what the API would refuse is left out or replaced by a note.
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
    let format = match image.mime_type.as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        other => return Block::text(format!("[image omitted: {other} is not supported here]")),
    };
    Block::Image { format, source: ImageSource { bytes: &image.data } }
}

fn assistant_blocks<'a>(
    model: &Model,
    past: ThinkingHistory,
    message: &'a AssistantMessage,
) -> Vec<Block<'a>> {
    let same_origin = history::has_same_origin(model, message);
    let mut blocks: Vec<Block<'a>> = message
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) if history::is_blank(&text.text) => None,
            ContentBlock::Text(text) => Some(Block::text(text.text.as_str())),
            ContentBlock::Thinking(thinking) if same_origin => own_thinking(thinking, past),
            ContentBlock::Thinking(thinking) => {
                history::thinking_as_text(thinking).map(Block::text)
            }
            ContentBlock::ToolCall(call) => Some(Block::ToolUse {
                tool_use_id: TOOL_IDS.apply(&call.id),
                name: history::tool_name(&call.name),
                input: history::arguments(call),
            }),
            ContentBlock::Image(_) => None,
        })
        .collect();
    // An answer that ends with thinking, because it was cut off there, is refused.
    while matches!(blocks.last(), Some(Block::ReasoningContent(_))) {
        blocks.pop();
    }
    blocks
}

/// The model's own thinking goes back unchanged if it is signed, unless it may not; without a signature only its text
/// means something.
fn own_thinking(thinking: &ThinkingContent, past: ThinkingHistory) -> Option<Block<'_>> {
    let signature = history::usable_signature(thinking.thinking_signature.as_ref());
    let reasoning = match (signature, past) {
        (Some(_), ThinkingHistory::LeftOut) => return None,
        (Some(data), ThinkingHistory::Kept) if thinking.redacted => {
            Reasoning::RedactedContent(data)
        }
        (Some(signature), ThinkingHistory::Kept) => {
            Reasoning::ReasoningText { text: &thinking.thinking, signature }
        }
        (None, _) => return history::thinking_as_text(thinking).map(Block::text),
    };
    Some(Block::ReasoningContent(reasoning))
}

fn result_block<'a>(model: &Model, family: Family, result: &'a ToolResultMessage) -> Block<'a> {
    let mut content = content_blocks(model, &result.content);
    if content.is_empty() {
        content.push(Block::text(history::NO_OUTPUT));
    }
    Block::ToolResult(ToolResult {
        tool_use_id: TOOL_IDS.apply(&result.tool_call_id),
        content,
        status: (family.knows_result_status && result.is_error).then_some("error"),
    })
}

fn place_cache_points(messages: &mut [WireMessage<'_>]) {
    let newest = messages
        .iter_mut()
        .rev()
        .filter(|message| message.role == Role::User)
        .take(CACHED_USER_MESSAGES);
    for message in newest {
        message.content.push(Block::CachePoint(CachePoint::DEFAULT));
    }
}
