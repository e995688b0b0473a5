//! A request in the Messages format.
//!
//! The provider caches the longest prefix it has seen up to a cache point, so the parts are ordered from those that
//! never change to those that always do: tools, system prompt, messages, and after the last cache point the values of
//! this turn.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::BETA_HEADER;
use super::thinking::{OutputConfig, Thinking, ThinkingField};
use crate::wire::pieces::Piece;
use crate::wire::turns::{self, Turn, turns};
use crate::wire::{EncodedRequest, endpoint, history, json_request, nothing_to_send, output_limit};
use crate::{ModelError, ModelRequest, ToolSchema, ToolUse};

/// The format requires a limit; this one is used if the model's is unknown.
const FALLBACK_MAX_TOKENS: u64 = 8192;

/// Encodes `request`.
///
/// # Errors
/// There is no message to send, the base URL is invalid, or a header cannot hold the key.
pub fn encode(request: &ModelRequest<'_>) -> Result<EncodedRequest, ModelError> {
    let url = endpoint::call_url(request.model.api, &request.model.base_url)?;
    let max_tokens = output_limit(request).unwrap_or(FALLBACK_MAX_TOKENS);
    let has_tools = !request.tools.is_empty();
    let thinking = Thinking::new(request.model, request.thinking, max_tokens, has_tools);
    let turns = turns(request.model, thinking.history, request.messages.as_slice());
    if turns.is_empty() {
        return Err(nothing_to_send());
    }
    let thinking = thinking.in_front_of(&turns);
    let mut messages = turns::written(turns, Block::from);
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
        tool_choice: (has_tools && request.tool_use == ToolUse::Forbidden)
            .then_some(ToolChoice { kind: request.tool_use.choice() }),
        system,
        messages,
    };
    let mut encoded = json_request(request, url, &body)?;
    if let Some(beta) = thinking.beta {
        encoded.headers.append(BETA_HEADER, beta);
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
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a>; 1]>,
    messages: Vec<Turn<Block<'a>>>,
}

#[derive(Serialize)]
struct ToolChoice {
    #[serde(rename = "type")]
    kind: &'static str,
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

impl<'a> From<turns::Block<'a>> for Block<'a> {
    fn from(block: turns::Block<'a>) -> Self {
        match block {
            turns::Block::Piece(piece) => piece.into(),
            turns::Block::Thinking { text, signature } => {
                Self::Thinking { thinking: text, signature }
            }
            turns::Block::RedactedThinking(data) => Self::RedactedThinking { data },
            turns::Block::Call { id, name, arguments } => {
                Self::ToolUse { id, name, input: arguments }
            }
            turns::Block::Result { call_id, content, is_error } => Self::ToolResult {
                tool_use_id: call_id,
                content: content.into_iter().map(Self::from).collect(),
                is_error,
                cache_control: None,
            },
        }
    }
}

impl<'a> From<Piece<'a>> for Block<'a> {
    fn from(piece: Piece<'a>) -> Self {
        match piece {
            Piece::Text(text) => Self::Text { text, cache_control: None },
            Piece::Image(image) => Self::Image {
                source: ImageSource {
                    kind: "base64",
                    media_type: &image.mime_type,
                    data: &image.data,
                },
                cache_control: None,
            },
        }
    }
}

fn place_cache_points(messages: &mut [Turn<Block<'_>>]) {
    for blocks in turns::turns_to_cache(messages) {
        if let Some(
            Block::Text { cache_control, .. }
            | Block::Image { cache_control, .. }
            | Block::ToolResult { cache_control, .. },
        ) = blocks.last_mut()
        {
            *cache_control = Some(CacheControl::EPHEMERAL);
        }
    }
}
