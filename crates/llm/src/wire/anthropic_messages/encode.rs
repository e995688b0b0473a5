//! A request in the Messages format.
//!
//! The provider caches the longest prefix it has seen up to a cache point, so the parts are ordered from those that
//! never change to those that always do: tools, system prompt, messages, and after the last cache point the values of
//! this turn.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::BETA_HEADER;
use super::thinking::{Effort, Thinking, ThinkingField};
use crate::wire::pieces::Piece;
use crate::wire::turns::{self, Turn, turns};
use crate::wire::{EncodedRequest, endpoint, history, json_request, nothing_to_send, output_limit};
use crate::{
    AnswerFormat, AnswerOptions, ForcedCall, ModelError, ModelRequest, ThinkingLevel, ToolSchema,
    ToolUse,
};

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
    // A model that thinks may not be forced to call.
    let level = request.forced_call().map_or(request.thinking, |_| ThinkingLevel::Off);
    let thinking = Thinking::new(request.model, level, max_tokens, has_tools);
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
        output_config: OutputConfig::new(thinking.effort, request.asked()),
        temperature: request.asked().temperature,
        top_p: request.asked().top_p,
        stop_sequences: &request.asked().stop,
        tools: request
            .tools
            .iter()
            .enumerate()
            .map(|(index, tool)| Tool::new(tool, index == last_tool))
            .collect(),
        tool_choice: ToolChoice::of(request),
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
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a>; 1]>,
    messages: Vec<Turn<Block<'a>>>,
}

#[derive(Serialize)]
struct ToolChoice<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disable_parallel_tool_use: bool,
}

impl<'a> ToolChoice<'a> {
    /// `None` where the model decides.
    fn of(request: &ModelRequest<'a>) -> Option<Self> {
        let (kind, name) = match request.forced_call() {
            Some(ForcedCall::Any) => ("any", None),
            Some(ForcedCall::Tool(name)) => ("tool", Some(name.as_str())),
            None => (request.tool_use.choice(), None),
        };
        let disable_parallel_tool_use =
            request.asked().single_calls && request.tool_use == ToolUse::Auto;
        let says_something = kind != ToolUse::Auto.choice() || disable_parallel_tool_use;
        (says_something && !request.tools.is_empty()).then_some(Self {
            kind,
            name,
            disable_parallel_tool_use,
        })
    }
}

/// How much to think, and the form of the answer.
#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(flatten)]
    effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<OutputFormat<'a>>,
}

#[derive(Serialize)]
struct OutputFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    schema: &'a Value,
}

impl<'a> OutputConfig<'a> {
    fn new(effort: Option<Effort>, asked: &'a AnswerOptions) -> Option<Self> {
        let format = match &asked.format {
            Some(AnswerFormat::JsonSchema { schema, .. }) => {
                Some(OutputFormat { kind: "json_schema", schema })
            }
            // Refused before: the format has nothing for it.
            Some(AnswerFormat::JsonObject) | None => None,
        };
        (effort.is_some() || format.is_some()).then_some(Self { effort, format })
    }
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
