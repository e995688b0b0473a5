//! A request in the Generative Language format.
//!
//! Schemas of tools travel as `parametersJsonSchema`, which takes JSON Schema as it is, at both services. The older
//! `parameters` takes a dialect of OpenAPI and refuses the whole request over a keyword that it does not know
//! (`additionalProperties`, `$schema`, `const`), so schemas of foreign tools would have to be rewritten and lose
//! meaning.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::thinking::ThinkingConfig;
use super::{Service, bare_id, is_generation_3};
use crate::wire::compat::ToolIdRule;
use crate::wire::pieces::{self, ImageTypes, Piece};
use crate::wire::{EncodedRequest, endpoint, history, json_request, nothing_to_send, output_limit};
use crate::{
    AnswerFormat, AnswerOptions, AssistantMessage, ContentBlock, ForcedCall, Message, Model,
    ModelError, ModelRequest, ThinkingContent, ToolCall, ToolResultMessage, ToolSchema, ToolUse,
};

/// The allowed form of a call's id. The service does not document it; every other host accepts this form.
const TOOL_IDS: ToolIdRule = ToolIdRule::Token(64);

/// Image types that the models read (<https://ai.google.dev/gemini-api/docs/image-understanding>).
const IMAGE_TYPES: ImageTypes =
    ImageTypes::Only(&["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"]);

/// The text of a user turn that is required but empty, such as the first turn of a request.
const EMPTY_TURN: &str = "(no text)";

/// The text of a result that is only an image.
const IMAGE_RESULT: &str = "(the image)";

/// From the third generation on, a call without the signature of its thought is refused. This value, which Google's
/// guide to thought signatures (<https://ai.google.dev/gemini-api/docs/thought-signatures>) gives for calls that
/// another model made, is accepted in its place.
const FOREIGN_CALL_SIGNATURE: &str = "skip_thought_signature_validator";

/// Encodes `request`.
///
/// # Errors
/// There is no message to send, the base URL is invalid, or a header cannot hold the key.
pub fn encode(request: &ModelRequest<'_>) -> Result<EncodedRequest, ModelError> {
    let model = request.model;
    let mut url = endpoint::call_url(model.api, &model.base_url)?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.extend(["models", &format!("{}:streamGenerateContent", bare_id(&model.id))]);
    }
    url.query_pairs_mut().append_pair("alt", "sse");
    let mut contents = Contents::new(model);
    contents.add_all(request.messages.as_slice());
    if contents.contents.is_empty() {
        return Err(nothing_to_send());
    }
    let limit = output_limit(request);
    let offers_tools = !request.tools.is_empty();
    let body = Body {
        system_instruction: (!history::is_blank(request.system_prompt))
            .then(|| Instruction { parts: [Part::text(request.system_prompt)] }),
        tools: offers_tools.then(|| {
            [Tools { function_declarations: request.tools.iter().map(Function::new).collect() }]
        }),
        tool_config: offers_tools.then(|| ToolConfig::new(request)),
        generation_config: GenerationConfig {
            thinking_config: ThinkingConfig::of(model, request.thinking, limit),
            ..GenerationConfig::of(request.asked(), limit)
        },
        contents: contents.contents,
    };
    json_request(request, url, &body)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    generation_config: GenerationConfig<'a>,
    contents: Vec<Content<'a>>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Function<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

