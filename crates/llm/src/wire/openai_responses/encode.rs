//! A request in the Responses format.

use std::borrow::Cow;

use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use super::{MessageState, ReasoningState};
use crate::wire::compat::{Compat, ToolIdRule};
use crate::wire::openai::{self, DataUrl};
use crate::wire::pieces::{self, ImageTypes, Piece};
use crate::wire::{EncodedRequest, history, nothing_to_send, output_limit};
use crate::{
    AssistantMessage, ContentBlock, Message, Model, ModelError, ModelRequest, ThinkingContent,
    ThinkingLevel, ToolCall, ToolResultMessage, ToolSchema, UserMessage,
};

/// The form of call ids that the API allows.
const TOOL_IDS: ToolIdRule = ToolIdRule::Token(64);

/// Longest item id that the API accepts in a request, in bytes. Some gateways make longer ones.
const MAX_ITEM_ID: usize = 64;

/// Smallest output limit that OpenAI takes.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// Requests reasoning in a form that can be sent back, because nothing is stored.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// The host at which logins with a ChatGPT plan are good.
const OPENAI_HOST: &str = "api.openai.com";

/// The group of the tools for a ChatGPT plan.
const NAMESPACE: &str = "agent";

/// Encodes `request`.
///
/// # Errors
/// There is no message to send, the base URL is invalid, or a header cannot hold the key.
pub fn encode(request: &ModelRequest<'_>) -> Result<EncodedRequest, ModelError> {
    let model = request.model;
    let compat = Compat::of(model);
    let is_plan = is_chatgpt_plan(request);
    let mut input = Input { model, compat, is_plan, items: Vec::new() };
    input.add_system_prompt(request.system_prompt);
    let before = input.items.len();
    input.add_all(request.messages.as_slice());
    if input.items.len() == before {
        return Err(nothing_to_send());
    }
    let body = Body {
        model: &model.id,
        stream: true,
        store: false,
        reasoning: Reasoning::of(model, request.thinking),
        include: model.reasoning.then_some([ENCRYPTED_REASONING]),
        max_output_tokens: output_limit(request)
            .filter(|_| !is_plan)
            .map(|limit| limit.max(MIN_OUTPUT_TOKENS)),
        tools: tools(request.tools, is_plan),
        tool_choice: request.openai_tool_choice(|name| json!({"type": "function", "name": name})),
        parallel_tool_calls: request.openai_parallel_calls(),
        temperature: request.asked().temperature.filter(|_| !is_plan),
        top_p: request.asked().top_p.filter(|_| !is_plan),
        text: request.asked().format.as_ref().map(|format| json!({"format": format})),
        input: input.items,
    };
    openai::encoded(request, &compat, &body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Offered<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    input: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

impl<'a> Reasoning<'a> {
    /// How much to think. That a model should not think is sent only if the provider has a word for it.
    fn of(model: &'a Model, requested: ThinkingLevel) -> Option<Self> {
        if !model.reasoning {
            return None;
        }
        let level = model.thinking_level(requested);
        let effort = model.thinking_word(level);
        match level {
            ThinkingLevel::Off if effort == ThinkingLevel::Off.as_str() => None,
            ThinkingLevel::Off => Some(Self { effort, summary: None }),
            _ => Some(Self { effort, summary: Some("auto") }),
        }
    }
}

/// Whether the key of `request` is the token of a login with a ChatGPT plan, for which OpenAI permits less in a request
/// (developers.openai.com/siwc/token-sharing-open-source/preview-limitations, read in November 2026). Keys begin with `sk-`.
fn is_chatgpt_plan(request: &ModelRequest<'_>) -> bool {
    let key = request.api_key.map(|key| key.expose_secret().trim()).unwrap_or_default();
    let url = Url::parse(request.model.base_url.trim()).ok();
    let is_openai = url.as_ref().and_then(Url::host_str) == Some(OPENAI_HOST);
    is_openai && !key.is_empty() && !key.starts_with("sk-")
}

/// A tool, or the group in which a ChatGPT plan wants them.
#[derive(Serialize)]
#[serde(untagged)]
enum Offered<'a> {
    Tool(Tool<'a>),
    Group {
        #[serde(rename = "type")]
        kind: &'static str,
        name: &'static str,
        description: &'static str,
        tools: Vec<Tool<'a>>,
    },
}

fn tools(schemas: &[ToolSchema], is_plan: bool) -> Vec<Offered<'_>> {
    let tools = schemas.iter().map(Tool::new);
    if is_plan && !schemas.is_empty() {
        let description = "The tools of this agent.";
        let (kind, name) = ("namespace", NAMESPACE);
        return vec![Offered::Group { kind, name, description, tools: tools.collect() }];
    }
    tools.map(Offered::Tool).collect()
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// By default the API refuses schemas with optional properties.
    strict: bool,
}

impl<'a> Tool<'a> {
    fn new(schema: &'a ToolSchema) -> Self {
        let ToolSchema { name, description, parameters } = schema;
        Self { kind: "function", name, description, parameters, strict: false }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<Cow<'a, str>>,
    },
    Reasoning(ReasoningState<'a>),
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<&'static str>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Content<'a>,
    },
}

impl<'a> Item<'a> {
    /// A message that is not one of the server's own items.
    fn message(role: &'static str, content: Content<'a>) -> Self {
        Self::Message { role, content, id: None, status: None, phase: None }
    }
}

/// A plain string if there is only text: every host accepts it.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        image_url: DataUrl<'a>,
        /// Some hosts require it.
        detail: &'static str,
    },
    OutputText {
        text: &'a str,
        /// Required, and always empty: these are sources of a text, and no search is used.
        annotations: [&'static str; 0],
    },
}

