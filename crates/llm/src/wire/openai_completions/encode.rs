//! A request in the Chat Completions format, strict enough for hosts that refuse every field they do not know.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use crate::wire::compat::{
    AfterResults, Compat, OutputLimitField, ReasoningField, ReasoningReplay, StreamUsage,
};
use crate::wire::openai::{self, DataUrl};
use crate::wire::pieces::{self, ImageTypes, Piece};
use crate::wire::{EncodedRequest, history, nothing_to_send, output_limit};
use crate::{
    AnswerFormat, AnswerOptions, AssistantMessage, ContentBlock, Message, Model, ModelError,
    ModelRequest, ThinkingLevel, ToolCall, ToolResultMessage, ToolSchema, UserMessage,
};

use super::details;
use super::thinking::Thinking;

/// The text of an assistant message between tool results and a user message, for hosts that require one there.
const RESULTS_READ: &str = "I have read the results.";

/// The text of a result that is only an image.
const IMAGE_RESULT: &str = "(image in the next message)";

/// Encodes `request`.
///
/// # Errors
/// There is no message to send, the base URL is invalid, or a header cannot hold the key.
pub fn encode(request: &ModelRequest<'_>) -> Result<EncodedRequest, ModelError> {
    let model = request.model;
    let compat = Compat::of(model);
    let mut messages = Messages::new(request, compat);
    messages.add_system_prompt(request.system_prompt);
    messages.add_all(request.messages.as_slice());
    if !messages.has_said_something {
        return Err(nothing_to_send());
    }
    let limit = output_limit(request);
    let is_older_name = compat.output_limit == OutputLimitField::MaxTokens;
    let body = Body {
        model: &model.id,
        stream: true,
        stream_options: (compat.stream_usage == StreamUsage::OnRequest)
            .then_some(StreamOptions { include_usage: true }),
        max_tokens: limit.filter(|_| is_older_name),
        max_completion_tokens: limit.filter(|_| !is_older_name),
        tools: request.tools.iter().map(Tool::new).collect(),
        tool_choice: request
            .openai_tool_choice(|name| json!({"type": "function", "function": {"name": name}})),
        parallel_tool_calls: request.openai_parallel_calls(),
        wishes: Wishes::of(request.asked()),
        thinking: Thinking::new(compat.thinking_field, model, request.thinking),
        messages: messages.wire,
    };
    openai::encoded(request, &compat, &body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(flatten)]
    wishes: Wishes<'a>,
    #[serde(flatten)]
    thinking: Thinking<'a>,
    messages: Vec<WireMessage<'a>>,
}

/// What is asked of the answer, under the names of this format.
#[derive(Serialize)]
struct Wishes<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

impl<'a> Wishes<'a> {
    fn of(asked: &'a AnswerOptions) -> Self {
        let AnswerOptions { temperature, top_p, seed, .. } = *asked;
        let AnswerOptions { presence_penalty, frequency_penalty, .. } = *asked;
        let response_format = asked.format.as_ref().map(|format| match format {
            AnswerFormat::JsonObject => json!({"type": "json_object"}),
            schema @ AnswerFormat::JsonSchema { .. } => {
                json!({"type": "json_schema", "json_schema": openai::schema_fields(schema)})
            }
        });
        let stop = &asked.stop;
        Self {
            temperature,
            top_p,
            presence_penalty,
            frequency_penalty,
            seed,
            stop,
            response_format,
        }
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> Tool<'a> {
    fn new(schema: &'a ToolSchema) -> Self {
        let ToolSchema { name, description, parameters } = schema;
        Self { kind: "function", function: ToolFunction { name, description, parameters } }
    }
}

#[derive(Serialize, Default)]
struct WireMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
}

/// A plain string if there is only text: some hosts accept nothing else.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CallFunction<'a>,
    /// Gemini's signature of the thought that led to the call; without it the request is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Value>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

impl<'a> From<Vec<Piece<'a>>> for Content<'a> {
    fn from(pieces: Vec<Piece<'a>>) -> Self {
        let part = |piece| match piece {
            Piece::Text(text) => Part::Text { text },
            Piece::Image(image) => Part::ImageUrl { image_url: ImageUrl { url: DataUrl(image) } },
        };
        match pieces::joined_if_text(pieces) {
            Ok(text) => Self::Text(text),
            Err(pieces) => Self::Parts(pieces.into_iter().map(part).collect()),
        }
    }
}

/// The content of one assistant message, grouped by kind.
#[derive(Default)]
struct Said<'a> {
    text: Cow<'a, str>,
    reasoning: String,
    reasoning_details: Vec<Value>,
    tool_calls: Vec<WireCall<'a>>,
}

/// The messages while they are put together.
struct Messages<'a> {
    model: &'a Model,
    compat: Compat,
    /// Whether the model is asked to think.
    thinks: bool,
    wire: Vec<WireMessage<'a>>,
    has_said_something: bool,
    /// Images of the tool results just added. Only a user message can hold them, and it must not come between two
    /// results of one assistant message.
    pending_images: Vec<Piece<'a>>,
}

impl<'a> Messages<'a> {
    fn new(request: &ModelRequest<'a>, compat: Compat) -> Self {
        let model = request.model;
        Self {
            model,
            compat,
            thinks: model.thinking_level(request.thinking) != ThinkingLevel::Off,
            wire: Vec::new(),
            has_said_something: false,
            pending_images: Vec::new(),
        }
    }

    fn add_system_prompt(&mut self, prompt: &'a str) {
        if history::is_blank(prompt) {
            return;
        }
        let role = self.compat.system_role.name(self.model);
        self.push(role, Content::Text(Cow::Borrowed(prompt)));
    }

