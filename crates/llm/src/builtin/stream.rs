//! Turns a planned message into stream events: text word by word, arguments in fragments, as a remote model would send
//! them. The cancellation token is checked before each event.

use tokio_util::sync::CancellationToken;

use super::fingerprint::call_id;
use super::plan::Step;
use super::request::PlannedCall;
use super::usage::{BYTES_PER_TOKEN, input_tokens, tokens_of};
use crate::{
    AssistantMessage, CallFailure, ContentBlock, EventSink, Message, ModelRequest, StopReason,
    StreamEvent, ToolCall, Usage,
};

/// Longest fragment of a call's arguments, in bytes.
const FRAGMENT: usize = 16;

/// Fewest fragments of a call's arguments.
const MIN_FRAGMENTS: usize = 3;

/// The message as far as it has been sent.
struct Arrived<'a, 'r> {
    request: &'a ModelRequest<'r>,
    content: Vec<ContentBlock>,
    /// Bytes that the output limit still allows.
    budget: usize,
    sent: usize,
}

/// Why the message ends before its last piece.
enum Stopped {
    ByCaller,
    ByLimit,
}

/// Sends the step's message to `sink` and returns it.
pub(super) async fn send(
    request: &ModelRequest<'_>,
    step: Step,
    cancel: &CancellationToken,
    sink: EventSink<'_>,
) -> Result<AssistantMessage, CallFailure> {
    let mut arrived = Arrived::new(request);
    sink(StreamEvent::Start);
    let outcome = match step {
        Step::Say(text) => arrived.text(&text, cancel, sink).await.map(|()| StopReason::Stop),
        Step::Call { lead, call } => match arrived.text(&lead, cancel, sink).await {
            Ok(()) => arrived.call(call, cancel, sink).await.map(|()| StopReason::ToolUse),
            Err(stopped) => Err(stopped),
        },
    };
    let reason = match outcome {
        Ok(reason) => reason,
        Err(Stopped::ByLimit) => StopReason::Length,
        Err(Stopped::ByCaller) => {
            sink(StreamEvent::Error {
                reason: StopReason::Aborted,
                error: "the model call was aborted".to_owned(),
            });
            return Err(CallFailure::Aborted { partial: arrived.partial() });
        }
    };
    let message = arrived.message(reason);
    sink(StreamEvent::Done { reason, message: Box::new(message.clone()) });
    Ok(message)
}

impl<'a, 'r> Arrived<'a, 'r> {
    fn new(request: &'a ModelRequest<'r>) -> Self {
        let most = request.max_output.unwrap_or(request.model.max_output);
        let budget = usize::try_from(most.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
        Self { request, content: Vec::new(), budget, sent: 0 }
    }

    async fn text(
        &mut self,
        text: &str,
        cancel: &CancellationToken,
        sink: EventSink<'_>,
    ) -> Result<(), Stopped> {
        let index = self.content.len();
        sink(StreamEvent::TextStart { index });
        for (end, word) in words(text) {
            if let Err(stopped) = self.admit(word.len(), cancel).await {
                let arrived = &text[..end - word.len()];
                if !arrived.is_empty() {
                    self.content.push(ContentBlock::text(arrived));
                }
                sink(StreamEvent::TextEnd { index });
                return Err(stopped);
            }
            sink(StreamEvent::TextDelta { index, delta: word.to_owned() });
        }
        self.content.push(ContentBlock::text(text));
        sink(StreamEvent::TextEnd { index });
        Ok(())
    }

    /// A call that is cut off is left out of the message: incomplete arguments cannot be used.
    async fn call(
        &mut self,
        call: PlannedCall,
        cancel: &CancellationToken,
        sink: EventSink<'_>,
    ) -> Result<(), Stopped> {
        let index = self.content.len();
        let id = call_id(self.request);
        sink(StreamEvent::ToolCallStart { index, id: id.clone(), name: call.tool.to_owned() });
        let arguments = serde_json::Value::Object(call.arguments.clone()).to_string();
        for fragment in fragments(&arguments) {
            self.admit(fragment.len(), cancel).await?;
            sink(StreamEvent::ToolCallDelta { index, delta: fragment.to_owned(), arguments: None });
        }
        let tool_call = ToolCall {
            id,
            name: call.tool.to_owned(),
            arguments: call.arguments,
            invalid_arguments: None,
            thought_signature: None,
        };
        sink(StreamEvent::ToolCallEnd { index, tool_call: tool_call.clone() });
        self.content.push(ContentBlock::ToolCall(tool_call));
        Ok(())
    }

    /// Lets other tasks run, so that an abort is noticed, and counts the next piece.
    async fn admit(&mut self, bytes: usize, cancel: &CancellationToken) -> Result<(), Stopped> {
        tokio::task::yield_now().await;
        if cancel.is_cancelled() {
            return Err(Stopped::ByCaller);
        }
        if self.sent + bytes > self.budget {
            return Err(Stopped::ByLimit);
        }
        self.sent += bytes;
        Ok(())
    }

    fn partial(self) -> Option<Box<AssistantMessage>> {
        if self.sent == 0 {
            return None;
        }
        let mut message = self.message(StopReason::Aborted);
        message.error_message = Some("the model call was aborted".to_owned());
        Some(Box::new(message))
    }

    fn message(self, stop_reason: StopReason) -> AssistantMessage {
        let model = self.request.model;
        let usage = Usage {
            input: input_tokens(self.request),
            output: tokens_of(self.sent),
            ..Usage::default()
        };
        AssistantMessage {
            content: self.content,
            api: model.api,
            provider: model.provider.clone(),
            model: model.id.clone(),
            usage: usage.priced(model.price),
            stop_reason,
            error_message: None,
            timestamp: last_timestamp(self.request),
        }
    }
}

/// The planner reads no clock: its message has the time of the one it answers.
fn last_timestamp(request: &ModelRequest<'_>) -> u64 {
    request.messages.as_slice().last().map_or(0, |message| match message {
        Message::User(user) => user.timestamp,
        Message::Assistant(assistant) => assistant.timestamp,
        Message::ToolResult(result) => result.timestamp,
    })
}

/// Each word with the white space after it, and the position of its end.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &text[start..];
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let length = rest[word..]
            .find(|character: char| !character.is_whitespace())
            .map_or(rest.len(), |gap| word + gap);
        start += length;
        (length > 0).then(|| (start, &rest[..length]))
    })
}

fn fragments(arguments: &str) -> impl Iterator<Item = &str> {
    let size = (arguments.len() / MIN_FRAGMENTS).clamp(1, FRAGMENT);
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &arguments[start..];
        let length = rest
            .char_indices()
            .map(|(index, character)| index + character.len_utf8())
            .find(|end| *end >= size);
        let length = length.unwrap_or(rest.len());
        start += length;
        (length > 0).then(|| &rest[..length])
    })
}
