//! The answer in the Chat Completions format.
//!
//! Hosts follow it loosely: calls come in pieces or whole, with or without ids and numbers, several at once; the
//! counters come in a chunk without choices, in the last choice, or not at all; some send no finish reason and some
//! no `[DONE]`. One of the last two must come, or the stream was cut.

use serde_json::value::RawValue;

use crate::wire::compat::{Compat, InlineThinking, ReasoningField, ReasoningReplay};
use crate::wire::json;
use crate::wire::{
    FormatDecoder, MessageBuilder, Progress, cut_stream, empty_answer, failed_ending,
};
use crate::{AssistantMessage, ErrorClass, EventSink, ModelError, StopReason, classify};

use super::chunk::{Choice, Chunk, Delta, WireCall, WireUsage};
use super::content::{Content, Prose};
use super::details::ReasoningDetails;
use super::ending::{Ending, ending};
use super::extent::Extent;
use super::think::ThinkTags;

/// Reads one answer.
#[derive(Debug)]
pub struct Decoder<'a> {
    builder: MessageBuilder<'a>,
    reasoning_fields: &'static [ReasoningField],
    /// For hosts that leave reasoning in the text.
    tags: Option<ThinkTags>,
    /// For hosts that want their reasoning back.
    details: Option<ReasoningDetails>,
    /// The text or thinking block that is open.
    prose: Option<(Prose, usize)>,
    calls: Vec<OpenCall>,
    stop_reason: Option<StopReason>,
    refused: bool,
    has_deltas: bool,
    /// The number of the answer that is read. Only one is requested, but some hosts send more.
    choice: Option<u64>,
    done: bool,
}

/// A call that may still grow.
#[derive(Debug)]
struct OpenCall {
    /// The provider's number, where it sends one.
    number: Option<u64>,
    /// The provider's id; empty where it sends none.
    id: String,
    /// Position in the message.
    index: usize,
    /// Whether its arguments are a whole object, as far as that was checked.
    extent: Extent,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(builder: MessageBuilder<'a>, compat: &Compat) -> Self {
        Self {
            builder,
            reasoning_fields: compat.reasoning_fields,
            tags: (compat.inline_thinking == InlineThinking::Tagged).then(ThinkTags::new),
            details: (compat.reasoning_replay == ReasoningReplay::Details)
                .then(ReasoningDetails::default),
            prose: None,
            calls: Vec::new(),
            stop_reason: None,
            refused: false,
            has_deltas: false,
            choice: None,
            done: false,
        }
    }

    fn take(
        &mut self,
        chunk: &Chunk<'_>,
        data: &str,
        sink: EventSink<'_>,
    ) -> Result<Progress, ModelError> {
        if json::is_present(chunk.error) {
            return Err(classify::stream_error(data));
        }
        let mut progress = Progress::KeepAlive;
        if json::is_present(chunk.usage) {
            self.take_usage(chunk.usage);
            progress = Progress::Advanced;
        }
        let Some(choice) = self.choice_of(chunk) else {
            return Ok(self.completed_or(progress));
        };
        self.take_usage(choice.usage);
        if let Some(error) = choice.error.filter(|_| json::is_present(choice.error)) {
            return Err(classify::stream_error(error.get()));
        }
        // An empty delta may come with a whole message, which is the answer then. A whole message after the deltas
        // (MiniMax) repeats them.
        let delta = choice.delta.as_ref();
        let says_something = delta.is_some_and(|delta| !delta.is_empty());
        self.has_deltas |= says_something;
        let whole = choice.message.as_deref().filter(|_| !self.has_deltas);
        let has_more = match delta.filter(|_| says_something).or(whole).or(delta) {
            Some(delta) => self.take_delta(delta, sink),
            None => false,
        };
        if has_more {
            progress = Progress::Advanced;
        }
        match json::text(&choice.finish_reason) {
            "" if has_more => return Ok(progress),
            "" => {}
            reason => self.take_ending(reason, choice, sink)?,
        }
        Ok(self.completed_or(progress))
    }

    /// The piece of the answer that is read: the one whose number came first.
    fn choice_of<'c, 'd>(&mut self, chunk: &'c Chunk<'d>) -> Option<&'c Choice<'d>> {
        let number = |choice: &Choice<'_>| choice.index.unwrap_or(0);
        let choices = chunk.choices.as_deref()?;
        let wanted = *self.choice.get_or_insert(number(choices.first()?));
        choices.iter().find(|choice| number(choice) == wanted)
    }

