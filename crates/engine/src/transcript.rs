//! Conversion between the rows of a session's log and the messages of a model request.

use std::borrow::Cow;

use jiff::Timestamp;
use myclaw_llm::outside::{
    COMMAND_TOOLS, change_texts, harmless, harmless_command_result, harmless_message,
    harmless_result,
};
use myclaw_llm::{
    Api, AssistantMessage, ContentBlock, Message, StopReason, TextContent, ToolResultMessage,
    Usage, UserMessage, joined_text,
};
use myclaw_session::{EntryId, Meta, Role, TAKEN_IDS, TranscriptMessage};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::Mode;
use crate::program::deciding_details;

/// Field of a user row's meta: the program's remark that the message before it is no answer.
pub(crate) const CORRECTION: &str = "correction";

/// The row's message as a model sees it; `None` for rows that no model sees.
///
/// Text from outside is made harmless here, once per row, and nowhere else: the row has the bytes as they are. A user message is annotated with the time at which it was sent. The time comes from the row, so the message has the
/// same bytes in every request of the session.
pub(crate) fn row_to_message(row: TranscriptMessage) -> Option<Message> {
    let meta: StoredMeta<'_> = row.meta.as_ref().and_then(Meta::read).unwrap_or_default();
    match row.role {
        Role::System => None,
        Role::User => Some(Message::User(UserMessage {
            content: {
                let mut content = meta.content(row.content);
                change_texts(&mut content, harmless_message);
                unless_blank(content)
            },
            annotation: Some(annotation(row.ts, read(meta.mode))),
            timestamp: row.ts,
        })),
        Role::Assistant => Some(Message::Assistant(AssistantMessage {
            api: read(meta.api).unwrap_or(Api::AnthropicMessages),
            provider: read(meta.provider).unwrap_or_else(|| "anthropic".to_owned()),
            model: read(meta.model).unwrap_or_else(|| "unknown".to_owned()),
            usage: read::<Usage>(meta.usage).unwrap_or_default(),
            stop_reason: read(meta.stop_reason).unwrap_or(StopReason::Stop),
            error_message: read(meta.error_message),
            content: {
                let mut content = meta.content(row.content);
                change_texts(&mut content, own_words);
                content
            },
            timestamp: row.ts,
        })),
        Role::Tool => {
            let tool_name: String = read(meta.tool_name).unwrap_or_default();
            Some(Message::ToolResult(ToolResultMessage {
                tool_call_id: row.tool_call_id?,
                is_error: read(meta.is_error).unwrap_or(false),
                content: shown_result(&tool_name, meta.content(row.content)),
                tool_name,
                details: deciding_details(read(meta.details)),
                timestamp: row.ts,
            }))
        }
    }
}

/// What a model has said, as a model sees it: another one may read it, to which its marks mean something else, and it may
/// repeat what it was told. A text with a signature must come back to its provider as it was.
fn own_words(content: &TextContent) -> Cow<'_, str> {
    match content.text_signature {
        None => harmless(&content.text),
        Some(_) => Cow::Borrowed(&content.text),
    }
}

/// The content of a tool's result as a model sees it. All of it is from outside: files, pages, what commands print. Only the
/// remarks behind it are the engine's.
pub(crate) fn shown_result(tool: &str, mut content: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let remarks = content.iter().skip(1).rev().take_while(|block| is_remark(block)).count();
    let of_tool = content.len() - remarks;
    let change: fn(&TextContent) -> Cow<'_, str> = match COMMAND_TOOLS.contains(&tool) {
        true => |content| harmless_command_result(&content.text),
        false => |content| harmless_result(&content.text),
    };
    change_texts(&mut content[..of_tool], change);
    content
}

/// How the engine's remarks about a result begin.
pub(crate) const REMARKS: [&str; 2] = ["[truncated ", "[This call has now given "];

/// Whether a block that is not the first of a result is a remark of the engine.
fn is_remark(block: &ContentBlock) -> bool {
    let ContentBlock::Text(TextContent { text, .. }) = block else { return false };
    REMARKS.iter().any(|beginning| text.starts_with(beginning))
        && text.ends_with(']')
        && !text.contains('\n')
}

/// Replaces empty content. A message without content would be left out of the request, and the request could then begin
/// with a message of the model.
fn unless_blank(content: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let is_blank = |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if text.text.trim().is_empty());
    if content.iter().all(is_blank) {
        return vec![ContentBlock::text("[empty message]")];
    }
    content
}

