//! The answer in the Messages format.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{self, Text};
use crate::wire::numbered_blocks::{Kind, NumberedBlocks};
use crate::wire::{
    FormatDecoder, MessageBuilder, Progress, WINDOW_EXCEEDED, cut_stream, empty_answer,
};
use crate::{AssistantMessage, EventSink, ModelError, StopReason, Usage, classify};

/// Reads one answer.
#[derive(Debug)]
pub struct Decoder<'a> {
    blocks: NumberedBlocks<'a>,
    ended: bool,
}

/// Any event. The type is flat, because a tagged one would copy each event before it is read. Large and rare fields are
/// boxed, because an event is moved more than once.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<Box<WireBlock<'a>>>,
    #[serde(borrow)]
    message: Option<MessageStart<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

const _: () = assert!(size_of::<Event<'_>>() <= 264, "every delta pays for a large event");

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// Counters are cumulative. They come with the first event, the last or both.
#[derive(Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

/// An answer that is not a stream.
#[derive(Deserialize)]
struct WholeMessage<'a> {
    #[serde(borrow)]
    content: Option<Vec<WireBlock<'a>>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(builder: MessageBuilder<'a>) -> Self {
        Self { blocks: NumberedBlocks::new(builder), ended: false }
    }

    fn take_event(
        &mut self,
        event_name: &str,
        event: &Event<'_>,
        data: &str,
        sink: EventSink<'_>,
    ) -> Result<Progress, ModelError> {
        let kind = if event.kind.as_str().is_empty() { event_name } else { event.kind.as_str() };
        match kind {
            "content_block_delta" => {
                if let Some(delta) = &event.delta {
                    self.take_delta(event.index, delta, sink);
                }
            }
            "content_block_start" => {
                self.blocks.message.start(sink);
                if let Some(block) = &event.content_block {
                    self.start_block(event.index, block, sink);
                }
            }
            "content_block_stop" => self.blocks.stop(event.index, sink),
            "message_start" => {
                self.blocks.message.start(sink);
                self.take_usage(event.message.as_ref().and_then(|message| message.usage));
            }
            "message_delta" => {
                if let Some(reason) =
                    event.delta.as_ref().and_then(|delta| delta.stop_reason.as_ref())
                {
                    self.take_stop_reason(reason.as_str());
                }
                self.take_usage(event.usage);
            }
            "message_stop" => {
                self.ended = true;
                return Ok(Progress::Ended);
            }
            "error" => return Err(classify::stream_error(data)),
            _ if json::is_present(event.error) => {
                return Err(classify::stream_error(data));
            }
            _ => return Ok(Progress::KeepAlive),
        }
        Ok(Progress::Advanced)
    }

    fn start_block(&mut self, number: u64, block: &WireBlock<'_>, sink: EventSink<'_>) {
        match block.kind.as_str() {
            "text" => {
                self.blocks.stop(number, sink);
                self.blocks.append(number, Kind::Text, json::text(&block.text), sink);
            }
            "thinking" => {
                self.blocks.stop(number, sink);
                self.blocks.append(number, Kind::Thinking, json::text(&block.thinking), sink);
                self.blocks.append_signature(number, json::text(&block.signature), sink);
            }
            "tool_use" => {
                let (id, name) = (json::text(&block.id), json::text(&block.name));
                self.blocks.start_call(number, (id, name), block.input, sink);
            }
            "redacted_thinking" => {
                self.blocks.stop(number, sink);
                self.blocks.append_redacted(number, json::text(&block.data), sink);
            }
            // Calls of tools that run at the provider, their results, and unknown kinds.
            _ => self.blocks.pass_over(number, sink),
        }
    }

    fn take_delta(&mut self, number: u64, delta: &Delta<'_>, sink: EventSink<'_>) {
        match delta.kind.as_str() {
            "text_delta" => self.blocks.append(number, Kind::Text, json::text(&delta.text), sink),
            "thinking_delta" => {
                self.blocks.append(number, Kind::Thinking, json::text(&delta.thinking), sink);
            }
            "signature_delta" => {
                self.blocks.append_signature(number, json::text(&delta.signature), sink);
            }
            "input_json_delta" => {
                self.blocks.append(number, Kind::Call, json::text(&delta.partial_json), sink);
            }
            _ => {}
        }
    }

    fn take_stop_reason(&mut self, name: &str) {
        self.blocks.take_stop_reason(name, stop_reason(name));
    }

    /// A zero never replaces a count: gateways send the counters they know in one event and zeros in the other.
    fn take_usage(&mut self, usage: Option<&RawValue>) {
        let Some(wire) = json::optional::<WireUsage>(usage) else { return };
        let thinking = wire.output_tokens_details.and_then(|details| details.thinking_tokens);
        let Usage { input, output, cache_read, cache_write, reasoning, .. } =
            self.blocks.message.usage_mut();
        for (counter, reported) in [
            (input, wire.input_tokens),
            (output, wire.output_tokens),
            (cache_read, wire.cache_read_input_tokens),
            (cache_write, wire.cache_creation_input_tokens),
            (reasoning, thinking),
        ] {
            if let Some(reported) = reported.filter(|&count| count > 0) {
                *counter = reported;
            }
        }
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
        match json::parse(data, &mut repaired) {
            Ok(event) => self.take_event(event_name, &event, data, sink),
            Err(_) if event_name == "error" => Err(classify::stream_error(data)),
            Err(error) => Err(error),
        }
    }

    fn feed_whole(&mut self, body: &str, sink: EventSink<'_>) -> Result<(), ModelError> {
        let mut repaired = String::new();
        let message: WholeMessage<'_> = json::parse(body, &mut repaired)?;
        if json::is_present(message.error) {
            return Err(classify::stream_error(body));
        }
        let Some(blocks) = message.content else { return Err(classify::stream_error(body)) };
        self.blocks.message.start(sink);
        for (number, block) in (0_u64..).zip(&blocks) {
            self.start_block(number, block, sink);
            self.blocks.stop(number, sink);
        }
        self.take_usage(message.usage);
        if let Some(reason) = &message.stop_reason {
            self.take_stop_reason(reason.as_str());
        }
        self.ended = true;
        Ok(())
    }

    fn finish(&mut self, sink: EventSink<'_>) -> Result<AssistantMessage, ModelError> {
        if !self.ended {
            return Err(cut_stream());
        }
        if self.blocks.stop_reason().is_none() && self.blocks.message.is_empty() {
            return Err(empty_answer());
        }
        self.blocks.finish(sink)
    }

    fn builder(&self) -> &MessageBuilder<'a> {
        &self.blocks.message
    }
}

fn stop_reason(name: &str) -> StopReason {
    match name {
        "max_tokens" | WINDOW_EXCEEDED => StopReason::Length,
        "tool_use" => StopReason::ToolUse,
        "refusal" => StopReason::Refusal,
        // `end_turn`, `stop_sequence`, `pause_turn`, and other normal ends.
        _ => StopReason::Stop,
    }
}