impl<'a> From<Vec<Piece<'a>>> for Content<'a> {
    fn from(pieces: Vec<Piece<'a>>) -> Self {
        let part = |piece| match piece {
            Piece::Text(text) => Part::InputText { text },
            Piece::Image(image) => Part::InputImage { image_url: DataUrl(image), detail: "auto" },
        };
        match pieces::joined_if_text(pieces) {
            Ok(text) => Self::Text(text),
            Err(pieces) => Self::Parts(pieces.into_iter().map(part).collect()),
        }
    }
}

/// The items while they are put together.
struct Input<'a> {
    model: &'a Model,
    compat: Compat,
    is_plan: bool,
    items: Vec<Item<'a>>,
}

impl<'a> Input<'a> {
    /// An item rather than the field `instructions`, which some hosts refuse.
    fn add_system_prompt(&mut self, prompt: &'a str) {
        if history::is_blank(prompt) {
            return;
        }
        let role = match self.is_plan {
            true => "developer",
            false => self.compat.system_role.name(self.model),
        };
        self.items.push(Item::message(role, Content::Text(Cow::Borrowed(prompt))));
    }

    fn add_all(&mut self, messages: &'a [Message]) {
        self.items.reserve(messages.len());
        for message in messages {
            match message {
                Message::User(user) => self.add_user(user),
                Message::Assistant(assistant) => self.add_assistant(assistant),
                Message::ToolResult(result) => self.add_result(result),
            }
        }
    }

    fn add_user(&mut self, user: &'a UserMessage) {
        let pieces = pieces::of_user(self.model, ImageTypes::All, user);
        if !pieces.is_empty() {
            self.items.push(Item::message("user", pieces.into()));
        }
    }

    fn add_result(&mut self, result: &'a ToolResultMessage) {
        let pieces = pieces::pieces(self.model, ImageTypes::All, &result.content);
        let output = match pieces.is_empty() {
            true => Content::Text(Cow::Borrowed(history::NO_OUTPUT)),
            false => pieces.into(),
        };
        let call_id = TOOL_IDS.apply(&result.tool_call_id);
        self.items.push(Item::FunctionCallOutput { call_id, output });
    }

