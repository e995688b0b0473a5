//! One message of another program, as rows.
//!
//! The programs store messages in the form of their providers' interfaces: OpenAI's chat messages, Anthropic's content
//! blocks, or Pi's messages, which resemble those here. Their field names hardly collide, so one reader handles all of
//! them.

mod blocks;

use std::collections::HashMap;

use jiff::Timestamp;
use myclaw_engine::message_to_row;
use myclaw_llm::{
    AssistantMessage, ContentBlock, Cost, Message, StopReason, ToolResultMessage, Usage,
    UserMessage,
};
use myclaw_session::{EntryId, Role, TranscriptMessage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::left_out::LeftOut;
use blocks::{MessageContent, text_of, tool_calls};

/// Provider and model of answers that do not name theirs.
const UNKNOWN: &str = "unknown";
/// Most calls whose names are remembered for their results. A result soon follows its call.
const MOST_OPEN_CALLS: usize = 1000;

/// Fields of a message that are read, and fields that a session here does not need.
const KNOWN_FIELDS: [&str; 42] = [
    "role",
    "content",
    "timestamp",
    "ts",
    "createdAt",
    "created_at",
    "id",
    "type",
    "name",
    "api",
    "provider",
    "model",
    "usage",
    "stopReason",
    "stop_reason",
    "finish_reason",
    "errorMessage",
    "reasoning",
    "reasoning_content",
    "refusal",
    "tool_calls",
    "function_call",
    "tool_call_id",
    "toolCallId",
    "toolName",
    "isError",
    "is_error",
    "details",
    "command",
    "output",
    "exitCode",
    "cancelled",
    "truncated",
    "fullOutputPath",
    "excludeFromContext",
    "customType",
    "display",
    "summary",
    "fromId",
    "tokensBefore",
    "responseId",
    "responseModel",
];

/// A row, and the metadata of an answer.
pub(super) struct Row {
    pub(super) row: TranscriptMessage,
    pub(super) answer: Option<Answer>,
}

/// The metadata of an answer.
pub(super) struct Answer {
    /// As `provider/model`, if it names both.
    pub(super) model: Option<String>,
    pub(super) tokens: u64,
}

/// Reads messages in their order.
pub(super) struct Converter {
    /// Time of messages that have none, in milliseconds since the Unix epoch.
    fallback_ts: u64,
    /// Names of the tools called last, by call id.
    called: HashMap<String, String>,
}

impl Converter {
    pub(super) fn new(fallback_ts: u64) -> Self {
        Self { fallback_ts, called: HashMap::new() }
    }

    /// The rows of one message; the first has `id`, if that is given.
    pub(super) fn convert(
        &mut self,
        value: &Value,
        id: Option<EntryId>,
        left_out: &mut LeftOut,
    ) -> Vec<Row> {
        let Some(fields) = value.as_object() else {
            left_out.add("message that is not an object");
            return Vec::new();
        };
        for (name, value) in fields {
            if !KNOWN_FIELDS.contains(&name.as_str()) && !is_empty(value) {
                left_out.add_named("field", name);
            }
        }
        let ts = time_of(fields).unwrap_or(self.fallback_ts);
        let mut rows = self.rows(fields, ts, left_out);
        if let (Some(first), Some(id)) = (rows.first_mut(), id) {
            first.row.id = id;
        }
        rows
    }

    /// From here on, messages without a time get this one.
    pub(super) fn set_time(&mut self, ts: u64) {
        self.fallback_ts = ts;
    }

    fn rows(&mut self, fields: &Map<String, Value>, ts: u64, left_out: &mut LeftOut) -> Vec<Row> {
        let role = fields.get("role").and_then(Value::as_str).unwrap_or_default();
        match role {
            "user" | "custom" | "hookMessage" => {
                let content = MessageContent::read(fields.get("content"), left_out);
                self.user(content, ts, left_out)
            }
            "assistant" => vec![self.assistant(fields, ts, left_out)],
            "tool" | "toolResult" | "function" => vec![self.result(fields, ts, left_out)],
            "system" | "developer" => {
                let content = MessageContent::read(fields.get("content"), left_out);
                vec![plain(Role::System, text_of(&content.blocks), ts)]
            }
            "bashExecution" => {
                let is_hidden = fields.get("excludeFromContext") == Some(&Value::Bool(true));
                let role = if is_hidden { Role::System } else { Role::User };
                vec![plain(role, executed(fields), ts)]
            }
            "branchSummary" | "compactionSummary" => {
                let summary = fields.get("summary").and_then(Value::as_str).unwrap_or_default();
                vec![plain(Role::User, summary_text(summary), ts)]
            }
            role => {
                left_out.add_named("message of the role", role);
                Vec::new()
            }
        }
    }

    /// A user's message. With some providers it contains tool results, which have rows of their own here.
    fn user(&self, content: MessageContent, ts: u64, left_out: &mut LeftOut) -> Vec<Row> {
        let mut rows: Vec<Row> = content
            .results
            .into_iter()
            .map(|result| {
                let tool_name = self.called.get(&result.call_id).cloned().unwrap_or_default();
                row(&Message::ToolResult(ToolResultMessage {
                    tool_call_id: result.call_id,
                    tool_name,
                    content: result.blocks,
                    is_error: result.is_error,
                    details: None,
                    timestamp: ts,
                }))
            })
            .collect();
        if !content.blocks.is_empty() {
            let message = UserMessage { content: content.blocks, annotation: None, timestamp: ts };
            rows.push(row(&Message::User(message)));
        } else if rows.is_empty() {
            left_out.add("empty message");
        }
        rows
    }

    fn assistant(&mut self, fields: &Map<String, Value>, ts: u64, left_out: &mut LeftOut) -> Row {
        let mut content = MessageContent::read(fields.get("content"), left_out).blocks;
        let text =
            |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(thinking) = text("reasoning").or_else(|| text("reasoning_content")) {
            content.insert(0, blocks::thinking(thinking));
        }
        content.extend(text("refusal").map(ContentBlock::text));
        content.extend(tool_calls(fields, left_out));
        let api = fields.get("api").and_then(|api| Deserialize::deserialize(api).ok());
        if api.is_none() {
            left_out.add_many("signature of reasoning", blocks::remove_signatures(&mut content));
        }
        let message = AssistantMessage {
            api: api.unwrap_or_default(),
            provider: text("provider").unwrap_or(UNKNOWN).to_owned(),
            model: text("model").unwrap_or(UNKNOWN).to_owned(),
            usage: fields.get("usage").map(|usage| usage_of(usage, left_out)).unwrap_or_default(),
            stop_reason: stop_reason(fields, &content),
            error_message: text("errorMessage").map(str::to_owned),
            content,
            timestamp: ts,
        };
        if self.called.len() > MOST_OPEN_CALLS {
            self.called.clear();
        }
        self.called.extend(message.tool_calls().map(|call| (call.id.clone(), call.name.clone())));
        let model = text("provider").zip(text("model"));
        let answer = Answer {
            model: model.map(|(provider, model)| format!("{provider}/{model}")),
            tokens: message.usage.total_tokens,
        };
        Row { answer: Some(answer), ..row(&Message::Assistant(message)) }
    }

    fn result(&self, fields: &Map<String, Value>, ts: u64, left_out: &mut LeftOut) -> Row {
        let text = |names: [&str; 2]| {
            names.iter().find_map(|name| fields.get(*name)?.as_str()).map(str::to_owned)
        };
        let tool_call_id = text(["toolCallId", "tool_call_id"]).unwrap_or_default();
        let tool_name = text(["toolName", "name"])
            .or_else(|| self.called.get(&tool_call_id).cloned())
            .unwrap_or_default();
        let is_error = ["isError", "is_error"]
            .iter()
            .any(|name| fields.get(*name) == Some(&Value::Bool(true)));
        row(&Message::ToolResult(ToolResultMessage {
            tool_call_id,
            tool_name,
            content: MessageContent::read(fields.get("content"), left_out).blocks,
            is_error,
            details: fields.get("details").filter(|details| !is_empty(details)).cloned(),
            timestamp: ts,
        }))
    }
}

/// The text of another branch's summary for the model.
pub(super) fn summary_text(summary: &str) -> String {
    format!("Summary of another part of this conversation:\n\n{summary}")
}

/// A row of plain text.
pub(super) fn plain(role: Role, text: impl Into<String>, ts: u64) -> Row {
    Row { row: TranscriptMessage::new(role, text, ts), answer: None }
}

fn row(message: &Message) -> Row {
    Row { row: message_to_row(message), answer: None }
}

/// A command that the user ran next to the session, and its output.
fn executed(fields: &Map<String, Value>) -> String {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut message =
        format!("I ran this command:\n{}\n\nIt printed:\n{}", text("command"), text("output"));
    if fields.get("cancelled") == Some(&Value::Bool(true)) {
        message.push_str("\n\nI stopped it.");
    } else if let Some(code) =
        fields.get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0)
    {
        message.push_str(&format!("\n\nIt ended with exit code {code}."));
    }
    if !text("fullOutputPath").is_empty() {
        message.push_str(&format!("\n\nAll of its output is in {}.", text("fullOutputPath")));
    }
    message
}