impl<'a> Function<'a> {
    fn new(schema: &'a ToolSchema) -> Self {
        let ToolSchema { name, description, parameters } = schema;
        Self { name, description, parameters_json_schema: parameters }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    function_calling_config: FunctionCallingConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionCallingConfig<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

impl<'a> ToolConfig<'a> {
    fn new(request: &ModelRequest<'a>) -> Self {
        let (mode, allowed_function_names) = match (request.forced_call(), request.tool_use) {
            (Some(ForcedCall::Any), _) => ("ANY", None),
            (Some(ForcedCall::Tool(name)), _) => ("ANY", Some([name.as_str()])),
            (None, ToolUse::Auto) => ("AUTO", None),
            (None, ToolUse::Forbidden) => ("NONE", None),
        };
        Self { function_calling_config: FunctionCallingConfig { mode, allowed_function_names } }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
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
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
}

impl<'a> GenerationConfig<'a> {
    fn of(asked: &'a AnswerOptions, limit: Option<u64>) -> Self {
        let AnswerOptions { temperature, top_p, seed, .. } = *asked;
        let AnswerOptions { presence_penalty, frequency_penalty, .. } = *asked;
        let response_json_schema = match &asked.format {
            Some(AnswerFormat::JsonSchema { schema, .. }) => Some(schema),
            Some(AnswerFormat::JsonObject) | None => None,
        };
        Self {
            max_output_tokens: limit,
            thinking_config: None,
            temperature,
            top_p,
            presence_penalty,
            frequency_penalty,
            seed,
            stop_sequences: &asked.stop,
            response_mime_type: asked.format.is_some().then_some("application/json"),
            response_json_schema,
        }
    }
}

#[derive(Serialize)]
struct Content<'a> {
    role: Role,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Model,
}

/// A piece of a turn, and the state of the model that it was made in.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(flatten)]
    payload: Payload<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Payload<'a> {
    Text(Cow<'a, str>),
    InlineData(Blob<'a>),
    FunctionCall(FunctionCall<'a>),
    FunctionResponse(FunctionResponse<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    args: Cow<'a, Map<String, Value>>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
    response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part<'a>>,
}

/// The result of a function, under the names that the service requires.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

impl<'a> Part<'a> {
    fn new(payload: Payload<'a>) -> Self {
        Self { payload, thought: false, thought_signature: None }
    }

    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(Payload::Text(text.into()))
    }

    fn signed(self, thought_signature: Option<&'a str>) -> Self {
        Self { thought_signature, ..self }
    }
}

impl<'a> From<Piece<'a>> for Part<'a> {
    fn from(piece: Piece<'a>) -> Self {
        Self::new(match piece {
            Piece::Text(text) => Payload::Text(text),
            Piece::Image(image) => {
                Payload::InlineData(Blob { mime_type: &image.mime_type, data: &image.data })
            }
        })
    }
}

/// The turns while they are put together.
struct Contents<'a> {
    model: &'a Model,
    service: Service,
    contents: Vec<Content<'a>>,
    /// Images of the results just added. Models before the third generation accept them only after all results.
    pending_images: Vec<Part<'a>>,
}

impl<'a> Contents<'a> {
    fn new(model: &'a Model) -> Self {
        let service = Service::of(model);
        Self { model, service, contents: Vec::new(), pending_images: Vec::new() }
    }

    fn add_all(&mut self, messages: &'a [Message]) {
        self.contents.reserve(messages.len());
        for message in messages {
            if !matches!(message, Message::ToolResult(_)) {
                self.flush_images();
            }
            match message {
                Message::User(user) => {
                    let pieces = pieces::of_user(self.model, IMAGE_TYPES, user);
                    self.push(Role::User, pieces.into_iter().map(Part::from).collect());
                }
                Message::Assistant(assistant) => {
                    self.push(Role::Model, self.assistant_parts(assistant));
                }
                Message::ToolResult(result) => self.add_result(result),
            }
        }
        self.flush_images();
    }

    /// Adds to the turn of that role. Turns alternate and the first is the user's: the service refuses any other order.
    fn push(&mut self, role: Role, parts: Vec<Part<'a>>) {
        if parts.is_empty() {
            return;
        }
        if self.contents.is_empty() && role == Role::Model {
            let parts = vec![Part::text(EMPTY_TURN)];
            self.contents.push(Content { role: Role::User, parts });
        }
        match self.contents.last_mut() {
            Some(last) if last.role == role => last.parts.extend(parts),
            _ => self.contents.push(Content { role, parts }),
        }
    }

    fn flush_images(&mut self) {
        let images = std::mem::take(&mut self.pending_images);
        self.push(Role::User, images);
    }

    /// The parts as they came, each with its own signature if that is valid for the model.
    fn assistant_parts(&self, message: &'a AssistantMessage) -> Vec<Part<'a>> {
        let same_origin = history::has_same_origin(self.model, message);
        let own = |signature: &'a Option<String>| {
            history::usable_signature(signature.as_ref()).filter(|_| same_origin)
        };
        let mut is_first_call = true;
        message
            .content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => {
                    let signature = own(&text.text_signature);
                    let says_nothing = history::is_blank(&text.text) && signature.is_none();
                    (!says_nothing).then(|| Part::text(text.text.as_str()).signed(signature))
                }
                ContentBlock::Thinking(thinking) if same_origin => thought_part(thinking),
                ContentBlock::Thinking(thinking) => {
                    history::thinking_as_text(thinking).map(Part::text)
                }
                ContentBlock::ToolCall(call) => {
                    let is_first = std::mem::take(&mut is_first_call);
                    let signature = own(&call.thought_signature)
                        .or_else(|| is_first.then(|| self.missing_signature()).flatten());
                    Some(self.call_part(call).signed(signature))
                }
                ContentBlock::Image(_) => None,
            })
            .collect()
    }

