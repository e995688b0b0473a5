//! Wire formats: encoding requests as bytes, and decoding the bytes of answers.
//!
//! This module does no I/O, so every format can be tested from recorded bytes. [`encode`] turns a request into an HTTP
//! request. A [`Decoder`] is fed the frames of the answer, reports stream events and returns the finished message, or
//! at any time what has arrived so far. An [`AnswerBody`] finds the frames in the bytes of a body. Differences between
//! the hosts of one format are data in [`compat`].

mod answer_body;
pub mod anthropic_messages;
mod arguments;
pub mod bedrock_converse;
mod builder;
pub mod compat;
mod counters;
mod endpoint;
mod foreign;
pub mod google_generative_ai;
mod history;
mod json;
mod numbered_blocks;
mod openai;
pub mod openai_completions;
pub mod openai_responses;
pub(crate) mod optional;
mod pieces;
#[cfg(test)]
mod testing;
mod thinking_control;
pub(crate) mod tool_ids;
mod turns;

use std::fmt;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

pub use answer_body::AnswerBody;
pub use arguments::{partial_arguments, without_fence};
pub(crate) use builder::MessageBuilder;
pub(crate) use endpoint::models_url;
pub use endpoint::{host_label, is_link_local, is_loopback};
pub(crate) use history::without_date;
pub(crate) use thinking_control::{Off, ThinkingControl};

use crate::sse::Frame;
use crate::{
    Api, AssistantMessage, Attribution, ErrorClass, EventSink, ExtraHeaders, Message, Model,
    ModelError, ModelRequest, StopReason, Trouble, classify,
};

/// The end of a stream in Chat Completions; some gateways send it in every format.
const END_MARKER: &str = "[DONE]";

/// A model call as an HTTP request; the method is POST. The header with the key is marked sensitive, so printing this
/// shows no secret.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedRequest {
    /// Where it goes.
    pub url: Url,
    /// Its headers, `content-type` and the key included.
    pub headers: HeaderMap,
    /// JSON.
    pub body: Bytes,
}

/// The effect of a frame on the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// The server is alive but sent nothing new.
    KeepAlive,
    /// The message grew.
    Advanced,
    /// The message is complete; only counters may still follow.
    Complete,
    /// Nothing more will follow.
    Ended,
}

/// Turns a request into bytes.
///
/// # Errors
/// The model's format has no wire form or cannot carry an option, its base URL is invalid, or a header cannot hold the key.
pub fn encode(request: &ModelRequest<'_>) -> Result<EncodedRequest, ModelError> {
    if let Some(option) = request.asked().unsupported(request.model.api) {
        return Err(no_such_option(request.model, option));
    }
    match request.model.api {
        Api::AnthropicMessages => anthropic_messages::encode(request),
        Api::OpenaiCompletions => openai_completions::encode(request),
        Api::OpenaiResponses => openai_responses::encode(request),
        Api::GoogleGenerativeAi => google_generative_ai::encode(request),
        Api::BedrockConverse => bedrock_converse::encode(request),
        Api::Builtin => Err(no_wire_format(request.model)),
    }
}

/// Decodes the answer to one request. Events are reported in order. Errors say only what the server did; the driver
/// adds which server.
#[derive(Debug)]
pub struct Decoder<'a> {
    format: Box<dyn FormatDecoder<'a> + Send + 'a>,
    api: Api,
    origin: Origin,
}

/// Whether the events of a stream are of the expected format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// None came.
    Unknown,
    /// Events came, but none of the format.
    Foreign,
    /// One was of the format.
    Recognised,
}

