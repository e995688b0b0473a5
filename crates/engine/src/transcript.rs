//! Between the rows of a session's log and the messages of a model request.

use jiff::Timestamp;
use myclaw_llm::{
    Api, AssistantMessage, ContentBlock, Message, StopReason, ToolResultMessage, Usage, UserMessage,
};
use myclaw_session::{EntryId, Role, TranscriptMessage};
use serde_json::{Map, Value, json};

/// The row's message as a model sees it; `None` for rows that no model sees.
///
/// A user row is annotated with the time it was sent. The time comes from the row, so a message has the same bytes in
/// every request of the session.
pub(crate) fn row_to_message(row: TranscriptMessage) -> Option<Message> {
    let mut meta = row.meta.unwrap_or_default();
    match row.role {
        Role::System => None,
        Role::User => {
            let content = content_blocks(&mut meta, row.content);
            let annotation = Some(sent_at(row.ts));
            Some(Message::User(UserMessage { content, annotation, timestamp: row.ts }))
        }
        Role::Assistant => Some(Message::Assistant(AssistantMessage {
            content: content_blocks(&mut meta, row.content),
            api: take(&mut meta, "api").unwrap_or(Api::AnthropicMessages),
            provider: take(&mut meta, "provider").unwrap_or_else(|| "anthropic".to_owned()),
            model: take(&mut meta, "model").unwrap_or_else(|| "unknown".to_owned()),
            usage: take::<Usage>(&mut meta, "usage").unwrap_or_default(),
            stop_reason: take(&mut meta, "stopReason").unwrap_or(StopReason::Stop),
            error_message: take(&mut meta, "errorMessage"),
            timestamp: row.ts,
        })),
        Role::Tool => Some(Message::ToolResult(ToolResultMessage {
            tool_call_id: row.tool_call_id?,
            tool_name: take(&mut meta, "toolName").unwrap_or_default(),
            is_error: take(&mut meta, "isError").unwrap_or(false),
            content: content_blocks(&mut meta, row.content),
            details: None,
            timestamp: row.ts,
        })),
    }
}

/// The row that stores `message`. `row_to_message` gives the message back, but for a result's details, which no model
/// sees.
pub(crate) fn message_to_row(message: &Message) -> TranscriptMessage {
    let (role, content, ts, tool_call_id, meta) = match message {
        Message::User(user) => {
            let meta = has_more_than_text(&user.content)
                .then(|| object([("contentBlocks", json!(user.content))]));
            (Role::User, text_of(&user.content), user.timestamp, None, meta)
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
    TranscriptMessage { id: EntryId::generate(), role, content, ts, tool_call_id, meta }
}

/// The tag that closes a user message in a request.
fn sent_at(timestamp_ms: u64) -> String {
    let time = i64::try_from(timestamp_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("<sent>{:.3}</sent>", time.unwrap_or(Timestamp::UNIX_EPOCH))
}

fn content_blocks(meta: &mut Map<String, Value>, text: String) -> Vec<ContentBlock> {
    match take(meta, "contentBlocks") {
        Some(blocks) => blocks,
        None if text.is_empty() => Vec::new(),
        None => vec![ContentBlock::text(text)],
    }
}

/// A field of `meta`, if it is there and of the right type.
fn take<T: serde::de::DeserializeOwned>(meta: &mut Map<String, Value>, field: &str) -> Option<T> {
    meta.get_mut(field).map(Value::take).and_then(|value| serde_json::from_value(value).ok())
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Whether the blocks would not come back from the row's text alone.
fn has_more_than_text(content: &[ContentBlock]) -> bool {
    !matches!(
        content,
        [] | [ContentBlock::Text(myclaw_llm::TextContent { text_signature: None, .. })]
    )
}

fn text_of(content: &[ContentBlock]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests;
