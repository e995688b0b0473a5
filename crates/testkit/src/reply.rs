//! A model's message, built block by block and rendered in the format its client speaks.

mod anthropic;
mod bedrock;
mod google;
mod openai;
mod responses;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::RecordedRequest;
use crate::Step;
use crate::delivery::{BodyKind, Response};

/// How many deltas a block is split into unless a test says otherwise: enough to have a first, a middle and a last.
const DEFAULT_DELTAS: usize = 3;

/// The wire formats the server answers in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// Anthropic's Messages API.
    AnthropicMessages,
    /// OpenAI's Chat Completions API.
    OpenAiCompletions,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// Google's Generative Language API.
    GoogleGenerativeAi,
    /// Amazon Bedrock's Converse API.
    BedrockConverse,
}

impl WireFormat {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::AnthropicMessages,
        Self::OpenAiCompletions,
        Self::OpenAiResponses,
        Self::GoogleGenerativeAi,
        Self::BedrockConverse,
    ];
}

/// Why the model stopped; rendered in each format's own word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// `end_turn`, `stop`, `STOP`.
    EndTurn,
    /// `tool_use`, `tool_calls`, `STOP`.
    ToolUse,
    /// `max_tokens`, `length`, `MAX_TOKENS`.
    Length,
    /// `refusal`, `content_filter`, `SAFETY`, `content_filtered`.
    Refusal,
    /// Any other word, as it is.
    Other(String),
}

/// One message of a scripted model. Blocks arrive in the order in which they were added, each split into three
/// deltas unless [`Reply::in_deltas`] follows.
///
/// The stop reason follows from the blocks unless [`Reply::stop`] sets it. The answer is a stream if the request has
/// `"stream": true` or by its address (Google's, Bedrock's), and whole JSON otherwise, unless
/// [`Reply::always_streamed`] or [`Reply::always_whole`] says so.
#[derive(Debug, Clone)]
pub struct Reply {
    format: WireFormat,
    blocks: Vec<Block>,
    stop: Option<Stop>,
    usage: TokenCounts,
    shape: Shape,
    failure: Option<StreamFailure>,
    pings: Pings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    AsRequested,
    Streamed,
    Whole,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pings {
    None,
    BetweenBlocks,
}

#[derive(Debug, Clone)]
struct Block {
    content: BlockContent,
    deltas: Deltas,
}

#[derive(Debug, Clone)]
enum BlockContent {
    Text(String),
    Thinking { text: String, signature: String },
    RedactedThinking(String),
    ToolCall { id: String, name: String, arguments: String },
}

#[derive(Debug, Clone, Copy)]
enum Deltas {
    /// The block's text in this many parts.
    Split(usize),
    /// The block's text as often as this.
    Repeat(usize),
}

#[derive(Debug, Clone, Copy)]
struct TokenCounts {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

/// An error event in a stream that began with 200.
#[derive(Debug, Clone)]
struct StreamFailure {
    kind: String,
    message: String,
}

/// The fields of a request that the answer depends on. Parsed without building the whole body as a value, because
/// bodies may be long.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wish {
    model: Option<String>,
    stream: bool,
}

impl Reply {
    /// A message in Anthropic's format.
    pub fn anthropic() -> Self {
        Self::new(WireFormat::AnthropicMessages)
    }

    /// A message in OpenAI's Chat Completions format.
    pub fn openai() -> Self {
        Self::new(WireFormat::OpenAiCompletions)
    }

    /// A message in OpenAI's Responses format.
    pub fn responses() -> Self {
        Self::new(WireFormat::OpenAiResponses)
    }

    /// A message in Google's Generative Language format.
    pub fn google() -> Self {
        Self::new(WireFormat::GoogleGenerativeAi)
    }

    /// A message in Amazon Bedrock's format. A failure within its stream has the name of an exception, such as
    /// `throttlingException`; pings have no place in it.
    pub fn bedrock() -> Self {
        Self::new(WireFormat::BedrockConverse)
    }