    /// Replaces the missing signature of the first call of a message; the other calls need none.
    fn missing_signature(&self) -> Option<&'static str> {
        is_generation_3(&self.model.id).then_some(FOREIGN_CALL_SIGNATURE)
    }

    fn call_part(&self, call: &'a ToolCall) -> Part<'a> {
        Part::new(Payload::FunctionCall(FunctionCall {
            id: self.wire_id(&call.id),
            name: function_name(&call.name),
            args: history::arguments(call),
        }))
    }

    /// Vertex AI knows no ids and refuses the field: there, calls and results belong together by their order.
    fn wire_id(&self, id: &'a str) -> Option<Cow<'a, str>> {
        match self.service {
            Service::AiStudio => Some(TOOL_IDS.apply(id)),
            Service::Vertex => None,
        }
    }

    fn add_result(&mut self, result: &'a ToolResultMessage) {
        let (text, images) =
            pieces::split(pieces::pieces(self.model, IMAGE_TYPES, &result.content));
        let nothing = if images.is_empty() { history::NO_OUTPUT } else { IMAGE_RESULT };
        let text = text.unwrap_or(Cow::Borrowed(nothing));
        let images: Vec<_> = images.into_iter().map(|image| Piece::Image(image).into()).collect();
        let name = function_name(&result.tool_name);
        let mut parts = Vec::new();
        if is_generation_3(&self.model.id) {
            parts = images;
        } else if !images.is_empty() {
            let note = format!("Image from the result of tool {name}:");
            self.pending_images.push(Part::text(note));
            self.pending_images.extend(images);
        }
        let response = if result.is_error { Outcome::Error(text) } else { Outcome::Output(text) };
        let id = self.wire_id(&result.tool_call_id);
        let response = FunctionResponse { id, name, response, parts };
        self.push(Role::User, vec![Part::new(Payload::FunctionResponse(response))]);
    }
}

/// A tool name. The service requires that it begins with a letter or `_`; models invent others.
fn function_name(name: &str) -> Cow<'_, str> {
    let name = history::tool_name(name);
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return name;
    }
    let mut longer = format!("_{name}");
    longer.truncate(history::MAX_TOOL_NAME);
    Cow::Owned(longer)
}

/// A thought as it came; one without text or signature says nothing.
fn thought_part(thinking: &ThinkingContent) -> Option<Part<'_>> {
    let signature = history::usable_signature(thinking.thinking_signature.as_ref());
    if history::is_blank(&thinking.thinking) && signature.is_none() {
        return None;
    }
    let part = Part::text(thinking.thinking.as_str()).signed(signature);
    Some(Part { thought: true, ..part })
}
