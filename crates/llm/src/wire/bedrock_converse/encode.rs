//! A request in the Converse format.
//!
//! Models cache the longest prefix they have seen up to a cache point, in the order tools, system prompt,
//! messages. A cache point is a block of its own, after the part to be cached.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::HeaderValue;
use serde::Serialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::families::{CachePoints, Family, ThinkingFields};
use crate::wire::anthropic_messages::thinking::Thinking;
use crate::wire::pieces::Piece;
use crate::wire::turns::{self, Turn, turns};
use crate::wire::{EncodedRequest, endpoint, history, json_request, nothing_to_send, output_limit};
use crate::{
    AnswerOptions, AssistantMessage, ForcedCall, Message, Model, ModelError, ModelRequest,
    ThinkingLevel, ToolSchema, ToolUse,
};

/// Characters that are not encoded in the path. The model's id is one segment, with colons and slashes encoded.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Replaces an unknown output limit, on which the thinking budget depends: every Claude model that thinks has a higher
/// one.
const UNKNOWN_LIMIT: u64 = 8192;

/// Older models would need a beta feature for it, which some of them refuse here.
const ASKS_TO_THINK_BETWEEN_CALLS: bool = false;

/// Encodes `request`.
///
/// # Errors
/// There is no message to send, the base URL is invalid, or a header cannot hold the key.
pub fn encode(request: &ModelRequest<'_>) -> Result<EncodedRequest, ModelError> {
    let url = call_url(request.model)?;
    let family = Family::of(&request.model.id);
    let limit = output_limit(request);
    let thinking = match family.thinking {
        ThinkingFields::Claude => {
            let limit = limit.unwrap_or(UNKNOWN_LIMIT);
            // A model that thinks may not be forced to call.
            let level = request.forced_call().map_or(request.thinking, |_| ThinkingLevel::Off);
            Thinking::new(request.model, level, limit, ASKS_TO_THINK_BETWEEN_CALLS)
        }
        ThinkingFields::Effort | ThinkingFields::None => Thinking::default(),
    };
    let turns = turns(request.model, thinking.history, request.messages.as_slice());
    if turns.is_empty() {
        return Err(nothing_to_send());
    }
    let additional_model_request_fields = match family.thinking {
        ThinkingFields::Claude => claude_fields(thinking.in_front_of(&turns)),
        ThinkingFields::Effort => effort(request.model, request.thinking),
        ThinkingFields::None => None,
    };
    let mut messages = turns::written(turns, |block| Block::new(block, family));
    if family.cache_points != CachePoints::None {
        for blocks in turns::turns_to_cache(&mut messages) {
            blocks.push(Block::CachePoint(CachePoint::DEFAULT));
        }
    }
    let body = Body {
        tool_config: tool_config(request, family),
        system: system(request.system_prompt, family),
        inference_config: InferenceConfig::of(request.asked(), limit),
        additional_model_request_fields,
        messages,
    };
    let mut encoded = json_request(request, url, &body)?;
    let accepted = HeaderValue::from_static("application/vnd.amazon.eventstream");
    encoded.headers.insert("accept", accepted);
    Ok(encoded)
}

/// The URL of a call of `model`. A base URL that already names a model is used unchanged.
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
    inference_config: Option<InferenceConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_model_request_fields: Option<Value>,
    messages: Vec<Turn<Block<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InferenceConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
}