    /// A message in the given format, for tests that run over several.
    pub fn new(format: WireFormat) -> Self {
        Self {
            format,
            blocks: Vec::new(),
            stop: None,
            usage: TokenCounts { input: 100, output: 20, cache_read: 0, cache_write: 0 },
            shape: Shape::AsRequested,
            failure: None,
            pings: Pings::None,
        }
    }

    /// Adds a text block.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.block(BlockContent::Text(text.into()), Deltas::Split(DEFAULT_DELTAS))
    }

    /// Adds a text block of `count` equal deltas, for long streams.
    #[must_use]
    pub fn repeated_text(self, delta: impl Into<String>, count: usize) -> Self {
        self.block(BlockContent::Text(delta.into()), Deltas::Repeat(count))
    }

    /// Adds a thinking block. OpenAI's Chat Completions have no place for the signature and leave it out.
    #[must_use]
    pub fn thinking(self, text: impl Into<String>, signature: impl Into<String>) -> Self {
        let content = BlockContent::Thinking { text: text.into(), signature: signature.into() };
        self.block(content, Deltas::Split(DEFAULT_DELTAS))
    }

    /// Adds a thinking block that the provider withheld. OpenAI's Chat Completions leave it out.
    #[must_use]
    pub fn redacted_thinking(self, data: impl Into<String>) -> Self {
        self.block(BlockContent::RedactedThinking(data.into()), Deltas::Split(1))
    }

    /// Adds a tool call.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "every caller makes the value on the spot, with json!"
    )]
    pub fn tool_call(
        self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: Value,
    ) -> Self {
        self.tool_call_with_raw_arguments(id, name, arguments.to_string())
    }

    /// Adds a tool call whose arguments are this text, JSON or not.
    #[must_use]
    pub fn tool_call_with_raw_arguments(
        self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        let content = BlockContent::ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        self.block(content, Deltas::Split(DEFAULT_DELTAS))
    }

    /// Splits the last block into `count` deltas, or into as many as it has characters if that is fewer.
    #[must_use]
    pub fn in_deltas(mut self, count: usize) -> Self {
        if let Some(block) = self.blocks.last_mut() {
            block.deltas = Deltas::Split(count);
        }
        self
    }

    /// Sets why the model stopped.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the token counts (100 and 20 unless set). `input` does not include what the cache gave or took.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = TokenCounts { input, output, ..self.usage };
        self
    }

    /// Sets the cache counters (0 unless set).
    #[must_use]
    pub fn cache_usage(mut self, read: u64, write: u64) -> Self {
        self.usage = TokenCounts { cache_read: read, cache_write: write, ..self.usage };
        self
    }

    /// Ends the stream, after the blocks, by an error event of the provider instead of its proper end. Such as
    /// `("overloaded_error", "Overloaded")`. The last block stays open.
    #[must_use]
    pub fn fails_with(mut self, kind: impl Into<String>, message: impl Into<String>) -> Self {
        self.failure = Some(StreamFailure { kind: kind.into(), message: message.into() });
        self
    }

    /// Puts the keep-alives of the format (`ping` events, comments) between the blocks.
    #[must_use]
    pub fn with_pings(mut self) -> Self {
        self.pings = Pings::BetweenBlocks;
        self
    }

    /// Streams even if the request does not ask for a stream.
    #[must_use]
    pub fn always_streamed(mut self) -> Self {
        self.shape = Shape::Streamed;
        self
    }

    /// Answers with whole JSON even if the request asks for a stream.
    #[must_use]
    pub fn always_whole(mut self) -> Self {
        self.shape = Shape::Whole;
        self
    }

    /// The step that gives this message, to add faults to.
    #[must_use]
    pub fn step(self) -> Step {
        self.into()
    }

    /// The body of the stream, for tests of decoders that need no server.
    pub fn stream_body(&self, model: &str) -> Vec<u8> {
        match self.format {
            WireFormat::AnthropicMessages => anthropic::stream(self, model),
            WireFormat::OpenAiCompletions => openai::stream(self, model),
            WireFormat::OpenAiResponses => responses::stream(self, model),
            WireFormat::GoogleGenerativeAi => google::stream(self, model),
            WireFormat::BedrockConverse => bedrock::stream(self),
        }
    }

    /// The body of the answer that is no stream.
    pub fn whole_body(&self, model: &str) -> Vec<u8> {
        let body = match (&self.failure, self.format) {
            (Some(failure), _) => failure.body(self.format),
            (None, WireFormat::AnthropicMessages) => anthropic::whole(self, model),
            (None, WireFormat::OpenAiCompletions) => openai::whole(self, model),
            (None, WireFormat::OpenAiResponses) => responses::whole(self, model),
            (None, WireFormat::GoogleGenerativeAi) => google::whole(self, model),
            (None, WireFormat::BedrockConverse) => bedrock::whole(self),
        };
        body.to_string().into_bytes()
    }

    pub(crate) fn render(&self, request: &RecordedRequest) -> Response {
        let wish: Wish = serde_json::from_slice(&request.body).unwrap_or_default();
        let model = wish.model.as_deref().unwrap_or("test-model");
        let streamed = match self.shape {
            // Some formats ask for it in the address.
            Shape::AsRequested => {
                wish.stream
                    || request.path.contains("alt=sse")
                    || request.route().ends_with("/converse-stream")
            }
            Shape::Streamed => true,
            Shape::Whole => false,
        };
        let (kind, body) = if streamed {
            let kind = match self.format {
                WireFormat::BedrockConverse => BodyKind::BinaryEventStream,
                WireFormat::AnthropicMessages
                | WireFormat::OpenAiCompletions
                | WireFormat::OpenAiResponses
                | WireFormat::GoogleGenerativeAi => BodyKind::EventStream,
            };
            (kind, self.stream_body(model))
        } else {
            (BodyKind::Whole, self.whole_body(model))
        };
        Response { status: 200, headers: Vec::new(), kind, body }
    }

    fn block(mut self, content: BlockContent, deltas: Deltas) -> Self {
        self.blocks.push(Block { content, deltas });
        self
    }

    fn effective_stop(&self) -> Stop {
        let calls_tools =
            self.blocks.iter().any(|block| matches!(block.content, BlockContent::ToolCall { .. }));
        match &self.stop {
            Some(stop) => stop.clone(),
            None if calls_tools => Stop::ToolUse,
            None => Stop::EndTurn,
        }
    }

    /// Distinguishes the messages of one server for the reader of a trace.
    fn message_id(&self, prefix: &str) -> String {
        format!("{prefix}{:08}", self.blocks.len() * 1000 + self.usage.output as usize)
    }
}