/// The blocks of a user message that was stored as `text` and `meta`.
pub(crate) fn row_to_blocks(text: String, meta: Option<&Meta>) -> Vec<ContentBlock> {
    meta.and_then(Meta::read::<StoredMeta<'_>>).unwrap_or_default().content(text)
}

/// Builds the row that takes waiting messages in: `message` with their ids.
pub(crate) fn taken_row(message: UserMessage, ids: &[EntryId]) -> TranscriptMessage {
    with_meta(message_to_row(&Message::User(message)), TAKEN_IDS, json!(ids))
}

/// The waiting messages that a row took in.
pub(crate) fn taken_ids(row: &TranscriptMessage) -> Vec<EntryId> {
    let meta = row.meta.as_ref().filter(|meta| {
        // A cheap check first: few rows have this field, and some are large.
        row.role == Role::User && meta.as_str().contains(TAKEN_IDS)
    });
    meta.and_then(|meta| meta.field(TAKEN_IDS)).unwrap_or_default()
}

/// `row` with another field in its meta.
pub(crate) fn with_meta(row: TranscriptMessage, name: &str, value: Value) -> TranscriptMessage {
    let mut meta = row.meta.as_ref().map(Meta::to_object).unwrap_or_default();
    meta.insert(name.to_owned(), value);
    TranscriptMessage { meta: Some(meta.into()), ..row }
}

/// The fields of a row's meta. They are read one by one, so that a field which this version does not understand does
/// not make the others unreadable.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMeta<'a> {
    #[serde(borrow)]
    content_blocks: Option<&'a RawValue>,
    #[serde(borrow)]
    api: Option<&'a RawValue>,
    #[serde(borrow)]
    provider: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    error_message: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_name: Option<&'a RawValue>,
    #[serde(borrow)]
    is_error: Option<&'a RawValue>,
    #[serde(borrow)]
    details: Option<&'a RawValue>,
    #[serde(borrow)]
    mode: Option<&'a RawValue>,
}

impl StoredMeta<'_> {
    /// The stored blocks, or the row's text if there are no blocks.
    fn content(&self, text: String) -> Vec<ContentBlock> {
        match read(self.content_blocks) {
            Some(blocks) => blocks,
            None if text.is_empty() => Vec::new(),
            None => vec![ContentBlock::text(text)],
        }
    }
}

/// Reads a field if it exists and has the right type.
fn read<T: DeserializeOwned>(field: Option<&RawValue>) -> Option<T> {
    field.and_then(|raw| serde_json::from_str(raw.get()).ok())
}

/// The row that stores `message`. `row_to_message` restores the message, except for most details of a result, which no
/// model sees.
pub fn message_to_row(message: &Message) -> TranscriptMessage {
    let (role, content, ts, tool_call_id, meta) = match message {
        Message::User(user) => {
            let meta = has_more_than_text(&user.content)
                .then(|| object([("contentBlocks", json!(user.content))]));
            (Role::User, joined_text(&user.content, "\n"), user.timestamp, None, meta)
        }
        Message::Assistant(assistant) => {
            let mut meta = object([
                ("contentBlocks", json!(assistant.content)),
                ("api", json!(assistant.api)),
                ("provider", json!(assistant.provider)),
                ("model", json!(assistant.model)),
                ("usage", json!(assistant.usage)),
                ("stopReason", json!(assistant.stop_reason)),
            ]);
            if let Some(error) = &assistant.error_message {
                meta.insert("errorMessage".to_owned(), json!(error));
            }
            (Role::Assistant, assistant.text(), assistant.timestamp, None, Some(meta))
        }
        Message::ToolResult(result) => {
            let mut meta = object([
                ("toolName", json!(result.tool_name)),
                ("isError", json!(result.is_error)),
            ]);
            if has_more_than_text(&result.content) {
                meta.insert("contentBlocks".to_owned(), json!(result.content));
            }
            if let Some(details) = &result.details {
                meta.insert("details".to_owned(), details.clone());
            }
            (
                Role::Tool,
                result.text(),
                result.timestamp,
                Some(result.tool_call_id.clone()),
                Some(meta),
            )
        }
    };
    TranscriptMessage {
        id: EntryId::generate(),
        role,
        content,
        ts,
        tool_call_id,
        meta: meta.map(Meta::from),
    }
}

/// The tags that close a user message in a request.
fn annotation(timestamp_ms: u64, mode: Option<Mode>) -> String {
    let sent = sent_at(timestamp_ms);
    match mode {
        Some(mode) => format!("{sent}\n<mode>{}</mode>", mode.for_model()),
        None => sent,
    }
}

fn sent_at(timestamp_ms: u64) -> String {
    let time = i64::try_from(timestamp_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("<sent>{:.3}</sent>", time.unwrap_or(Timestamp::UNIX_EPOCH))
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Whether the row's text alone is not enough to restore the blocks.
fn has_more_than_text(content: &[ContentBlock]) -> bool {
    match content {
        [] => false,
        [ContentBlock::Text(text)] => text.text_signature.is_some() || !text.outside.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
