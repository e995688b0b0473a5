//! What happens in a session at this moment and is not in its log: for clients that join while it works.

use std::collections::{BTreeMap, VecDeque};

use myclaw_delivery::ledger::now_ms;
use myclaw_delivery::rows::{MessageId, MessageState};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::seen::{Arriving, Seen};

/// Most bytes of text that are kept of a message that arrives, and of a tool's result.
const MOST_TEXT: usize = 1024 * 1024;
/// Most blocks of a message, and most tool calls of one step.
const MOST_PARTS: usize = 256;
/// Most messages of a session that are listed as waiting.
const MOST_WAITING: usize = 256;
/// Most reports that are kept of a session.
const MOST_REPORTS: usize = 20;

/// The state of a session's current work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Live {
    /// Messages that no run has taken, the oldest first.
    waiting: VecDeque<WaitingMessage>,
    /// The newest messages that got a report, the oldest first.
    reports: VecDeque<Report>,
    /// The current model call and the tools that it called; `None` between two runs.
    step: Option<Step>,
}

/// A message that was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitingMessage {
    pub(crate) message_id: MessageId,
    pub(crate) text: String,
    /// How many pictures it has.
    pub(crate) images: usize,
    pub(crate) accepted_at: u64,
}

/// A message that got a report instead of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(crate) message_id: MessageId,
    pub(crate) text: String,
    pub(crate) class: String,
    pub(crate) message: String,
    /// Milliseconds since the Unix epoch.
    pub(crate) ts: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    model: Option<String>,
    /// By their position in the message.
    blocks: BTreeMap<usize, Block>,
    /// Whether the message is whole, and in the log.
    is_complete: bool,
    tools: Vec<LiveTool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Block {
    Text { text: String },
    Thinking { text: String },
    ToolCall { id: String, name: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LiveTool {
    tool_call_id: String,
    tool_name: String,
    arguments: Map<String, Value>,
    /// Milliseconds since the Unix epoch.
    started_at: u64,
    /// The latest progress, or the result.
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<ToolEnd>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolEnd {
    duration_ms: u64,
    is_error: bool,
}

impl Live {
    /// Whether a new client needs it: without its session's sequence it would be lost.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.step.is_none()
    }

    /// Whether a message waits that no run has taken.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Notes an accepted message.
    pub(super) fn accepted(&mut self, message: WaitingMessage) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(message);
        }
    }

    /// Notes how a message with this text ended.
    pub(super) fn ended(&mut self, id: &MessageId, text: String, state: &MessageState) {
        match state {
            MessageState::Reported { class, message, .. } => self.reported(Report {
                message_id: id.clone(),
                text,
                class: class.clone(),
                message: message.clone(),
                ts: now_ms(),
            }),
            _ => self.answered(id),
        }
    }

    /// Notes that a message is answered.
    fn answered(&mut self, id: &MessageId) {
        self.waiting.retain(|message| message.message_id != *id);
    }

    /// Notes that a message got a report.
    pub(super) fn reported(&mut self, report: Report) {
        self.answered(&report.message_id);
        if self.reports.len() >= MOST_REPORTS {
            self.reports.pop_front();
        }
        self.reports.push_back(report);
    }

    /// Notes an event of a run.
    pub(super) fn heed(&mut self, event: Seen<'_>) {
        match event {
            Seen::RunStart => self.step = Some(Step::default()),
            Seen::RunEnd => self.step = None,
            Seen::Taken { ids } => {
                self.waiting
                    .retain(|message| !ids.iter().any(|id| *id == message.message_id.as_str()));
            }
            event => {
                if let Some(step) = &mut self.step {
                    step.heed(event);
                }
            }
        }
    }

    /// Whether a run goes on.
    pub(super) fn is_running(&self) -> bool {
        self.step.is_some()
    }

    /// Takes over what the gateway knows that has the session. Gives the messages that have an end there.
    pub(super) fn adopt(&mut self, other: Self) -> VecDeque<Report> {
        (self.step, self.waiting) = (other.step, other.waiting);
        other.reports
    }

    /// The messages that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &MessageId> {
        self.waiting.iter().map(|message| &message.message_id)
    }

    /// The text of a message that waits.
    pub(super) fn waiting_text(&self, id: &MessageId) -> Option<&str> {
        let message = self.waiting.iter().find(|message| message.message_id == *id)?;
        Some(&message.text)
    }
}

impl Step {
    fn heed(&mut self, event: Seen<'_>) {
        match event {
            Seen::LlmStart { provider, model } => {
                let model = Some(format!("{provider}/{model}"));
                *self = Self { model, ..Self::default() };
            }
            Seen::LlmStream { event } => self.arrives(event),
            Seen::LlmEnd => self.is_complete = true,
            Seen::ToolStart { tool_name, tool_call_id, arguments }
                if self.tools.len() < MOST_PARTS =>
            {
                self.tools.push(LiveTool {
                    tool_call_id: tool_call_id.into_owned(),
                    tool_name: tool_name.into_owned(),
                    arguments: arguments.into_owned(),
                    started_at: now_ms(),
                    text: String::new(),
                    end: None,
                });
            }
            Seen::ToolExecutionUpdate { tool_call_id, text } => {
                self.tool_says(&tool_call_id, &text, None);
            }
            Seen::ToolEnd { tool_call_id, duration_ms, is_error, text } => {
                self.tool_says(&tool_call_id, &text, Some(ToolEnd { duration_ms, is_error }));
            }
            _ => {}
        }
    }

    fn tool_says(&mut self, id: &str, text: &str, end: Option<ToolEnd>) {
        let tool = self.tools.iter_mut().rfind(|tool| tool.tool_call_id == id);
        if let Some(tool) = tool {
            tool.text.clear();
            append(&mut tool.text, text);
            tool.end = end;
        }
    }

    fn arrives(&mut self, event: Arriving<'_>) {
        match event {
            // Another attempt begins the message anew.
            Arriving::Start => self.blocks.clear(),
            Arriving::TextDelta { index, delta } => {
                let block = self.block(index, || Block::Text { text: String::new() });
                if let Some(Block::Text { text }) = block {
                    append(text, &delta);
                }
            }
            Arriving::ThinkingDelta { index, delta } => {
                let block = self.block(index, || Block::Thinking { text: String::new() });
                if let Some(Block::Thinking { text }) = block {
                    append(text, &delta);
                }
            }
            Arriving::ToolCallStart { index, id, name } => {
                let (id, name) = (id.into_owned(), name.into_owned());
                self.block(index, || Block::ToolCall { id, name });
            }
            Arriving::Other => {}
        }
    }

    fn block(&mut self, index: usize, new: impl FnOnce() -> Block) -> Option<&mut Block> {
        if self.blocks.len() >= MOST_PARTS && !self.blocks.contains_key(&index) {
            return None;
        }
        Some(self.blocks.entry(index).or_insert_with(new))
    }
}

/// Appends as much as there is room for.
fn append(text: &mut String, more: &str) {
    let room = MOST_TEXT.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)]);
}
