//! The answer in the Converse format.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{self, Text};
use crate::wire::{FormatDecoder, MessageBuilder, Progress, cut_stream};
use crate::{AssistantMessage, ErrorClass, EventSink, ModelError, StopReason, Usage, classify};

/// Tools that run at the provider; their calls are none of ours.
const SERVER_TOOL: &str = "server_tool_use";

/// Reads one answer.
#[derive(Debug)]
pub struct Decoder<'a> {
    builder: MessageBuilder<'a>,
    /// The provider's blocks that are open.
    open: Vec<OpenBlock>,
    stop_reason: Option<StopReason>,
    has_counters: bool,
}

/// A block that more may be added to.
#[derive(Debug)]
struct OpenBlock {
    /// The provider's number for it.
    number: u64,
    kind: BlockKind,
    /// Its position in the message.
    index: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    Call,
}

/// Any event: one flat shape, because the event's name says which members there are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(default)]
    content_block_index: u64,
    #[serde(borrow)]
    start: Option<WireBlock<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    tool_use: Option<CallDelta<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<ReasoningDelta<'a>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(borrow)]
    input: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningDelta<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    redacted_content: Option<Text<'a>>,
}

/// The start of a block in a stream, which only calls have, or a whole one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBlock<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    tool_use: Option<WireCall<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<WireReasoning<'a>>,
    #[serde(borrow)]
    citations_content: Option<WireCitations<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCall<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_use_id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireReasoning<'a> {
    #[serde(borrow)]
    reasoning_text: Option<WireReasoningText<'a>>,
    #[serde(borrow)]
    redacted_content: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct WireReasoningText<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
}

/// Text with its sources, in an answer that is no stream. In a stream the text comes as any other.
#[derive(Deserialize)]
struct WireCitations<'a> {
    #[serde(borrow, default)]
    content: Vec<CitedText<'a>>,
}

#[derive(Deserialize)]
struct CitedText<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
}

/// `inputTokens` holds no cached tokens.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

/// An answer that is no stream.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WholeAnswer<'a> {
    #[serde(borrow)]
    output: Option<WholeOutput<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WholeOutput<'a> {
    #[serde(borrow)]
    message: Option<WholeMessage<'a>>,
}

