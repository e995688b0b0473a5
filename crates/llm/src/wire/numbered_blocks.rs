//! An answer whose server numbers its blocks, as in the Messages format and in the Converse format, which follows it: a
//! block may be announced, grows by deltas that name its number, and is stopped. Gateways leave out the announcement or
//! the stop.

use serde_json::value::RawValue;

use super::{MessageBuilder, WINDOW_EXCEEDED, failed_ending};
use crate::{AssistantMessage, ErrorClass, EventSink, ModelError, StopReason};

/// What a delta adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
    RedactedThinking,
    Call,
}

/// The message of such an answer.
#[derive(Debug)]
pub(super) struct NumberedBlocks<'a> {
    pub(super) message: MessageBuilder<'a>,
    /// In the order in which they were opened.
    open: Vec<OpenBlock>,
    stop_reason: Option<StopReason>,
    window_exceeded: bool,
}

/// A block that was not stopped yet.
#[derive(Debug)]
struct OpenBlock {
    number: u64,
    /// Its kind and its position in the message; `None` for an unused block, whose deltas are dropped.
    kept: Option<(Kind, usize)>,
    /// The arguments that a call was announced with, used if no pieces of them follow.
    announced_arguments: String,
}

impl<'a> NumberedBlocks<'a> {
    pub(super) fn new(message: MessageBuilder<'a>) -> Self {
        Self { message, open: Vec::new(), stop_reason: None, window_exceeded: false }
    }

    /// Takes the stop reason that the server calls `word`.
    pub(super) fn take_stop_reason(&mut self, word: &str, reason: StopReason) {
        self.window_exceeded = word == WINDOW_EXCEEDED;
        self.stop_reason = Some(reason);
    }

    pub(super) fn stop_reason(&self) -> Option<StopReason> {
        self.stop_reason
    }

    /// Opens the block of a call. `arguments` are used if none follow in pieces.
    pub(super) fn start_call(
        &mut self,
        number: u64,
        (id, name): (&str, &str),
        arguments: Option<&RawValue>,
        sink: EventSink<'_>,
    ) {
        self.stop(number, sink);
        // Without a name there is nothing to call.
        let kept =
            (!name.is_empty()).then(|| (Kind::Call, self.message.start_call(id, name, sink)));
        let announced = arguments.map(RawValue::get).filter(|&json| json != "{}" && json != "null");
        let announced_arguments = announced.unwrap_or_default().to_owned();
        self.open.push(OpenBlock { number, kept, announced_arguments });
    }

    /// Opens an unused block.
    pub(super) fn pass_over(&mut self, number: u64, sink: EventSink<'_>) {
        self.stop(number, sink);
        self.open.push(OpenBlock { number, kept: None, announced_arguments: String::new() });
    }

    /// Adds to the block with that number. If there is no such block, this delta begins one. A call must have been
    /// announced, because it needs a name.
    pub(super) fn append(&mut self, number: u64, kind: Kind, text: &str, sink: EventSink<'_>) {
        if !text.is_empty()
            && let Some(index) = self.open_index(number, kind, sink)
        {
            self.message.delta(index, text, sink);
        }
    }

    /// Adds to the signature of the thinking with that number.
    pub(super) fn append_signature(&mut self, number: u64, piece: &str, sink: EventSink<'_>) {
        if !piece.is_empty()
            && let Some(index) = self.open_index(number, Kind::Thinking, sink)
        {
            self.message.add_signature(index, piece);
        }
    }

    /// Adds to the withheld thinking with that number.
    pub(super) fn append_redacted(&mut self, number: u64, data: &str, sink: EventSink<'_>) {
        if !data.is_empty()
            && let Some(index) = self.open_index(number, Kind::RedactedThinking, sink)
        {
            self.message.add_signature(index, data);
        }
    }

    fn open_index(&mut self, number: u64, kind: Kind, sink: EventSink<'_>) -> Option<usize> {
        if let Some(block) = self.open.iter().find(|block| block.number == number) {
            let (open_kind, index) = block.kept?;
            if open_kind == kind {
                return Some(index);
            }
        }
        let start = match kind {
            Kind::Text => MessageBuilder::start_text,
            Kind::Thinking => MessageBuilder::start_thinking,
            Kind::RedactedThinking => MessageBuilder::start_redacted_thinking,
            Kind::Call => return None,
        };
        self.stop(number, sink);
        let index = start(&mut self.message, sink);
        let kept = Some((kind, index));
        self.open.push(OpenBlock { number, kept, announced_arguments: String::new() });
        Some(index)
    }

    /// Closes the block with that number, if it is open.
    pub(super) fn stop(&mut self, number: u64, sink: EventSink<'_>) {
        if let Some(position) = self.open.iter().position(|block| block.number == number) {
            let block = self.open.remove(position);
            self.close(&block, sink);
        }
    }

    /// Closes the message, and what the server did not stop, such as a call that the output limit cut.
    ///
    /// # Errors
    /// The window of the model was full before anything arrived. An answer that was begun is one that was cut.
    pub(super) fn finish(&mut self, sink: EventSink<'_>) -> Result<AssistantMessage, ModelError> {
        for block in std::mem::take(&mut self.open) {
            self.close(&block, sink);
        }
        if self.window_exceeded && self.message.is_empty() {
            return Err(failed_ending(ErrorClass::ContextOverflow, WINDOW_EXCEEDED));
        }
        Ok(self.message.finish(self.stop_reason.unwrap_or(StopReason::Stop), sink))
    }

    fn close(&mut self, block: &OpenBlock, sink: EventSink<'_>) {
        let Some((_, index)) = block.kept else { return };
        if self.message.call_arguments(index).is_some_and(str::is_empty) {
            self.message.delta(index, &block.announced_arguments, sink);
        }
        self.message.end(index, sink);
    }
}

#[cfg(test)]
mod tests;
