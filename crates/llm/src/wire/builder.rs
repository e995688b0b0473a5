//! Builds an assistant message from what a wire format decodes, and reports each step.

use std::collections::HashSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::wire::{arguments, partial_arguments, tool_ids};
use crate::{
    AssistantMessage, ContentBlock, ErrorClass, EventSink, Message, Model, ModelError, Price,
    StopReason, StreamEvent, TextContent, ThinkingContent, ToolCall, Usage,
};

/// Largest answer that is kept, in bytes of its content: far above what any model writes, so only a faulty server
/// reaches it.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// What one block costs besides its text, counted against [`MAX_MESSAGE_BYTES`].
const BLOCK_BYTES: usize = 256;

/// A message under construction. A block begins with its first content, so there are no empty blocks, and an index is a
/// position in the finished content.
#[derive(Debug)]
pub(crate) struct MessageBuilder<'a> {
    /// Everything but the content.
    envelope: AssistantMessage,
    blocks: Vec<Block>,
    price: Option<Price>,
    /// The messages being answered: call ids must not repeat theirs.
    history: &'a [Message],
    content_bytes: usize,
    started: bool,
    visible: bool,
}

#[derive(Debug)]
enum Block {
    Text(TextContent),
    Thinking(ThinkingContent),
    Call { id: String, name: String, arguments: String, signature: Option<String> },
    Closed(ContentBlock),
}

impl<'a> MessageBuilder<'a> {
    pub(crate) fn new(model: &Model, history: &'a [Message], timestamp: u64) -> Self {
        Self {
            envelope: AssistantMessage {
                content: Vec::new(),
                api: model.api,
                provider: model.provider.clone(),
                model: model.id.clone(),
                usage: Usage::default(),
                stop_reason: StopReason::Stop,
                error_message: None,
                timestamp,
            },
            blocks: Vec::new(),
            price: model.price,
            history,
            content_bytes: 0,
            started: false,
            visible: false,
        }
    }

    /// The counters so far; priced when the message is finished.
    pub(crate) fn usage_mut(&mut self) -> &mut Usage {
        &mut self.envelope.usage
    }

    pub(crate) fn has_visible_output(&self) -> bool {
        self.visible
    }

