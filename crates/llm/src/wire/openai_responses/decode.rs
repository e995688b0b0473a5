//! The answer in the Responses format.
//!
//! Items grow side by side, identified by their place in the output. A stream sends everything in pieces, and repeats
//! it when a part, an item and the whole response are done. Some servers send only the latter, so it is used where no
//! pieces came.

use serde_json::value::RawValue;

use super::event::{
    Event, Extent, ItemIds, Kind, Piece, Place, Prose, WireItem, WirePart, WireResponse, WireUsage,
    text,
};
use super::slots::Slots;
use crate::wire::json;
use crate::wire::{FormatDecoder, MessageBuilder, Progress, cut_stream};
use crate::{AssistantMessage, EventSink, ModelError, StopReason, classify};

/// Separates two parts of reasoning, which are paragraphs with titles.
const PARAGRAPH: &str = "\n\n";

/// Reads one answer.
#[derive(Debug)]
pub struct Decoder<'a> {
    builder: MessageBuilder<'a>,
    /// The items so far, closed ones too: the end of the stream repeats them.
    slots: Slots,
    item_ids: ItemIds,
    stop_reason: Option<StopReason>,
    refused: bool,
    ended: bool,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(builder: MessageBuilder<'a>) -> Self {
        Self {
            builder,
            slots: Slots::default(),
            item_ids: ItemIds::Kept,
            stop_reason: None,
            refused: false,
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
        let kind = event.kind.as_deref().filter(|kind| !kind.is_empty()).unwrap_or(event_name);
        match kind.strip_prefix("response.") {
            Some("created") => self.builder.start(sink),
            Some("output_item.added") => {
                if let Some(item) = &event.item {
                    self.open_item(event.item_place(), item, sink)?;
                }
            }
            Some("output_item.done") => {
                if let Some(item) = &event.item {
                    self.close_item(event.item_place(), item, sink)?;
                }
            }
            Some("function_call_arguments.delta") => {
                self.append_arguments(event.place(), text(&event.delta), Extent::Delta, sink);
            }
            Some("function_call_arguments.done") => {
                self.append_arguments(event.place(), text(&event.arguments), Extent::Whole, sink);
            }
            Some(name @ ("completed" | "incomplete" | "failed" | "cancelled" | "done")) => {
                if let Some(response) = &event.response {
                    self.take_response(response, name, sink)?;
                }
                self.ended = true;
                return Ok(Progress::Ended);
            }
            Some(name) => {
                let Some(piece) = event.piece(name) else { return Ok(Progress::KeepAlive) };
                self.refused |= name.starts_with("refusal.");
                self.append(event.place(), piece, sink)?;
            }
            None if kind == "error" || json::is_present(event.error) => {
                return Err(event.failure(data));
            }
            None => return Ok(Progress::KeepAlive),
        }
        Ok(Progress::Advanced)
    }

    fn append(
        &mut self,
        place: Place<'_>,
        piece: Piece<'_>,
        sink: EventSink<'_>,
    ) -> Result<(), ModelError> {
        if piece.text.is_empty() {
            return Ok(());
        }
        let kind = match piece.prose {
            Prose::Text => Kind::Message,
            Prose::Summary | Prose::Reasoning => Kind::Reasoning,
        };
        let Some(slot) = self.slots.open(place, kind)? else { return Ok(()) };
        let is_new_part = piece.part >= slot.next_part;
        let is_known = piece.extent == Extent::Whole && !is_new_part;
        if is_known || *slot.prose.get_or_insert(piece.prose) != piece.prose {
            return Ok(());
        }
        let begins_paragraph = kind == Kind::Reasoning && is_new_part && slot.next_part > 0;
        slot.next_part = slot.next_part.max(piece.part.saturating_add(1));
        let index = match slot.index {
            Some(index) => index,
            None => {
                let index = match kind {
                    Kind::Reasoning => self.builder.start_thinking(sink),
                    Kind::Message | Kind::Call => self.builder.start_text(sink),
                };
                slot.index = Some(index);
                index
            }
        };
        if begins_paragraph {
            self.builder.delta(index, PARAGRAPH, sink);
        }
        self.builder.delta(index, piece.text, sink);
        Ok(())
    }

    fn append_arguments(
        &mut self,
        place: Place<'_>,
        arguments: &str,
        extent: Extent,
        sink: EventSink<'_>,
    ) {
        // A call needs a name; the finished item brings it.
        let Some(index) = self.slots.call(place).and_then(|slot| slot.index) else { return };
        match extent {
            Extent::Delta => self.builder.delta(index, arguments, sink),
            Extent::Whole => self.complete_arguments(index, arguments, sink),
        }
    }

    /// Sets the whole arguments of a call that has none yet.
    fn complete_arguments(&mut self, index: usize, arguments: &str, sink: EventSink<'_>) {
        if self.builder.call_arguments(index).is_some_and(str::is_empty) {
            self.builder.delta(index, arguments, sink);
        }
    }

    fn open_item(
        &mut self,
        place: Place<'_>,
        item: &WireItem<'_>,
        sink: EventSink<'_>,
    ) -> Result<(), ModelError> {
        self.builder.start(sink);
        let Some(kind) = item.kind() else { return Ok(()) };
        let Some(slot) = self.slots.open(place, kind)? else { return Ok(()) };
        let name = text(&item.name);
        if kind == Kind::Call && slot.index.is_none() && !name.is_empty() {
            let call_id = Some(text(&item.call_id)).filter(|id| !id.is_empty()).unwrap_or(place.id);
            let index = self.builder.start_call(call_id, name, sink);
            slot.index = Some(index);
            slot.first_arguments =
                item.arguments.map(json::fragment).unwrap_or_default().into_owned();
            if self.item_ids == ItemIds::Kept {
                self.builder.add_signature(index, text(&item.id));
            }
        }
        Ok(())
    }

    fn close_item(
        &mut self,
        place: Place<'_>,
        item: &WireItem<'_>,
        sink: EventSink<'_>,
    ) -> Result<(), ModelError> {
        self.open_item(place, item, sink)?;
        if item.is_image() {
            self.builder.add_omission("image", sink);
        }
        let Some(kind) = item.kind() else { return Ok(()) };
        for list in [item.summary, item.content] {
            let parts: Vec<WirePart<'_>> = json::optional(list).unwrap_or_default();
            for (number, part) in (0..).zip(&parts) {
                self.refused |= part.is_refusal();
                if let Some(piece) = part.piece(number) {
                    self.append(place, piece, sink)?;
                }
            }
        }
        if let Some(arguments) = item.arguments {
            self.append_arguments(place, &json::fragment(arguments), Extent::Whole, sink);
        }
        let Some(slot) = self.slots.open(place, kind)? else { return Ok(()) };
        slot.closed = true;
        let first_arguments = std::mem::take(&mut slot.first_arguments);
        let state = match kind {
            Kind::Message => item.message_state(self.item_ids),
            Kind::Reasoning => item.reasoning_state(),
            Kind::Call => None,
        };
        if kind == Kind::Reasoning && state.is_none() {
            self.item_ids = ItemIds::Dropped;
        }
        match (slot.index, state) {
            (Some(index), state) => {
                self.complete_arguments(index, &first_arguments, sink);
                self.builder.add_signature(index, &state.unwrap_or_default());
                self.builder.end(index, sink);
            }
            (None, Some(state)) if kind == Kind::Reasoning => {
                self.builder.add_redacted_thinking(&state, sink);
            }
            (None, _) => {}
        }
        Ok(())
    }

    /// Takes the final response. `ending` says how it ended if the response itself does not.
    fn take_response(
        &mut self,
        response: &WireResponse<'_>,
        ending: &str,
        sink: EventSink<'_>,
    ) -> Result<(), ModelError> {
        self.take_usage(response.usage);
        let incomplete = response.incomplete_details.as_ref();
        match response.status.as_deref().unwrap_or(ending) {
            "failed" | "cancelled" => return Err(response.failure()),
            "incomplete" => {
                let reason = incomplete.and_then(|details| details.reason.as_deref());
                self.stop_reason = Some(match reason {
                    Some("content_filter") => StopReason::Refusal,
                    // `max_output_tokens`, or any other cut; calls of such an answer must not be run.
                    _ => StopReason::Length,
                });
            }
            _ => {}
        }
        self.builder.start(sink);
        for (number, item) in (0..).zip(response.output.iter().flatten()) {
            self.close_item(self.slots.place(text(&item.id), number), item, sink)?;
        }
        Ok(())
    }

    fn take_usage(&mut self, usage: Option<&RawValue>) {
        if let Some(usage) = json::optional::<WireUsage>(usage) {
            usage.counters().store(self.builder.usage_mut());
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
        let response: WireResponse<'_> = json::parse(body, &mut repaired)?;
        if response.output.is_none() {
            return Err(classify::stream_error(body));
        }
        self.take_response(&response, "completed", sink)?;
        self.ended = true;
        Ok(())
    }

    fn finish(&mut self, sink: EventSink<'_>) -> Result<AssistantMessage, ModelError> {
        if !self.ended {
            return Err(cut_stream());
        }
        for (index, arguments) in std::mem::take(&mut self.slots).open_calls() {
            self.complete_arguments(index, arguments, sink);
        }
        let reason = match self.stop_reason {
            Some(reason) => reason,
            None if self.refused && !self.builder.has_tool_calls() => StopReason::Refusal,
            None => StopReason::Stop,
        };
        Ok(self.builder.finish(reason, sink))
    }

    fn builder(&self) -> &MessageBuilder<'a> {
        &self.builder
    }
}
