//! What is shown of a turn, wherever it runs: in this process, or in a gateway that sends its events as JSON.

use std::time::Duration;

use myclaw_engine::{AgentRunEvent, Notice};
use myclaw_llm::StreamEvent;
use serde_json::{Map, Value};

use crate::report::{first_line, narrate};
use crate::terminal::Style;

/// A change of what is on the screen.
#[derive(Debug, PartialEq)]
pub enum Shown {
    /// Nothing changes.
    Nothing,
    /// Something is waited for.
    Wait(String),
    /// More text of the answer.
    Text(String),
    /// The text is complete.
    TextEnd,
    /// The model begins to write a call of a tool.
    CallBegin {
        /// The place of the call in the message.
        block: usize,
        /// Its name.
        tool: String,
    },
    /// It writes on.
    CallDelta {
        /// The place of the call in the message.
        block: usize,
        /// More of its arguments.
        delta: String,
    },
    /// A tool begins to run.
    ToolStart {
        /// Its name.
        tool: String,
        /// The model's id for the call.
        id: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// A tool has ended.
    ToolEnd {
        /// Its name.
        tool: String,
        /// The model's id for the call.
        id: String,
        /// How long it ran.
        took: Duration,
        /// Whether it failed.
        is_error: bool,
        /// What the model reads.
        text: String,
        /// For user interfaces; see the tools.
        details: Option<Value>,
    },
    /// A running tool has printed something.
    ToolOutput {
        /// The model's id for the call.
        id: String,
        /// The latest output.
        text: String,
    },
    /// The model thinks.
    Thinking(String),
    /// The run took messages in that waited.
    Taken {
        /// Their ids.
        ids: Vec<String>,
        /// The message that they became.
        text: String,
    },
    /// The turn has this answer, which is shown unless it was.
    Answer(String),
    /// A line that stays.
    Line(Style, String),
    /// A warning that a chat shows once.
    Once(String),
}

impl From<AgentRunEvent> for Shown {
    fn from(event: AgentRunEvent) -> Self {
        match event {
            AgentRunEvent::LlmStream { event } => Self::of_stream(event),
            AgentRunEvent::LlmStart { provider, model, .. } => {
                Self::Wait(format!("{provider}/{model}"))
            }
            AgentRunEvent::LlmEnd { .. } => Self::TextEnd,
            AgentRunEvent::ToolStart { tool_name, tool_call_id, arguments } => {
                Self::ToolStart { tool: tool_name, id: tool_call_id, arguments }
            }
            AgentRunEvent::ToolEnd {
                tool_name,
                tool_call_id,
                duration_ms,
                is_error,
                text,
                details,
            } => {
                let took = Duration::from_millis(duration_ms);
                Self::ToolEnd { tool: tool_name, id: tool_call_id, took, is_error, text, details }
            }
            AgentRunEvent::ToolExecutionUpdate { tool_call_id, text, .. } => {
                Self::ToolOutput { id: tool_call_id, text }
            }
            AgentRunEvent::Taken { ids, text } => {
                Self::Taken { ids: ids.iter().map(ToString::to_string).collect(), text }
            }
            AgentRunEvent::Done { result } => Self::Answer(result.reply),
            AgentRunEvent::Notice(notice) if matches!(notice, Notice::WindowSmall { .. }) => {
                Self::Once(notice.to_string())
            }
            event => match narrate(&event) {
                Some((style, line)) => Self::Line(style, line),
                None => Self::Nothing,
            },
        }
    }
}

impl Shown {
    fn of_stream(event: StreamEvent) -> Self {
        match event {
            StreamEvent::TextDelta { delta, .. } => Self::Text(delta),
            StreamEvent::TextStart { .. } | StreamEvent::TextEnd { .. } => Self::TextEnd,
            StreamEvent::ThinkingStart { .. } => Self::Wait("thinking".to_owned()),
            StreamEvent::ThinkingDelta { delta, .. } => Self::Thinking(delta),
            StreamEvent::ToolCallStart { index, name, .. } => {
                Self::CallBegin { block: index, tool: name }
            }
            StreamEvent::ToolCallDelta { index, delta, .. } => {
                Self::CallDelta { block: index, delta }
            }
            _ => Self::Nothing,
        }
    }

    /// The same from an event of a gateway, which may be of another version: what is not known is not shown.
    pub fn of_json(event: &Value) -> Self {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let line = |style, line: String| Self::Line(style, line);
        match event["type"].as_str().unwrap_or_default() {
            "llm_stream" => Self::of_json_stream(&event["event"]),
            "llm_start" => Self::Wait(format!("{}/{}", text("provider"), text("model"))),
            "llm_end" => Self::TextEnd,
            "tool_start" => Self::ToolStart {
                tool: text("toolName"),
                id: text("toolCallId"),
                arguments: event["arguments"].as_object().cloned().unwrap_or_default(),
            },
            "tool_end" => Self::ToolEnd {
                tool: text("toolName"),
                id: text("toolCallId"),
                took: Duration::from_millis(event["durationMs"].as_u64().unwrap_or(0)),
                is_error: event["isError"] == true,
                text: text("text"),
                details: event.get("details").filter(|details| !details.is_null()).cloned(),
            },
            "tool_execution_update" => {
                Self::ToolOutput { id: text("toolCallId"), text: text("text") }
            }
            "done" => {
                Self::Answer(event["result"]["reply"].as_str().unwrap_or_default().to_owned())
            }
            "retry" => {
                let seconds =
                    Duration::from_millis(event["delayMs"].as_u64().unwrap_or(0)).as_secs_f64();
                let (profile, reason) = (text("profileId"), text("cause"));
                let why = first_line(&text("message"));
                line(
                    Style::Warning,
                    format!("retry with {profile} in {seconds:.1} s ({reason}): {why}"),
                )
            }
            "fallback" => {
                let (to, from, why) = (text("to"), text("from"), first_line(&text("message")));
                line(Style::Warning, format!("{to} answers instead of {from}: {why}"))
            }
            "compaction" => line(Style::Warning, "context made smaller".to_owned()),
            "taken" => {
                let ids = event["ids"].as_array().into_iter().flatten();
                let ids = ids.filter_map(Value::as_str).map(str::to_owned).collect();
                Self::Taken { ids, text: text("text") }
            }
            "tool_skipped" => {
                line(Style::Dim, format!("tool skipped {}: a message came first", text("toolName")))
            }
            "approval_resolved" => line(
                Style::Dim,
                match event["decision"].as_str() {
                    Some("denied") => format!("not approved: {}", first_line(&text("reason"))),
                    Some("instead") => "approved: what was written in its place".to_owned(),
                    decision => format!("approved: {}", decision.unwrap_or("once")),
                },
            ),
            "notice" if event["code"] == "window_small" => Self::Once(first_line(&text("message"))),
            "bound_reached" | "notice" => line(Style::Warning, first_line(&text("message"))),
            _ => Self::Nothing,
        }
    }

    fn of_json_stream(event: &Value) -> Self {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let block = event["index"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        match event["type"].as_str().unwrap_or_default() {
            "text_delta" => Self::Text(text("delta")),
            "text_start" | "text_end" => Self::TextEnd,
            "thinking_start" => Self::Wait("thinking".to_owned()),
            "thinking_delta" => Self::Thinking(text("delta")),
            "toolcall_start" => Self::CallBegin { block, tool: text("name") },
            "toolcall_delta" => Self::CallDelta { block, delta: text("delta") },
            _ => Self::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