    /// Whether an answer with the stop reason `reason` may be over. An empty answer may not: some gateways and older
    /// services send a normal stop reason before the first piece, or with every piece.
    pub(crate) fn may_end(&self, reason: Option<StopReason>) -> bool {
        reason.is_some_and(|reason| reason != StopReason::Stop || !self.blocks.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn has_tool_calls(&self) -> bool {
        self.blocks.iter().any(|block| {
            matches!(block, Block::Call { .. } | Block::Closed(ContentBlock::ToolCall(_)))
        })
    }

    pub(crate) fn check_size(&self) -> Result<(), ModelError> {
        if self.content_bytes > MAX_MESSAGE_BYTES {
            let message = format!("the answer is larger than {MAX_MESSAGE_BYTES} bytes");
            return Err(ModelError::new(ErrorClass::Unknown, message));
        }
        Ok(())
    }

    /// Reports that the provider began to answer; later calls do nothing.
    pub(crate) fn start(&mut self, sink: EventSink<'_>) {
        if !self.started {
            self.started = true;
            sink(StreamEvent::Start);
        }
    }

    pub(crate) fn start_text(&mut self, sink: EventSink<'_>) -> usize {
        let index = self.push(Block::Text(TextContent::default()), sink);
        sink(StreamEvent::TextStart { index });
        index
    }

    pub(crate) fn start_thinking(&mut self, sink: EventSink<'_>) -> usize {
        let index = self.push(Block::Thinking(ThinkingContent::default()), sink);
        sink(StreamEvent::ThinkingStart { index });
        index
    }

    /// Notes that `what` came, which a message cannot hold; once, however often it comes.
    pub(crate) fn add_omission(&mut self, what: &str, sink: EventSink<'_>) {
        let note = format!("[{what} omitted: only the text of an answer is kept]");
        let says_so = |block: &Block| matches!(block, Block::Closed(ContentBlock::Text(text)) if text.text == note);
        if !self.blocks.iter().any(says_so) {
            let index = self.start_text(sink);
            self.delta(index, &note, sink);
            self.end(index, sink);
        }
    }

    /// Thinking that the provider withholds; only its signature is kept.
    pub(crate) fn start_redacted_thinking(&mut self, sink: EventSink<'_>) -> usize {
        let thinking = ThinkingContent { redacted: true, ..ThinkingContent::default() };
        let index = self.push(Block::Thinking(thinking), sink);
        sink(StreamEvent::ThinkingStart { index });
        index
    }

    /// Such thinking that arrives whole.
    pub(crate) fn add_redacted_thinking(&mut self, data: &str, sink: EventSink<'_>) {
        let index = self.start_redacted_thinking(sink);
        self.add_signature(index, data);
        self.end(index, sink);
    }

    /// Begins a call. If `id` is empty or was used before, the call gets a new one.
    pub(crate) fn start_call(&mut self, id: &str, name: &str, sink: EventSink<'_>) -> usize {
        let id = self.unused_id(id);
        let call = Block::Call {
            id: id.clone(),
            name: name.to_owned(),
            arguments: String::new(),
            signature: None,
        };
        let index = self.push(call, sink);
        self.visible = true;
        sink(StreamEvent::ToolCallStart { index, id, name: name.to_owned() });
        index
    }

    /// Adds to an open block; text for any other block is dropped.
    pub(crate) fn delta(&mut self, index: usize, delta: &str, sink: EventSink<'_>) {
        if delta.is_empty() {
            return;
        }
        let event = match self.blocks.get_mut(index) {
            Some(Block::Text(block)) => {
                block.text.push_str(delta);
                StreamEvent::TextDelta { index, delta: delta.to_owned() }
            }
            Some(Block::Thinking(block)) => {
                block.thinking.push_str(delta);
                StreamEvent::ThinkingDelta { index, delta: delta.to_owned() }
            }
            Some(Block::Call { arguments, .. }) => {
                let before = arguments.len();
                arguments.push_str(delta);
                let readable = has_doubled(before, arguments.len())
                    .then(|| partial_arguments(arguments))
                    .filter(|readable| !readable.is_empty());
                StreamEvent::ToolCallDelta { index, delta: delta.to_owned(), arguments: readable }
            }
            Some(Block::Closed(_)) | None => return,
        };
        self.content_bytes += delta.len();
        self.visible = true;
        sink(event);
    }

    /// Adds to the opaque state of an open block, which may come in pieces: signatures as text, withheld thinking as
    /// bytes in Base64.
    pub(crate) fn add_signature(&mut self, index: usize, piece: &str) {
        let mut join: fn(&mut String, &str) = String::push_str;
        let signature = match self.blocks.get_mut(index) {
            Some(Block::Thinking(block)) => {
                if block.redacted {
                    join = push_base64;
                }
                &mut block.thinking_signature
            }
            Some(Block::Call { signature, .. }) => signature,
            Some(Block::Text(block)) => &mut block.text_signature,
            Some(Block::Closed(_)) | None => return,
        };
        if !piece.is_empty() {
            self.content_bytes += piece.len();
            join(signature.get_or_insert_default(), piece);
        }
    }

    /// The argument text of an open call so far.
    pub(crate) fn call_arguments(&self, index: usize) -> Option<&str> {
        match self.blocks.get(index) {
            Some(Block::Call { arguments, .. }) => Some(arguments),
            _ => None,
        }
    }

    /// Closes a block; closing it again does nothing.
    pub(crate) fn end(&mut self, index: usize, sink: EventSink<'_>) {
        let Some(block) = self.blocks.get_mut(index) else { return };
        if matches!(block, Block::Closed(_)) {
            return;
        }
        let content =
            std::mem::replace(block, Block::Closed(ContentBlock::text(""))).into_content();
        let event = match &content {
            ContentBlock::Thinking(_) => StreamEvent::ThinkingEnd { index },
            ContentBlock::ToolCall(call) => {
                StreamEvent::ToolCallEnd { index, tool_call: call.clone() }
            }
            ContentBlock::Text(_) | ContentBlock::Image(_) => StreamEvent::TextEnd { index },
        };
        *block = Block::Closed(content);
        sink(event);
    }

    /// Closes all open blocks and reports the whole message. A normal `stop_reason` need not say whether there are
    /// calls, because many servers report it wrongly.
    pub(crate) fn finish(
        &mut self,
        stop_reason: StopReason,
        sink: EventSink<'_>,
    ) -> AssistantMessage {
        let stop_reason = match stop_reason {
            StopReason::Stop | StopReason::ToolUse if self.has_tool_calls() => StopReason::ToolUse,
            StopReason::ToolUse => StopReason::Stop,
            reason => reason,
        };
        self.start(sink);
        for index in 0..self.blocks.len() {
            self.end(index, sink);
        }
        let mut message = self.envelope.clone();
        message.content =
            std::mem::take(&mut self.blocks).into_iter().map(Block::into_content).collect();
        message.usage = message.usage.priced(self.price);
        message.stop_reason = stop_reason;
        sink(StreamEvent::Done { reason: stop_reason, message: Box::new(message.clone()) });
        message
    }

    /// What has arrived so far: content, or at least counters.
    pub(crate) fn partial(&self, stop_reason: StopReason, error: &str) -> Option<AssistantMessage> {
        if self.blocks.is_empty() && self.envelope.usage == Usage::default() {
            return None;
        }
        let mut message = self.envelope.clone();
        message.content = self.blocks.iter().map(Block::content).collect();
        message.usage = message.usage.priced(self.price);
        message.stop_reason = stop_reason;
        message.error_message = Some(error.to_owned());
        Some(message)
    }

    fn push(&mut self, block: Block, sink: EventSink<'_>) -> usize {
        self.start(sink);
        self.content_bytes += BLOCK_BYTES;
        self.blocks.push(block);
        self.blocks.len() - 1
    }

    fn unused_id(&self, id: &str) -> String {
        if id.is_empty() {
            return tool_ids::made_up();
        }
        if !self.call_ids().any(|known| known == id) {
            return id.to_owned();
        }
        let known: HashSet<&str> = self.call_ids().collect();
        tool_ids::numbered(id, tool_ids::SECOND, |candidate| known.contains(candidate)).0
    }

    /// The ids of the calls in the history and in this message.
    fn call_ids(&self) -> impl Iterator<Item = &str> {
        let in_history = self.history.iter().flat_map(|message| {
            let assistant = match message {
                Message::Assistant(assistant) => Some(assistant),
                Message::User(_) | Message::ToolResult(_) => None,
            };
            assistant
                .into_iter()
                .flat_map(AssistantMessage::tool_calls)
                .map(|call| call.id.as_str())
        });
        let in_message = self.blocks.iter().filter_map(|block| match block {
            Block::Call { id, .. } => Some(id.as_str()),
            Block::Closed(ContentBlock::ToolCall(call)) => Some(call.id.as_str()),
            _ => None,
        });
        in_history.chain(in_message)
    }
}

impl Block {
    fn into_content(self) -> ContentBlock {
        match self {
            Self::Text(text) => ContentBlock::Text(text),
            Self::Thinking(thinking) => ContentBlock::Thinking(thinking),
            Self::Call { id, name, arguments, signature } => {
                ContentBlock::ToolCall(tool_call(id, name, arguments, signature))
            }
            Self::Closed(content) => content,
        }
    }

    fn content(&self) -> ContentBlock {
        match self {
            Self::Text(text) => ContentBlock::Text(text.clone()),
            Self::Thinking(thinking) => ContentBlock::Thinking(thinking.clone()),
            Self::Call { id, name, arguments, signature } => {
                let call =
                    tool_call(id.clone(), name.clone(), arguments.clone(), signature.clone());
                ContentBlock::ToolCall(call)
            }
            Self::Closed(content) => content.clone(),
        }
    }
}

/// Appends the Base64 text `piece` to `text`, which may end with padding, so that the result encodes the bytes of both.
fn push_base64(text: &mut String, piece: &str) {
    let decode = |base64: &str| BASE64_STANDARD.decode(base64).ok();
    let last_group = text.len().checked_sub(4).filter(|_| text.ends_with('='));
    let bytes = last_group.and_then(|at| {
        let mut bytes = decode(text.get(at..)?)?;
        bytes.extend(decode(piece)?);
        Some((at, bytes))
    });
    match bytes {
        Some((at, bytes)) => {
            text.truncate(at);
            BASE64_STANDARD.encode_string(bytes, text);
        }
        None => text.push_str(piece),
    }
}

fn tool_call(id: String, name: String, raw: String, thought_signature: Option<String>) -> ToolCall {
    let (arguments, invalid_arguments) = match arguments::parse(&raw) {
        Some(arguments) => (arguments, None),
        None => (serde_json::Map::new(), Some(raw)),
    };
    ToolCall { id, name, arguments, invalid_arguments, thought_signature }
}

/// Whether the arguments of a call are to be read again: their text is new, or has passed a power of two.
fn has_doubled(before: usize, now: usize) -> bool {
    before == 0 || before.ilog2() < now.ilog2()
}