    fn add_assistant(&mut self, message: &'a AssistantMessage) {
        let same_origin = history::has_same_origin(self.model, message);
        let keeps_ids = same_origin && has_all_reasoning(message);
        let start = self.items.len();
        // Content that is not an item of the server's own.
        let mut prose = String::new();
        for block in &message.content {
            match block {
                ContentBlock::Text(block) if history::is_blank(&block.text) => {}
                ContentBlock::Text(block) => {
                    let state = block.text_signature.as_deref().filter(|_| same_origin);
                    match state.and_then(|state| serde_json::from_str(state).ok()) {
                        Some(state) => {
                            self.add_prose(&mut prose);
                            self.items.push(own_message(&block.text, state, keeps_ids));
                        }
                        None => prose.push_str(&block.text),
                    }
                }
                ContentBlock::Thinking(thinking) if same_origin => {
                    self.add_prose(&mut prose);
                    self.items.extend(reasoning(thinking).map(Item::Reasoning));
                }
                ContentBlock::Thinking(thinking) => {
                    if let Some(thinking) = history::thinking_as_text(thinking) {
                        prose.push_str(&thinking);
                        prose.push_str("\n\n");
                    }
                }
                ContentBlock::ToolCall(call) => {
                    self.add_prose(&mut prose);
                    self.items.push(function_call(call, keeps_ids, self.is_plan));
                }
                ContentBlock::Image(_) => {}
            }
        }
        self.add_prose(&mut prose);
        // Reasoning that led to nothing, as in an answer that was cut, is refused.
        while self.items.len() > start && matches!(self.items.last(), Some(Item::Reasoning(_))) {
            self.items.pop();
        }
    }

    fn add_prose(&mut self, prose: &mut String) {
        let text = std::mem::take(prose);
        if !history::is_blank(&text) {
            let content = Content::Text(Cow::Owned(text.trim_end().to_owned()));
            self.items.push(Item::message("assistant", content));
        }
    }
}

/// Whether every piece of reasoning in `message` goes back. An item with an id is refused without the reasoning that
/// the server remembers before it.
fn has_all_reasoning(message: &AssistantMessage) -> bool {
    message.content.iter().all(|block| match block {
        ContentBlock::Thinking(thinking) => reasoning(thinking).is_some(),
        ContentBlock::Text(_) | ContentBlock::ToolCall(_) | ContentBlock::Image(_) => true,
    })
}

/// The item that a model's own thinking came as.
fn reasoning(thinking: &ThinkingContent) -> Option<ReasoningState<'_>> {
    let state: ReasoningState<'_> =
        serde_json::from_str(thinking.thinking_signature.as_deref()?).ok()?;
    let has_usable_id = state.id.as_ref().is_none_or(|id| id.len() <= MAX_ITEM_ID);
    (has_usable_id && state.is_replayable()).then_some(state)
}

fn own_message<'a>(text: &'a str, state: MessageState<'a>, keeps_ids: bool) -> Item<'a> {
    let MessageState { id, phase } = state;
    match id.filter(|id| keeps_ids && id.len() <= MAX_ITEM_ID) {
        Some(id) => Item::Message {
            role: "assistant",
            content: Content::Parts(vec![Part::OutputText { text, annotations: [] }]),
            id: Some(id),
            status: Some("completed"),
            phase,
        },
        None => Item::Message {
            role: "assistant",
            content: Content::Text(Cow::Borrowed(text)),
            id: None,
            status: None,
            phase,
        },
    }
}

fn function_call(call: &ToolCall, keeps_ids: bool, is_plan: bool) -> Item<'_> {
    Item::FunctionCall {
        call_id: TOOL_IDS.apply(&call.id),
        name: history::tool_name(&call.name),
        arguments: serde_json::to_string(&history::arguments(call)).unwrap_or_default(),
        id: call
            .thought_signature
            .as_deref()
            .filter(|id| keeps_ids && !id.is_empty() && id.len() <= MAX_ITEM_ID),
        namespace: is_plan.then_some(NAMESPACE),
    }
}