fn stop_reason(fields: &Map<String, Value>, content: &[ContentBlock]) -> StopReason {
    if let Some(reason) =
        fields.get("stopReason").and_then(|reason| StopReason::deserialize(reason).ok())
    {
        return reason;
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let has_calls = content.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
    match text("finish_reason").or_else(|| text("stop_reason")) {
        Some("length" | "max_tokens") => StopReason::Length,
        Some("content_filter" | "refusal") => StopReason::Refusal,
        _ if has_calls => StopReason::ToolUse,
        _ => StopReason::Stop,
    }
}

fn usage_of(usage: &Value, left_out: &mut LeftOut) -> Usage {
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage.get(*name)?.as_u64());
    if let Some(input) = count(["prompt_tokens", "input_tokens"]) {
        let output = count(["completion_tokens", "output_tokens"]).unwrap_or(0);
        let cache_read = usage.get("cache_read_input_tokens").and_then(Value::as_u64).unwrap_or(0);
        let cache_write =
            usage.get("cache_creation_input_tokens").and_then(Value::as_u64).unwrap_or(0);
        let total_tokens = input + output + cache_read + cache_write;
        return Usage { input, output, cache_read, cache_write, total_tokens, ..Usage::default() };
    }
    let read = Usage::deserialize(usage).ok().or_else(|| {
        // Some writers give the cost as one number.
        let mut usage = usage.as_object()?.clone();
        let total = usage.remove("cost")?.as_f64()?;
        let usage = Usage::deserialize(Value::Object(usage)).ok()?;
        Some(Usage { cost: Cost { total, ..Cost::default() }, ..usage })
    });
    read.unwrap_or_else(|| {
        left_out.add("record of tokens used");
        Usage::default()
    })
}

/// When a message was sent, in milliseconds since the Unix epoch.
fn time_of(fields: &Map<String, Value>) -> Option<u64> {
    ["timestamp", "ts", "createdAt", "created_at"].iter().find_map(|name| time(fields.get(*name)?))
}

/// Milliseconds as a number, or a date with its time zone.
pub(super) fn time(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().map(|float| float as u64))
        }
        Value::String(text) => {
            let time: Timestamp = text.parse().ok()?;
            u64::try_from(time.as_millisecond()).ok()
        }
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
