//! The answer in the Converse format.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{self, Text};
use crate::wire::numbered_blocks::{Kind, NumberedBlocks};
use crate::wire::{FormatDecoder, MessageBuilder, Progress, WINDOW_EXCEEDED, cut_stream};
use crate::{AssistantMessage, ErrorClass, EventSink, ModelError, StopReason, Usage, classify};

/// Tools that run at the provider; their calls are ignored.
const SERVER_TOOL: &str = "server_tool_use";

/// Reads one answer.
#[derive(Debug)]
pub struct Decoder<'a> {
    blocks: NumberedBlocks<'a>,
    has_counters: bool,
}

/// Any event. The type is flat, because the event's name says which fields it has. Large and rare fields are boxed,
/// because an event is moved more than once.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(default)]
    content_block_index: u64,
    #[serde(borrow)]
    start: Option<Box<WireBlock<'a>>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

const _: () = assert!(size_of::<Event<'_>>() <= 264, "every delta pays for a large event");

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

/// The start of a block in a stream, which only calls and images have, or a whole block.
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
    #[serde(borrow)]
    image: Option<WireImage<'a>>,
}

#[derive(Deserialize)]
struct WireImage<'a> {
    #[serde(borrow, default)]
    format: Text<'a>,
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

/// An answer that is not a stream.
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
        Self { blocks: NumberedBlocks::new(builder), has_counters: false }
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
                self.blocks.message.start(sink);
                if let Some(block) = &event.start {
                    self.start_block(event.content_block_index, block, sink);
                }
            }
            "contentBlockStop" => self.blocks.stop(event.content_block_index, sink),
            "messageStart" => self.blocks.message.start(sink),
            "messageStop" => {
                let reason = event.stop_reason.as_ref().map_or("", Text::as_str);
                self.take_stop_reason(reason)?;
                // Counters follow.
                return Ok(if self.has_counters { Progress::Ended } else { Progress::Complete });
            }
            "metadata" => {
                self.take_usage(event.usage);
                if self.blocks.stop_reason().is_some() {
                    return Ok(Progress::Ended);
                }
            }
            _ => return Ok(Progress::KeepAlive),
        }
        Ok(Progress::Advanced)
    }

    /// Only calls and images must be announced; any other `block` is complete.
    fn start_block(&mut self, number: u64, block: &WireBlock<'_>, sink: EventSink<'_>) {
        match &block.tool_use {
            Some(call) if call.kind.as_ref().is_some_and(|kind| kind.as_str() == SERVER_TOOL) => {
                self.blocks.pass_over(number, sink);
            }
            Some(call) => {
                let call_names = (call.tool_use_id.as_str(), call.name.as_str());
                self.blocks.start_call(number, call_names, call.input, sink);
            }
            None => self.blocks.stop(number, sink),
        }
        if let Some(WireImage { format }) = &block.image {
            self.blocks.message.add_omission(&format!("image/{}", format.as_str()), sink);
        }
        if let Some(text) = &block.text {
            self.blocks.append(number, Kind::Text, text.as_str(), sink);
        }
        if let Some(citations) = &block.citations_content {
            for cited in &citations.content {
                self.blocks.append(number, Kind::Text, cited.text.as_str(), sink);
            }
        }
        if let Some(reasoning) = &block.reasoning_content {
            if let Some(WireReasoningText { text, signature }) = &reasoning.reasoning_text {
                self.blocks.append(number, Kind::Thinking, text.as_str(), sink);
                self.blocks.append_signature(number, json::text(signature), sink);
            }
            self.blocks.append_redacted(number, json::text(&reasoning.redacted_content), sink);
        }
    }

    fn take_delta(&mut self, number: u64, delta: &Delta<'_>, sink: EventSink<'_>) {
        if let Some(text) = &delta.text {
            self.blocks.append(number, Kind::Text, text.as_str(), sink);
        }
        if let Some(CallDelta { input: Some(input) }) = &delta.tool_use {
            self.blocks.append(number, Kind::Call, input.as_str(), sink);
        }
        if let Some(reasoning) = &delta.reasoning_content {
            if let Some(text) = &reasoning.text {
                self.blocks.append(number, Kind::Thinking, text.as_str(), sink);
            }
            self.blocks.append_signature(number, json::text(&reasoning.signature), sink);
            self.blocks.append_redacted(number, json::text(&reasoning.redacted_content), sink);
        }
    }

    fn take_stop_reason(&mut self, word: &str) -> Result<(), ModelError> {
        self.blocks.take_stop_reason(word, stop_reason(word)?);
        Ok(())
    }

    fn take_usage(&mut self, usage: Option<&RawValue>) {
        let Some(wire) = json::optional::<WireUsage>(usage) else { return };
        self.has_counters = true;
        let usage = self.blocks.message.usage_mut();
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
        self.blocks.message.start(sink);
        for (number, block) in (0_u64..).zip(&message.content) {
            self.start_block(number, block, sink);
            self.blocks.stop(number, sink);
        }
        self.take_usage(answer.usage);
        self.take_stop_reason(json::text(&answer.stop_reason))
    }

    fn finish(&mut self, sink: EventSink<'_>) -> Result<AssistantMessage, ModelError> {
        self.blocks.stop_reason().ok_or_else(cut_stream)?;
        self.blocks.finish(sink)
    }

    fn builder(&self) -> &MessageBuilder<'a> {
        &self.blocks.message
    }
}

/// The meaning of the API's stop reason.
///
/// # Errors
/// The host could not read what the model wrote.
fn stop_reason(word: &str) -> Result<StopReason, ModelError> {
    Ok(match word {
        "max_tokens" | WINDOW_EXCEEDED => StopReason::Length,
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
        // `end_turn`, `stop_sequence`, and other normal ends.
        _ => StopReason::Stop,
    })
}
