//! Replays a stored session from its beginning.

use std::collections::BTreeMap;
use std::path::Path;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, ImageContent, MessageId, SessionUpdate,
};
use myclaw_agent::export::redact_row;
use myclaw_llm::{ContentBlock as Block, Redactor, Usage};
use myclaw_session::{Entry, EntryId, ReadSession, Role, SessionError, TranscriptMessage};
use serde::Deserialize;
use serde_json::Value;

use super::plan::shown_plan;
use super::tools::{self, Ending};

/// The totals of a session after reading it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Known {
    /// Dollars that it has cost.
    pub(super) spent: f64,
    /// Tokens of the last model call, if there was any.
    pub(super) used: Option<u64>,
}

/// Sends all messages of the session of `reader`, whose tools worked in `directory`.
///
/// # Errors
/// The log cannot be read.
pub(super) fn replay(
    reader: &dyn ReadSession,
    directory: &Path,
    mut redactor: Redactor,
    emit: impl FnMut(SessionUpdate),
) -> Result<Known, SessionError> {
    let mut replay = Replay { directory, emit, calls: BTreeMap::new(), known: Known::default() };
    for entry in reader.entries() {
        // A summary does not remove messages from the log.
        if let Entry::Message(mut row) = entry? {
            redact_row(&mut row, &mut redactor);
            replay.row(row);
        }
    }
    Ok(replay.finish())
}

struct Replay<'a, F> {
    directory: &'a Path,
    emit: F,
    /// The client's ids of the calls without a result, by the model's id.
    calls: BTreeMap<String, String>,
    known: Known,
}

/// The fields besides the text of a row that are shown.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    content_blocks: Option<Vec<Block>>,
    usage: Option<Usage>,
    is_error: bool,
    details: Option<Value>,
}

impl<F: FnMut(SessionUpdate)> Replay<'_, F> {
    fn row(&mut self, row: TranscriptMessage) {
        let kept: Kept = row.meta.as_ref().and_then(|meta| meta.read()).unwrap_or_default();
        match row.role {
            Role::System => {}
            Role::User => self.user(&row.id, blocks(row.content, kept.content_blocks)),
            Role::Assistant => {
                if let Some(usage) = kept.usage {
                    self.known.spent += usage.cost.total;
                    self.known.used = Some(usage.total_tokens).filter(|used| *used > 0);
                }
                self.assistant(&row.id, blocks(row.content, kept.content_blocks));
            }
            Role::Tool => {
                let Some(id) = row.tool_call_id.and_then(|id| self.calls.remove(&id)) else {
                    return;
                };
                let details = kept.details.as_ref();
                let ending = Ending { is_error: kept.is_error, text: &row.content, details };
                let update = tools::ended(self.directory, &id, &ending);
                (self.emit)(SessionUpdate::ToolCallUpdate(update));
                if let Some(plan) = shown_plan(details) {
                    (self.emit)(plan);
                }
            }
        }
    }

    fn user(&mut self, id: &EntryId, blocks: Vec<Block>) {
        for block in blocks {
            let content = match block {
                Block::Text(text) => ContentBlock::from(text.text),
                Block::Image(image) => {
                    ContentBlock::Image(ImageContent::new(image.data, image.mime_type))
                }
                Block::Thinking(_) | Block::ToolCall(_) => continue,
            };
            (self.emit)(SessionUpdate::UserMessageChunk(chunk(id, content)));
        }
    }

    fn assistant(&mut self, id: &EntryId, blocks: Vec<Block>) {
        for block in blocks {
            let update = match block {
                Block::Text(text) if !text.text.is_empty() => {
                    SessionUpdate::AgentMessageChunk(chunk(id, ContentBlock::from(text.text)))
                }
                Block::Thinking(thinking) if !thinking.thinking.is_empty() => {
                    let content = ContentBlock::from(thinking.thinking);
                    SessionUpdate::AgentThoughtChunk(chunk(id, content))
                }
                Block::ToolCall(call) => {
                    let shown = tools::call_id(id, &call.id);
                    let update =
                        tools::started(self.directory, &shown, &call.name, &call.arguments);
                    self.calls.insert(call.id, shown);
                    SessionUpdate::ToolCall(update)
                }
                Block::Text(_) | Block::Thinking(_) | Block::Image(_) => continue,
            };
            (self.emit)(update);
        }
    }

    /// Calls of a turn that was killed have no result yet.
    fn finish(mut self) -> Known {
        for id in std::mem::take(&mut self.calls).into_values() {
            let update = tools::given_up(&id, "interrupted");
            (self.emit)(SessionUpdate::ToolCallUpdate(update));
        }
        self.known
    }
}

fn blocks(text: String, kept: Option<Vec<Block>>) -> Vec<Block> {
    match kept {
        Some(blocks) => blocks,
        None if text.is_empty() => Vec::new(),
        None => vec![Block::text(text)],
    }
}

fn chunk(id: &EntryId, content: ContentBlock) -> ContentChunk {
    ContentChunk::new(content).message_id(MessageId::new(id.as_str()))
}