impl<'a> InferenceConfig<'a> {
    fn of(asked: &'a AnswerOptions, max_tokens: Option<u64>) -> Option<Self> {
        let AnswerOptions { temperature, top_p, ref stop, .. } = *asked;
        let says_something =
            max_tokens.is_some() || temperature.is_some() || top_p.is_some() || !stop.is_empty();
        says_something.then_some(Self { max_tokens, temperature, top_p, stop_sequences: stop })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
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
    /// Left out if empty: the API requires at least one character.
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

/// A block of the system prompt, of a message or of a tool result; its name is the key of an object with one member.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Block<'a> {
    Text(Cow<'a, str>),
    Image { format: &'a str, source: ImageSource<'a> },
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
    fn new(block: turns::Block<'a>, family: Family) -> Self {
        match block {
            turns::Block::Piece(piece) => piece.into(),
            turns::Block::Thinking { text, signature } => {
                Self::ReasoningContent(Reasoning::ReasoningText { text, signature })
            }
            turns::Block::RedactedThinking(data) => {
                Self::ReasoningContent(Reasoning::RedactedContent(data))
            }
            turns::Block::Call { id, name, arguments } => {
                Self::ToolUse { tool_use_id: id, name, input: arguments }
            }
            turns::Block::Result { call_id, content, is_error } => Self::ToolResult(ToolResult {
                tool_use_id: call_id,
                content: content.into_iter().map(Self::from).collect(),
                status: (family.knows_result_status && is_error).then_some("error"),
            }),
        }
    }
}

impl<'a> From<Piece<'a>> for Block<'a> {
    fn from(piece: Piece<'a>) -> Self {
        match piece {
            Piece::Text(text) => Self::Text(text),
            Piece::Image(image) => Self::Image {
                // The format names an image type by the second half of its media type.
                format: image.mime_type.trim_start_matches("image/"),
                source: ImageSource { bytes: &image.data },
            },
        }
    }
}

fn system<'a>(prompt: &'a str, family: Family) -> Vec<Block<'a>> {
    if history::is_blank(prompt) {
        return Vec::new();
    }
    let mut blocks = vec![Block::Text(Cow::Borrowed(prompt))];
    if family.cache_points != CachePoints::None {
        blocks.push(Block::CachePoint(CachePoint::DEFAULT));
    }
    blocks
}

/// The tools on offer. Messages that hold calls are refused without tools, so the tools that were called are sent if
/// none are offered. The format has no way to forbid calls, so tools that must not be called are not offered.
fn tool_config<'a>(request: &ModelRequest<'a>, family: Family) -> Option<ToolConfig<'a>> {
    let mut tools: Vec<Tool<'a>> = match request.tool_use {
        ToolUse::Auto => request.tools.iter().map(offered_tool).collect(),
        ToolUse::Forbidden => Vec::new(),
    };
    if tools.is_empty() {
        tools = called_tools(request.messages.as_slice());
    }
    if tools.is_empty() {
        return None;
    }
    if family.cache_points == CachePoints::Everywhere {
        tools.push(Tool::CachePoint(CachePoint::DEFAULT));
    }
    let tool_choice = request.forced_call().map(|forced| match forced {
        ForcedCall::Any => json!({"any": {}}),
        ForcedCall::Tool(name) => json!({"tool": {"name": name}}),
    });
    Some(ToolConfig { tools, tool_choice })
}

fn offered_tool(schema: &ToolSchema) -> Tool<'_> {
    Tool::ToolSpec(ToolSpec {
        name: Cow::Borrowed(&schema.name),
        description: &schema.description,
        input_schema: InputSchema { json: Cow::Borrowed(&schema.parameters) },
    })
}

/// The tools that the messages called, each once, in the order of their first call.
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

/// Claude's own fields, if it is asked to think.
fn claude_fields(thinking: Thinking) -> Option<Value> {
    let beta = thinking.beta.as_ref().and_then(|beta| beta.to_str().ok());
    let fields: Map<String, Value> = [
        ("thinking", thinking.field.map(|field| json!(field))),
        ("output_config", thinking.effort.map(|effort| json!(effort))),
        ("anthropic_beta", beta.map(|beta| json!([beta]))),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect();
    (!fields.is_empty()).then_some(Value::Object(fields))
}

/// Effort in OpenAI's words.
fn effort(model: &Model, requested: ThinkingLevel) -> Option<Value> {
    let word = model.thinking_word(model.thinking_level(requested));
    model.reasoning.then(|| json!({"reasoning_effort": word}))
}
