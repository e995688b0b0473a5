//! The answer in the Messages format.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{self, Text};
use crate::wire::{FormatDecoder, MessageBuilder, Progress, cut_stream, empty_answer};
use crate::{AssistantMessage, EventSink, ModelError, StopReason, Usage, classify};

/// Reads one answer.
#[derive(Debug)]
pub struct Decoder<'a> {
    builder: MessageBuilder<'a>,
    /// The provider's blocks that are open, by its own numbers.
    slots: Vec<Slot>,
    stop_reason: Option<StopReason>,
    ended: bool,
}

/// One open block of the provider.
#[derive(Debug)]
struct Slot {
    number: u64,
    kind: SlotKind,
    /// Position in the message, once something is in the block.
    index: Option<usize>,
    /// Arguments that came with the start of a call, used if no fragments follow.
    whole_arguments: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotKind {
    Text,
    Thinking,
    Call,
    /// Redacted thinking, which is complete at once, calls of nothing, and kinds this format may gain.
    Other,
}

/// Any event: one flat shape, because a tagged one would copy each event before it is read.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<WireBlock<'a>>,
    #[serde(borrow)]
    message: Option<MessageStart<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

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

/// An answer that is no stream.
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
        Self {
            builder,
            slots: Vec::new(),
            stop_reason: None,
            ended: false,
        }
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
                self.builder.start(sink);
                if let Some(block) = &event.content_block {
                    self.start_block(event.index, block, sink);
                }
            }
            "content_block_stop" => self.stop_block(event.index, sink),
            "message_start" => {
                self.builder.start(sink);
                self.take_usage(event.message.as_ref().and_then(|message| message.usage));
            }
            "message_delta" => {
                if let Some(reason) =
                    event.delta.as_ref().and_then(|delta| delta.stop_reason.as_ref())
                {
                    self.stop_reason = Some(stop_reason(reason.as_str()));
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
        let text = |field: &Option<Text<'_>>| {
            field.as_ref().map_or(String::new(), |text| text.0.clone().into_owned())
        };
        let kind = match block.kind.as_str() {
            "text" => SlotKind::Text,
            "thinking" => SlotKind::Thinking,
            // Without a name there is nothing to call.
            "tool_use" if block.name.as_ref().is_some_and(|name| !name.as_str().is_empty()) => {
                SlotKind::Call
            }
            _ => SlotKind::Other,
        };
        let mut slot = Slot { number, kind, index: None, whole_arguments: None };
        match kind {
            SlotKind::Call => {
                slot.index =
                    Some(self.builder.start_call(&text(&block.id), &text(&block.name), sink));
                slot.whole_arguments = block
                    .input
                    .map(|input| input.get().to_owned())
                    .filter(|input| input != "{}" && input != "null");
            }
            SlotKind::Other if block.kind.as_str() == "redacted_thinking" => {
                self.builder.add_redacted_thinking(text(&block.data), sink);
            }
            SlotKind::Text | SlotKind::Thinking | SlotKind::Other => {}
        }
        self.stop_block(number, sink);
        self.slots.push(slot);
        match kind {
            SlotKind::Text => self.append(number, kind, &text(&block.text), sink),
            SlotKind::Thinking => {
                self.append(number, kind, &text(&block.thinking), sink);
                self.append_signature(number, &text(&block.signature), sink);
            }
            SlotKind::Call | SlotKind::Other => {}
        }
    }

    fn take_delta(&mut self, number: u64, delta: &Delta<'_>, sink: EventSink<'_>) {
        match delta.kind.as_str() {
            "text_delta" => {
                if let Some(text) = &delta.text {
                    self.append(number, SlotKind::Text, text.as_str(), sink);
                }
            }
            "thinking_delta" => {
                if let Some(text) = &delta.thinking {
                    self.append(number, SlotKind::Thinking, text.as_str(), sink);
                }
            }
            "signature_delta" => {
                if let Some(piece) = &delta.signature {
                    self.append_signature(number, piece.as_str(), sink);
                }
            }
            "input_json_delta" => {
                if let Some(piece) = &delta.partial_json {
                    self.append(number, SlotKind::Call, piece.as_str(), sink);
                }
            }
            _ => {}
        }
    }

    /// Adds text to the block with that number. A delta without the start of its block opens one, unless it is a
    /// call's: a call without a name is none.
    fn append(&mut self, number: u64, kind: SlotKind, text: &str, sink: EventSink<'_>) {
        if text.is_empty() {
            return;
        }
        if let Some(index) = self.open_index(number, kind, sink) {
            self.builder.delta(index, text, sink);
        }
    }

    fn append_signature(&mut self, number: u64, piece: &str, sink: EventSink<'_>) {
        if piece.is_empty() {
            return;
        }
        if let Some(index) = self.open_index(number, SlotKind::Thinking, sink) {
            self.builder.add_signature(index, piece);
        }
    }

    fn open_index(&mut self, number: u64, kind: SlotKind, sink: EventSink<'_>) -> Option<usize> {
        let position = match self.slots.iter().position(|slot| slot.number == number) {
            Some(position) => position,
            None => {
                self.slots.push(Slot { number, kind, index: None, whole_arguments: None });
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[position];
        if slot.kind != kind {
            return None;
        }
        if slot.index.is_none() {
            slot.index = match kind {
                SlotKind::Text => Some(self.builder.start_text(sink)),
                SlotKind::Thinking => Some(self.builder.start_thinking(sink)),
                SlotKind::Call | SlotKind::Other => None,
            };
        }
        slot.index
    }

    fn stop_block(&mut self, number: u64, sink: EventSink<'_>) {
        let Some(position) = self.slots.iter().position(|slot| slot.number == number) else {
            return;
        };
        let slot = self.slots.remove(position);
        let Some(index) = slot.index else { return };
        if let Some(arguments) = slot.whole_arguments
            && self.builder.call_arguments(index).is_some_and(str::is_empty)
        {
            self.builder.delta(index, &arguments, sink);
        }
        self.builder.end(index, sink);
    }

    /// A zero never replaces a count: gateways send the counters they know in one event and zeros in the other.
    fn take_usage(&mut self, usage: Option<&RawValue>) {
        let Some(wire) = json::optional::<WireUsage>(usage) else { return };
        let thinking = wire.output_tokens_details.and_then(|details| details.thinking_tokens);
        let Usage { input, output, cache_read, cache_write, reasoning, .. } =
            self.builder.usage_mut();
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
        if data.trim() == "[DONE]" {
            // Not of this format, but some gateways end every stream with it.
            return Ok(if self.ended { Progress::Ended } else { Progress::KeepAlive });
        }
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
        self.builder.start(sink);
        for (number, block) in (0_u64..).zip(&blocks) {
            self.start_block(number, block, sink);
            self.stop_block(number, sink);
        }
        self.take_usage(message.usage);
        self.stop_reason = message.stop_reason.map(|reason| stop_reason(reason.as_str()));
        self.ended = true;
        Ok(())
    }

    fn finish(&mut self, sink: EventSink<'_>) -> Result<AssistantMessage, ModelError> {
        if !self.ended {
            return Err(cut_stream());
        }
        // A call that the limit cut gets no `content_block_stop`; its arguments are taken as far as they go.
        while let Some(slot) = self.slots.first() {
            let number = slot.number;
            self.stop_block(number, sink);
        }
        if self.stop_reason.is_none() && self.builder.is_empty() {
            return Err(empty_answer());
        }
        Ok(self.builder.finish(self.stop_reason.unwrap_or(StopReason::Stop), sink))
    }

    fn builder(&self) -> &MessageBuilder<'a> {
        &self.builder
    }
}

fn stop_reason(name: &str) -> StopReason {
    match name {
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::ToolUse,
        "refusal" => StopReason::Refusal,
        // `end_turn`, `stop_sequence`, `pause_turn`, and whatever else ends an answer in peace.
        _ => StopReason::Stop,
    }
}