    fn take_ending(
        &mut self,
        reason: &str,
        choice: &Choice<'_>,
        sink: EventSink<'_>,
    ) -> Result<(), ModelError> {
        let reason = self.telling_reason(reason, choice);
        self.stop_reason = Some(match ending(reason) {
            Ending::Stop(reason) => reason,
            // If anything arrived, it is an answer that was cut; otherwise it is a failure.
            Ending::Failure(ErrorClass::ContextOverflow) if !self.builder.is_empty() => {
                StopReason::Length
            }
            Ending::Failure(class) => return Err(failed_ending(class, reason)),
        });
        self.builder.start(sink);
        Ok(())
    }

    /// The finish reason that applies: that of the host behind a gateway if it is a failure and nothing arrived.
    fn telling_reason<'r>(&self, reason: &'r str, choice: &'r Choice<'_>) -> &'r str {
        let native = choice.native_finish_reason.as_deref().filter(|_| self.builder.is_empty());
        native.filter(|native| matches!(ending(native), Ending::Failure(_))).unwrap_or(reason)
    }

    fn completed_or(&self, progress: Progress) -> Progress {
        if self.builder.may_end(self.stop_reason) { Progress::Complete } else { progress }
    }

    /// Takes one piece; returns whether it held anything.
    fn take_delta(&mut self, delta: &Delta<'_>, sink: EventSink<'_>) -> bool {
        let mut advanced = false;
        if delta.role.is_some() && self.builder.is_empty() {
            self.builder.start(sink);
            advanced = true;
        }
        let reasoning = self.reasoning_fields.iter().find_map(|field| {
            let text = match field {
                ReasoningField::ReasoningContent => &delta.reasoning_content,
                ReasoningField::Reasoning => &delta.reasoning,
                ReasoningField::ReasoningText => &delta.reasoning_text,
            };
            text.as_deref().filter(|text| !text.is_empty())
        });
        if let Some(text) = reasoning {
            self.append(Prose::Thinking, text, sink);
            advanced = true;
        }
        if let Some(details) = &mut self.details
            && let Some(more) = json::optional(delta.reasoning_details)
        {
            details.add(more);
            advanced = true;
        }
        if let Some(content) = &delta.content {
            advanced |= self.take_content(content, sink);
        }
        if delta.has_images() {
            self.release_text(sink);
            self.close_prose(sink);
            self.store_details(sink);
            self.builder.add_omission("image", sink);
            advanced = true;
        }
        if let Some(refusal) = delta.refusal.as_ref().filter(|text| !text.as_str().is_empty()) {
            self.refused = true;
            self.append(Prose::Text, refusal.as_str(), sink);
            advanced = true;
        }
        for call in delta.tool_calls.iter().flatten() {
            self.take_call(call, sink);
            advanced = true;
        }
        advanced
    }

    /// Takes text and thinking; returns whether there was any.
    fn take_content(&mut self, content: &Content<'_>, sink: EventSink<'_>) -> bool {
        let mut advanced = false;
        let mut tags = self.tags.take();
        content.for_each(&mut |prose, text| {
            advanced |= !text.is_empty();
            match (&mut tags, prose) {
                (Some(tags), Prose::Text) => {
                    tags.feed(text, &mut |prose, text| self.append(prose, text, sink));
                }
                _ => self.append(prose, text, sink),
            }
        });
        self.tags = tags;
        advanced
    }

    fn append(&mut self, prose: Prose, text: &str, sink: EventSink<'_>) {
        if text.is_empty() {
            return;
        }
        let index = match self.prose {
            Some((open, index)) if open == prose => index,
            _ => {
                self.close_prose(sink);
                if prose == Prose::Text {
                    self.store_details(sink);
                }
                let index = match prose {
                    Prose::Text => self.builder.start_text(sink),
                    Prose::Thinking => self.builder.start_thinking(sink),
                };
                self.prose = Some((prose, index));
                index
            }
        };
        self.builder.delta(index, text, sink);
    }

    fn close_prose(&mut self, sink: EventSink<'_>) {
        if let Some((prose, index)) = self.prose.take() {
            if prose == Prose::Thinking
                && let Some(details) = self.details.as_mut().and_then(ReasoningDetails::take)
            {
                self.builder.add_signature(index, &details);
            }
            self.builder.end(index, sink);
        }
    }

    /// Keeps details that belong to no readable thinking, such as an encrypted part alone.
    fn store_details(&mut self, sink: EventSink<'_>) {
        if let Some(details) = self.details.as_mut().and_then(ReasoningDetails::take) {
            self.builder.add_redacted_thinking(&details, sink);
        }
    }

    /// Passes on text that was held back as the possible beginning of a tag.
    fn release_text(&mut self, sink: EventSink<'_>) {
        if let Some(mut tags) = self.tags.take() {
            tags.finish(&mut |prose, text| self.append(prose, text, sink));
        }
    }

    fn take_call(&mut self, wire: &WireCall<'_>, sink: EventSink<'_>) {
        let function = wire.function.as_ref();
        let name = function.map_or("", |function| json::text(&function.name));
        let id = wire.id.as_deref().unwrap_or_default();
        let index = match self.find_call(wire.index, id, name) {
            Some(index) => index,
            // A piece of a call that never began: without a name there is no call.
            None if name.is_empty() => return,
            None => {
                self.release_text(sink);
                self.close_prose(sink);
                self.store_details(sink);
                let index = self.builder.start_call(id, name, sink);
                self.calls.push(OpenCall {
                    number: wire.index,
                    id: id.to_owned(),
                    index,
                    extent: Extent::default(),
                });
                index
            }
        };
        if let Some(arguments) = function.and_then(|function| function.arguments) {
            self.builder.delta(index, &json::fragment(arguments), sink);
        }
        self.builder.add_signature(index, wire.signature());
    }

    /// The call that a piece belongs to, or `None` if it begins one. A new id begins a call even if its number is the
    /// same, because some hosts number every call 0. A name without an id begins one when the call of that number has a
    /// whole object already. Without a name nothing begins.
    fn find_call(&mut self, number: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let with_id = self.calls.iter().rposition(|call| !id.is_empty() && call.id == id);
        let last = self.calls.len().checked_sub(1);
        let numbered = self.calls.iter().rposition(|call| call.number == number);
        let candidate = match number {
            Some(_) if numbered.is_some() => numbered,
            // Some hosts count their pieces, not their calls. Without a name nothing begins.
            Some(_) if name.is_empty() => with_id.or(last),
            Some(_) => with_id.filter(|&position| !self.is_whole(position)),
            None if id.is_empty() => last,
            None => with_id.or(last.filter(|_| name.is_empty())),
        }?;
        let known = &self.calls[candidate];
        let begins = match (id.is_empty(), known.id.is_empty()) {
            (false, false) => id != known.id,
            _ if name.is_empty() => false,
            _ => self.is_whole(candidate),
        };
        let known = if begins { with_id } else { Some(candidate) };
        known.or(name.is_empty().then_some(candidate)).map(|position| self.calls[position].index)
    }

    /// Whether the arguments of the call at this position are a whole object.
    fn is_whole(&mut self, position: usize) -> bool {
        let call = &mut self.calls[position];
        let text = self.builder.call_arguments(call.index);
        text.is_some_and(|text| call.extent.is_whole(text))
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
        if event_name == "error" {
            return Err(classify::stream_error(data));
        }
        let mut repaired = String::new();
        self.take(&json::parse(data, &mut repaired)?, data, sink)
    }

    fn feed_end_marker(&mut self) -> Progress {
        self.done = true;
        Progress::Ended
    }

    fn feed_whole(&mut self, body: &str, sink: EventSink<'_>) -> Result<(), ModelError> {
        let mut repaired = String::new();
        let chunk: Chunk<'_> = json::parse(body, &mut repaired)?;
        if chunk.choices.as_ref().is_none_or(Vec::is_empty) {
            return Err(classify::stream_error(body));
        }
        self.take(&chunk, body, sink)?;
        self.done = true;
        Ok(())
    }

    fn finish(&mut self, sink: EventSink<'_>) -> Result<AssistantMessage, ModelError> {
        if self.done || self.stop_reason.is_some() {
            self.release_text(sink);
            self.close_prose(sink);
            self.store_details(sink);
        }
        let reason = match self.stop_reason {
            None if !self.done => return Err(cut_stream()),
            None if self.builder.is_empty() => return Err(empty_answer()),
            _ if self.refused && !self.builder.has_tool_calls() => StopReason::Refusal,
            reason => reason.unwrap_or(StopReason::Stop),
        };
        Ok(self.builder.finish(reason, sink))
    }

    fn builder(&self) -> &MessageBuilder<'a> {
        &self.builder
    }
}