    fn add_all(&mut self, messages: &'a [Message]) {
        self.wire.reserve(messages.len());
        let turn_start =
            messages.iter().rposition(|message| matches!(message, Message::User(_))).unwrap_or(0);
        for (position, message) in messages.iter().enumerate() {
            if !matches!(message, Message::ToolResult(_)) {
                self.flush_images();
            }
            let before = self.wire.len();
            match message {
                Message::User(user) => self.add_user(user),
                Message::Assistant(assistant) => {
                    self.add_assistant(assistant, position > turn_start)
                }
                Message::ToolResult(result) => self.add_result(result),
            }
            self.has_said_something |= self.wire.len() > before;
        }
        self.flush_images();
    }

    fn add_user(&mut self, user: &'a UserMessage) {
        let pieces = pieces::of_user(self.model, ImageTypes::All, user);
        if !pieces.is_empty() {
            self.push("user", pieces.into());
        }
    }

    /// Rebuilds the message from role, text and calls alone: hosts refuse their own `refusal` and `reasoning` fields
    /// in a request, and empty content next to calls.
    fn add_assistant(&mut self, message: &'a AssistantMessage, in_current_turn: bool) {
        let mut said = self.said(message);
        if said.text.is_empty() && said.tool_calls.is_empty() {
            return;
        }
        let replay = self.compat.reasoning_replay;
        if replay != ReasoningReplay::Details {
            said.reasoning_details.clear();
        }
        let is_wanted = match replay {
            // A model that thinks requires the field with every call, even a call of another model.
            ReasoningReplay::WithinTurn => {
                !said.reasoning.is_empty() || (self.thinks && !said.tool_calls.is_empty())
            }
            ReasoningReplay::WhereGiven => !said.reasoning.is_empty(),
            ReasoningReplay::Never | ReasoningReplay::Details => false,
        };
        let mut message = WireMessage {
            role: "assistant",
            content: (!said.text.is_empty()).then_some(Content::Text(said.text)),
            reasoning_details: said.reasoning_details,
            tool_calls: said.tool_calls,
            ..WireMessage::default()
        };
        if is_wanted && in_current_turn {
            let field = match self.compat.reasoning_fields.first() {
                Some(ReasoningField::Reasoning) => &mut message.reasoning,
                Some(ReasoningField::ReasoningText) => &mut message.reasoning_text,
                Some(ReasoningField::ReasoningContent) | None => &mut message.reasoning_content,
            };
            *field = Some(said.reasoning);
        }
        self.wire.push(message);
    }

    fn said(&self, message: &'a AssistantMessage) -> Said<'a> {
        let same_origin = history::has_same_origin(self.model, message);
        let mut said = Said::default();
        for block in &message.content {
            match block {
                ContentBlock::Text(block) if !history::is_blank(&block.text) => {
                    history::append(&mut said.text, "", Cow::Borrowed(&block.text));
                }
                ContentBlock::Thinking(thinking) if same_origin => {
                    said.reasoning.push_str(&thinking.thinking);
                    let details = thinking.thinking_signature.as_deref().and_then(details::parse);
                    said.reasoning_details.extend(details.into_iter().flatten());
                }
                ContentBlock::Thinking(thinking) => {
                    if let Some(thinking) = history::thinking_as_text(thinking) {
                        history::append(&mut said.text, "", Cow::Owned(thinking + "\n\n"));
                    }
                }
                ContentBlock::ToolCall(call) => {
                    let signature = call.thought_signature.as_deref().filter(|_| same_origin);
                    said.tool_calls.push(self.call(call, signature));
                }
                ContentBlock::Text(_) | ContentBlock::Image(_) => {}
            }
        }
        said
    }

    fn call(&self, call: &'a ToolCall, signature: Option<&str>) -> WireCall<'a> {
        let arguments = serde_json::to_string(&history::arguments(call)).unwrap_or_default();
        WireCall {
            id: self.compat.tool_ids.apply(&call.id),
            kind: "function",
            function: CallFunction { name: history::tool_name(&call.name), arguments },
            extra_content: signature
                .map(|signature| json!({ "google": { "thought_signature": signature } })),
        }
    }

    fn add_result(&mut self, result: &'a ToolResultMessage) {
        let (text, images) =
            pieces::split(pieces::pieces(self.model, ImageTypes::All, &result.content));
        let nothing = if images.is_empty() { history::NO_OUTPUT } else { IMAGE_RESULT };
        if !images.is_empty() {
            let note =
                format!("Image from the result of tool {}:", history::tool_name(&result.tool_name));
            self.pending_images.push(Piece::Text(Cow::Owned(note)));
            self.pending_images.extend(images.into_iter().map(Piece::Image));
        }
        self.wire.push(WireMessage {
            role: "tool",
            content: Some(Content::Text(text.unwrap_or(Cow::Borrowed(nothing)))),
            tool_call_id: Some(self.compat.tool_ids.apply(&result.tool_call_id)),
            ..WireMessage::default()
        });
    }

    fn flush_images(&mut self) {
        if !self.pending_images.is_empty() {
            let images = std::mem::take(&mut self.pending_images);
            self.push("user", images.into());
        }
    }

    fn push(&mut self, role: &'static str, content: Content<'a>) {
        let is_behind_results = self.wire.last().is_some_and(|last| last.role == "tool");
        if role == "user" && is_behind_results && self.compat.after_results == AfterResults::NoUser
        {
            self.wire.push(WireMessage {
                role: "assistant",
                content: Some(Content::Text(Cow::Borrowed(RESULTS_READ))),
                ..WireMessage::default()
            });
        }
        self.wire.push(WireMessage { role, content: Some(content), ..WireMessage::default() });
    }
}