/// The decoder of one format; see [`Decoder`] for the meaning of each function.
pub(crate) trait FormatDecoder<'a>: fmt::Debug {
    fn feed(
        &mut self,
        event: &str,
        data: &str,
        sink: EventSink<'_>,
    ) -> Result<Progress, ModelError>;

    /// Handles [`END_MARKER`], which has no meaning in a format with an end of its own.
    fn feed_end_marker(&mut self) -> Progress {
        Progress::KeepAlive
    }

    fn feed_whole(&mut self, body: &str, sink: EventSink<'_>) -> Result<(), ModelError>;

    fn finish(&mut self, sink: EventSink<'_>) -> Result<AssistantMessage, ModelError>;

    fn builder(&self) -> &MessageBuilder<'a>;
}

impl<'a> Decoder<'a> {
    /// A decoder for the answer to the messages `history`. `timestamp` (milliseconds since the Unix epoch)
    /// becomes the message's.
    ///
    /// # Errors
    /// The model's format has no wire form.
    pub fn new(model: &Model, history: &'a [Message], timestamp: u64) -> Result<Self, ModelError> {
        let builder = MessageBuilder::new(model, history, timestamp);
        let format: Box<dyn FormatDecoder<'a> + Send + 'a> = match model.api {
            Api::AnthropicMessages => Box::new(anthropic_messages::Decoder::new(builder)),
            Api::OpenaiCompletions => {
                let compat = compat::Compat::of(model);
                Box::new(openai_completions::Decoder::new(builder, &compat))
            }
            Api::OpenaiResponses => Box::new(openai_responses::Decoder::new(builder)),
            Api::GoogleGenerativeAi => Box::new(google_generative_ai::Decoder::new(builder)),
            Api::BedrockConverse => Box::new(bedrock_converse::Decoder::new(builder)),
            Api::Builtin => {
                return Err(no_wire_format(model));
            }
        };
        Ok(Self { format, api: model.api, origin: Origin::Unknown })
    }

    /// Takes one frame of a stream.
    ///
    /// # Errors
    /// The frame reports a failure or is invalid.
    pub fn feed(&mut self, frame: &Frame<'_>, sink: EventSink<'_>) -> Result<Progress, ModelError> {
        let outcome = match frame.data.trim() {
            END_MARKER => Ok(self.format.feed_end_marker()),
            _ => self.format.feed(&frame.event, &frame.data, sink),
        };
        let is_unread = match &outcome {
            Ok(progress) => *progress == Progress::KeepAlive,
            // A failure that the format knows has a status.
            Err(error) => error.status.is_none(),
        };
        if is_unread && foreign::is_unmarked_failure(self.api, &frame.event, &frame.data) {
            return Err(classify::stream_error(&frame.data));
        }
        if self.origin != Origin::Recognised {
            self.look_for_origin(frame, &outcome)?;
        }
        let progress = outcome?;
        self.format.builder().check_size()?;
        Ok(progress)
    }

    /// Checks whether this is the first event of the format. An event of another format cannot be read, and a retry
    /// would not change that.
    fn look_for_origin(
        &mut self,
        frame: &Frame<'_>,
        outcome: &Result<Progress, ModelError>,
    ) -> Result<(), ModelError> {
        if frame.data.trim() == END_MARKER {
            if matches!(outcome, Ok(Progress::KeepAlive)) {
                self.origin = Origin::Foreign;
            }
            return Ok(());
        }
        let is_foreign = foreign::is_foreign(self.api, &frame.event, &frame.data);
        if is_foreign && outcome.is_err() {
            return Err(foreign::foreign_format(self.api));
        }
        self.origin = match is_foreign && self.format.builder().is_empty() {
            true => Origin::Foreign,
            false => Origin::Recognised,
        };
        Ok(())
    }

    /// Decodes a whole answer that did not come as a stream.
    ///
    /// # Errors
    /// It reports a failure or is not an answer.
    pub fn feed_whole(&mut self, body: &str, sink: EventSink<'_>) -> Result<(), ModelError> {
        self.format.feed_whole(body, sink).map_err(|error| {
            match foreign::is_foreign(self.api, "", body) {
                true => foreign::foreign_format(self.api),
                false => error,
            }
        })
    }

    /// Closes the message and reports [`crate::StreamEvent::Done`].
    ///
    /// # Errors
    /// The answer is not complete: the stream ended without its terminal event.
    pub fn finish(&mut self, sink: EventSink<'_>) -> Result<AssistantMessage, ModelError> {
        self.format.finish(sink).map_err(|error| match self.origin {
            Origin::Foreign => foreign::foreign_format(self.api),
            Origin::Unknown | Origin::Recognised => error,
        })
    }

    /// What has arrived so far, as a message with the stop reason `reason`; `None` if nothing has. Its content is empty
    /// if only counters came.
    pub fn partial(&self, reason: StopReason, error: &str) -> Option<AssistantMessage> {
        self.format.builder().partial(reason, error)
    }

    /// Whether something that a user may have seen was reported.
    pub fn has_visible_output(&self) -> bool {
        self.format.builder().has_visible_output()
    }
}

/// The headers that authenticate a call to a server of `api`.
///
/// # Errors
/// The key has characters that a header cannot hold.
pub(crate) fn auth_headers(api: Api, key: Option<&SecretString>) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    if api == Api::AnthropicMessages {
        headers
            .insert("anthropic-version", HeaderValue::from_static(anthropic_messages::API_VERSION));
    }
    let Some(key) = key.map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty()) else {
        return Ok(headers);
    };
    let is_oauth_token = key.starts_with(anthropic_messages::OAUTH_KEY_PREFIX);
    if api == Api::AnthropicMessages && is_oauth_token {
        let beta = HeaderValue::from_static(anthropic_messages::OAUTH_BETA);
        headers.append(anthropic_messages::BETA_HEADER, beta);
    }
    let (name, text) = match api {
        Api::AnthropicMessages if !is_oauth_token => ("x-api-key", key.to_owned()),
        Api::GoogleGenerativeAi if !key.starts_with(google_generative_ai::TOKEN_PREFIX) => {
            (google_generative_ai::KEY_HEADER, key.to_owned())
        }
        _ => ("authorization", format!("Bearer {key}")),
    };
    let unusable = || {
        let message = "the API key holds a character that no HTTP header can carry (a line break?): copy it again";
        ModelError::new(ErrorClass::Auth, message)
    };
    // Header values may hold bytes beyond ASCII, but a key with a typographic quotation mark or an invisible space was
    // copied wrongly.
    if !key.is_ascii() {
        return Err(unusable());
    }
    let mut value = HeaderValue::from_str(&text).map_err(|_| unusable())?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}

