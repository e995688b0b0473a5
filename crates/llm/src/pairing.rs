//! The invariant that every provider checks: each tool call has exactly one result, directly after its message.
//!
//! [`PairedMessages`] is the only list a [`crate::ModelRequest`] takes, and its constructor repairs any list, so a
//! request that breaks pairing cannot be built.

use std::collections::{HashMap, VecDeque};

use crate::wire::tool_ids;
use crate::{AssistantMessage, ContentBlock, Message, StopReason, ToolCall, ToolResultMessage};

/// Text of the result for a call whose run was interrupted.
pub const INTERRUPTED_RESULT: &str = "[Tool result missing — session was interrupted]";

/// The id of a call that has none.
const NAMELESS_CALL: &str = "call";

/// Messages that a provider accepts: they start with a user message, each call is answered once, directly after its
/// message and in call order, call ids are unique, and each result belongs to a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairedMessages(Vec<Message>);

impl PairedMessages {
    /// Repairs `messages`. A list that is valid already stays as it is. Otherwise:
    ///
    /// - a result belongs to the nearest call before it that has its id, and moves directly after that call's message;
    ///   a second result for a call, and one for no call, are dropped;
    /// - a call without a result gets [`INTERRUPTED_RESULT`];
    /// - an id that an earlier call has is made unique, in the call and in its result. The new id depends only on the
    ///   messages before it, so a list that grows keeps its beginning;
    /// - calls of a message that failed or was aborted are dropped, with their results, and so are messages without content
    ///   and everything before the first user message.
    pub fn repair(messages: Vec<Message>) -> Self {
        let mut repair = Repair::default();
        for message in messages {
            repair.add(message);
        }
        Self(repair.into_messages())
    }

    /// The messages.
    pub fn as_slice(&self) -> &[Message] {
        &self.0
    }

    /// The messages, to add to them before the next repair.
    pub fn into_vec(self) -> Vec<Message> {
        self.0
    }
}

impl StopReason {
    /// Whether the tool calls of a message with this stop reason are kept. Those of a message that the
    /// output limit cut off are: they get a result that says why they did not run.
    pub fn keeps_tool_calls(self) -> bool {
        match self {
            Self::Stop | Self::ToolUse | Self::Length => true,
            Self::Refusal | Self::Error | Self::Aborted => false,
        }
    }

    /// Whether the tool calls of a message with this stop reason may run. A message that was cut off may hold half a
    /// call.
    pub fn runs_tool_calls(self) -> bool {
        match self {
            Self::Stop | Self::ToolUse => true,
            Self::Length | Self::Refusal | Self::Error | Self::Aborted => false,
        }
    }
}

/// A repair under way. Messages come in order; a result finds its call by the id that was last used for one.
#[derive(Default)]
struct Repair {
    turns: Vec<Turn>,
    /// The unanswered calls of the last message that used this id; empty when they are all answered or dropped.
    open_calls: HashMap<String, VecDeque<Place>>,
    /// The ids given so far, each with the number for the next call of the same id: the lower ones are taken.
    numbers: HashMap<String, u64>,
}

/// Identifies a call: its turn, and its number within the turn.
#[derive(Clone, Copy)]
struct Place {
    turn: usize,
    call: usize,
}

/// A message that stays, with a place for the result of each of its calls.
struct Turn {
    message: Message,
    results: Vec<Option<ToolResultMessage>>,
}

impl Repair {
    fn add(&mut self, message: Message) {
        match message {
            Message::User(user) if user.content.is_empty() => {}
            Message::User(_) => self.turns.push(Turn { message, results: Vec::new() }),
            Message::Assistant(assistant) => self.add_assistant(assistant),
            Message::ToolResult(result) => self.add_result(result),
        }
    }

    fn add_assistant(&mut self, mut assistant: AssistantMessage) {
        // From here on a result with such an id can only mean these calls, even those that are dropped.
        for call in assistant.tool_calls() {
            self.open_calls.insert(call.id.clone(), VecDeque::new());
        }
        if self.turns.is_empty() {
            return;
        }
        if !assistant.stop_reason.keeps_tool_calls() {
            assistant.content.retain(|block| !matches!(block, ContentBlock::ToolCall(_)));
        }
        if assistant.content.is_empty() {
            return;
        }
        let turn = self.turns.len();
        let calls = assistant.content.iter_mut().filter_map(|block| match block {
            ContentBlock::ToolCall(call) => Some(call),
            _ => None,
        });
        let mut results = Vec::new();
        for (position, call) in calls.enumerate() {
            results.push(None);
            self.open_calls
                .entry(call.id.clone())
                .or_default()
                .push_back(Place { turn, call: position });
            if call.id.is_empty() {
                call.id = NAMELESS_CALL.to_owned();
            }
            if let Some(&first) = self.numbers.get(&call.id) {
                let (renamed, number) =
                    tool_ids::numbered(&call.id, first, |id| self.numbers.contains_key(id));
                let used = std::mem::replace(&mut call.id, renamed);
                self.numbers.insert(used, number + 1);
            }
            self.numbers.insert(call.id.clone(), tool_ids::SECOND);
        }
        self.turns.push(Turn { message: Message::Assistant(assistant), results });
    }

    fn add_result(&mut self, result: ToolResultMessage) {
        let open = self.open_calls.get_mut(&result.tool_call_id).and_then(VecDeque::pop_front);
        if let Some(Place { turn, call }) = open {
            self.turns[turn].results[call] = Some(result);
        }
    }

    fn into_messages(self) -> Vec<Message> {
        let mut messages =
            Vec::with_capacity(self.turns.iter().map(|turn| 1 + turn.results.len()).sum());
        for Turn { message, results } in self.turns {
            let answers: Vec<Message> = match &message {
                Message::Assistant(assistant) => assistant
                    .tool_calls()
                    .zip(results)
                    .map(|(call, result)| {
                        Message::ToolResult(answer(call, result, assistant.timestamp))
                    })
                    .collect(),
                Message::User(_) | Message::ToolResult(_) => Vec::new(),
            };
            messages.push(message);
            messages.extend(answers);
        }
        messages
    }
}

/// The result of `call`, under the id that the call has now.
fn answer(call: &ToolCall, result: Option<ToolResultMessage>, timestamp: u64) -> ToolResultMessage {
    match result {
        Some(result) => ToolResultMessage { tool_call_id: call.id.clone(), ..result },
        None => ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![ContentBlock::text(INTERRUPTED_RESULT)],
            is_error: true,
            details: None,
            timestamp,
        },
    }
}

#[cfg(test)]
mod tests;