impl Block {
    /// The deltas of `text`.
    fn parts<'a>(&self, text: &'a str) -> Vec<&'a str> {
        match self.deltas {
            Deltas::Repeat(count) => vec![text; count],
            Deltas::Split(count) => split(text, count),
        }
    }

    /// The whole of `text`, as often as the deltas repeat it.
    fn joined(&self, text: &str) -> String {
        self.parts(text).concat()
    }
}

impl StreamFailure {
    fn body(&self, format: WireFormat) -> Value {
        match format {
            WireFormat::AnthropicMessages => anthropic::error(self),
            WireFormat::OpenAiCompletions => openai::error(self),
            WireFormat::OpenAiResponses => responses::error(self),
            WireFormat::GoogleGenerativeAi => google::error(self),
            WireFormat::BedrockConverse => bedrock::error(self),
        }
    }
}

/// Arguments as a value; text that is no JSON stays text, empty text is an empty object.
fn parsed(arguments: &str) -> Value {
    if arguments.is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.to_owned()))
}

/// Cuts `text` into at most `count` parts of about equal length, never within a character.
fn split(text: &str, count: usize) -> Vec<&str> {
    let chars = text.chars().count();
    if chars == 0 {
        return Vec::new();
    }
    let count = count.clamp(1, chars);
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    (0..count)
        .map(|part| &text[starts[part * chars / count]..starts[(part + 1) * chars / count]])
        .collect()
}