/// An encoded request with the headers that every format needs.
pub(crate) fn json_request(
    request: &ModelRequest<'_>,
    url: Url,
    body: &impl serde::Serialize,
) -> Result<EncodedRequest, ModelError> {
    let mut headers = auth_headers(request.model.api, request.api_key)?;
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("accept", HeaderValue::from_static("text/event-stream"));
    // Compressed events arrive late: the compressor waits for more.
    headers.insert("accept-encoding", HeaderValue::from_static("identity"));
    add_attribution(request.model, &mut headers)?;
    add_extra_headers(&request.model.quirks.headers, &mut headers)?;
    let body = serde_json::to_vec(body).map_err(|error| {
        ModelError::new(
            ErrorClass::Unknown,
            format!("the request cannot be written as JSON: {error}"),
        )
    })?;
    Ok(EncodedRequest { url, headers, body: body.into() })
}

/// Tells a host that counts programs which one asks.
fn add_attribution(model: &Model, headers: &mut HeaderMap) -> Result<(), ModelError> {
    let Some(Attribution { url, title }) = &model.quirks.attribution else { return Ok(()) };
    if !compat::Compat::of(model).counts_programs {
        return Ok(());
    }
    for (name, value) in [("http-referer", url), ("x-title", title)] {
        let value = HeaderValue::from_str(value).map_err(|_| {
            let message = format!(
                "the header {name:?} cannot be sent: correct models.attribution in the config file"
            );
            ModelError::new(ErrorClass::Unknown, message)
        })?;
        headers.insert(name, value);
    }
    Ok(())
}

/// Adds the user's own headers. They replace headers of the same name, except for one that is a list.
fn add_extra_headers(extra: &ExtraHeaders, headers: &mut HeaderMap) -> Result<(), ModelError> {
    for (name, value) in extra.iter() {
        let unusable = || {
            let message = format!(
                "the header {name:?} of the config cannot be sent: a name has letters, digits and dashes, and a \
                 value no line break"
            );
            ModelError::new(ErrorClass::Unknown, message)
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        match header == anthropic_messages::BETA_HEADER {
            true => headers.append(header, value),
            false => headers.insert(header, value).is_some(),
        };
    }
    Ok(())
}

fn no_wire_format(model: &Model) -> ModelError {
    let message = format!("model {}/{} is not served over HTTP", model.provider, model.id);
    ModelError::new(ErrorClass::Unknown, message)
}

/// The failure of a request that asks for what its format cannot carry.
pub(crate) fn no_such_option(model: &Model, option: &str) -> ModelError {
    let message = format!(
        "`{option}` cannot be asked of {}/{}, whose protocol ({}) has no such field",
        model.provider,
        model.id,
        model.api.as_str()
    );
    ModelError::new(ErrorClass::Unknown, message)
}

/// Most tokens that the answer may have; `None` if unknown.
pub(crate) fn output_limit(request: &ModelRequest<'_>) -> Option<u64> {
    Some(request.max_output.unwrap_or(request.model.max_output)).filter(|&limit| limit > 0)
}

/// The failure of a request without a message, for example when all text is white space.
pub(crate) fn nothing_to_send() -> ModelError {
    ModelError::new(ErrorClass::Unknown, "there is no message to send to the model")
}

/// The failure of a stream that stopped before its message was whole.
pub(crate) fn cut_stream() -> ModelError {
    ModelError {
        trouble: Trouble::Network,
        ..ModelError::new(
            ErrorClass::Timeout,
            "the answer was cut off: the stream ended before the message was complete",
        )
    }
}

/// Stop reasons of hosts for an answer that stopped because it and the request fill the context window.
pub(crate) const WINDOW_EXCEEDED: &str = "model_context_window_exceeded";

/// The failure of an answer whose stop reason is a failure.
pub(crate) fn failed_ending(class: ErrorClass, reason: &str) -> ModelError {
    ModelError {
        status: Some(200),
        code: Some(reason.to_owned()),
        ..ModelError::new(class, format!("ended the answer as failed ({reason})"))
    }
}

/// The failure of an answer that ended without content and without a reason.
pub(crate) fn empty_answer() -> ModelError {
    ModelError::new(
        ErrorClass::Timeout,
        "the answer is empty: it ended without content and without a finish reason",
    )
}