#[derive(Deserialize)]
struct WholeMessage<'a> {
    #[serde(borrow, default)]
    content: Vec<WireBlock<'a>>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(builder: MessageBuilder<'a>) -> Self {
        Self {
            builder,
            open: Vec::new(),
            stop_reason: None,
            has_counters: false,
        }
    }

    fn take_event(
        &mut self,
        name: &str,
        event: &Event<'_>,
        sink: EventSink<'_>,
    ) -> Result<Progress, ModelError> {
        match name {
            "contentBlockDelta" => {
                if let Some(delta) = &event.delta {
                    self.take_delta(event.content_block_index, delta, sink);
                }
            }
            "contentBlockStart" => {
                self.builder.start(sink);
                if let Some(block) = &event.start {
                    self.start_block(event.content_block_index, block, sink);
                }
            }
            "contentBlockStop" => self.stop_block(event.content_block_index, sink),
            "messageStart" => self.builder.start(sink),
            "messageStop" => {
                let reason = event.stop_reason.as_ref().map_or("", Text::as_str);
                self.stop_reason = Some(stop_reason(reason)?);
                // Counters come behind it.
                return Ok(if self.has_counters { Progress::Ended } else { Progress::Complete });
            }
            "metadata" => {
                self.take_usage(event.usage);
                if self.stop_reason.is_some() {
                    return Ok(Progress::Ended);
                }
            }
            _ => return Ok(Progress::KeepAlive),
        }
        Ok(Progress::Advanced)
    }

    /// Only calls must be announced; what else is in `block` is all of it.
    fn start_block(&mut self, number: u64, block: &WireBlock<'_>, sink: EventSink<'_>) {
        self.stop_block(number, sink);
        if let Some(call) = &block.tool_use
            && call.kind.as_ref().is_none_or(|kind| kind.as_str() != SERVER_TOOL)
            // Without a name there is nothing to call.
            && !call.name.as_str().is_empty()
        {
            let id = call.tool_use_id.as_str();
            let index = self.builder.start_call(id, call.name.as_str(), sink);
            self.open.push(OpenBlock { number, kind: BlockKind::Call, index });
            let whole =
                call.input.map(RawValue::get).filter(|&input| input != "{}" && input != "null");
            self.append(number, BlockKind::Call, whole.unwrap_or_default(), sink);
        }
        if let Some(text) = &block.text {
            self.append(number, BlockKind::Text, text.as_str(), sink);
        }
        if let Some(citations) = &block.citations_content {
            for cited in &citations.content {
                self.append(number, BlockKind::Text, cited.text.as_str(), sink);
            }
        }
        if let Some(reasoning) = &block.reasoning_content {
            if let Some(WireReasoningText { text, signature }) = &reasoning.reasoning_text {
                self.append(number, BlockKind::Thinking, text.as_str(), sink);
                self.append_signature(number, signature.as_ref(), sink);
            }
            self.add_redacted(reasoning.redacted_content.as_ref(), sink);
        }
    }

    fn take_delta(&mut self, number: u64, delta: &Delta<'_>, sink: EventSink<'_>) {
        if let Some(text) = &delta.text {
            self.append(number, BlockKind::Text, text.as_str(), sink);
        }
        if let Some(CallDelta { input: Some(input) }) = &delta.tool_use {
            self.append(number, BlockKind::Call, input.as_str(), sink);
        }
        if let Some(reasoning) = &delta.reasoning_content {
            if let Some(text) = &reasoning.text {
                self.append(number, BlockKind::Thinking, text.as_str(), sink);
            }
            self.append_signature(number, reasoning.signature.as_ref(), sink);
            self.add_redacted(reasoning.redacted_content.as_ref(), sink);
        }
    }

    fn append(&mut self, number: u64, kind: BlockKind, text: &str, sink: EventSink<'_>) {
        if text.is_empty() {
            return;
        }
        if let Some(index) = self.open_index(number, kind, sink) {
            self.builder.delta(index, text, sink);
        }
    }

    fn append_signature(&mut self, number: u64, piece: Option<&Text<'_>>, sink: EventSink<'_>) {
        let Some(piece) = piece.map(Text::as_str).filter(|piece| !piece.is_empty()) else {
            return;
        };
        if let Some(index) = self.open_index(number, BlockKind::Thinking, sink) {
            self.builder.add_signature(index, piece);
        }
    }

    fn add_redacted(&mut self, data: Option<&Text<'_>>, sink: EventSink<'_>) {
        if let Some(data) = data.map(Text::as_str).filter(|data| !data.is_empty()) {
            self.builder.add_redacted_thinking(data.to_owned(), sink);
        }
    }

    /// Where the block with that number is in the message. Its first delta opens a block, unless it is a call's: a
    /// call without a name is none.
    fn open_index(&mut self, number: u64, kind: BlockKind, sink: EventSink<'_>) -> Option<usize> {
        if let Some(block) = self.open.iter().find(|block| block.number == number) {
            if block.kind == kind {
                return Some(block.index);
            }
            self.stop_block(number, sink);
        }
        let index = match kind {
            BlockKind::Text => self.builder.start_text(sink),
            BlockKind::Thinking => self.builder.start_thinking(sink),
            BlockKind::Call => return None,
        };
        self.open.push(OpenBlock { number, kind, index });
        Some(index)
    }

    fn stop_block(&mut self, number: u64, sink: EventSink<'_>) {
        if let Some(position) = self.open.iter().position(|block| block.number == number) {
            let block = self.open.swap_remove(position);
            self.builder.end(block.index, sink);
        }
    }

    fn take_usage(&mut self, usage: Option<&RawValue>) {
        let Some(wire) = json::optional::<WireUsage>(usage) else { return };
        self.has_counters = true;
        let usage = self.builder.usage_mut();
        *usage = Usage {
            input: wire.input_tokens.unwrap_or(usage.input),
            output: wire.output_tokens.unwrap_or(usage.output),
            cache_read: wire.cache_read_input_tokens.unwrap_or(usage.cache_read),
            cache_write: wire.cache_write_input_tokens.unwrap_or(usage.cache_write),
            ..*usage
        };
    }
}

impl<'a> FormatDecoder<'a> for Decoder<'a> {
    fn feed(
        &mut self,
        event_name: &str,
        data: &str,
        sink: EventSink<'_>,
    ) -> Result<Progress, ModelError> {
        let mut repaired = String::new();
        self.take_event(event_name, &json::parse(data, &mut repaired)?, sink)
    }

    fn feed_whole(&mut self, body: &str, sink: EventSink<'_>) -> Result<(), ModelError> {
        let mut repaired = String::new();
        let answer: WholeAnswer<'_> = json::parse(body, &mut repaired)?;
        let Some(message) = answer.output.and_then(|output| output.message) else {
            return Err(classify::stream_error(body));
        };
        self.builder.start(sink);
        for (number, block) in (0_u64..).zip(&message.content) {
            self.start_block(number, block, sink);
            self.stop_block(number, sink);
        }
        self.take_usage(answer.usage);
        self.stop_reason = Some(stop_reason(answer.stop_reason.as_ref().map_or("", Text::as_str))?);
        Ok(())
    }

    fn finish(&mut self, sink: EventSink<'_>) -> Result<AssistantMessage, ModelError> {
        let reason = self.stop_reason.ok_or_else(cut_stream)?;
        Ok(self.builder.finish(reason, sink))
    }

    fn builder(&self) -> &MessageBuilder<'a> {
        &self.builder
    }
}

/// What the API's word means.
///
/// # Errors
/// When it says that the model wrote something that its host could not read.
fn stop_reason(word: &str) -> Result<StopReason, ModelError> {
    Ok(match word {
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::ToolUse,
        "guardrail_intervened" | "content_filtered" => StopReason::Refusal,
        "malformed_model_output" | "malformed_tool_use" => {
            let message = format!("the model wrote what its host cannot read ({word})");
            return Err(ModelError {
                code: Some(word.to_owned()),
                status: Some(200),
                ..ModelError::new(ErrorClass::Timeout, message)
            });
        }
        // `end_turn`, `stop_sequence`, and whatever else ends an answer in peace.
        _ => StopReason::Stop,
    })
}
