//! An event of a run, as far as clients need it that join later: of a run of this process, or as another gateway shows it.

use std::borrow::Cow;

use myclaw_engine::AgentRunEvent;
use myclaw_llm::StreamEvent;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What an event changes.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Seen<'a> {
    RunStart,
    RunEnd,
    Taken {
        ids: Vec<Cow<'a, str>>,
    },
    LlmStart {
        provider: Cow<'a, str>,
        model: Cow<'a, str>,
    },
    LlmStream {
        event: Arriving<'a>,
    },
    LlmEnd,
    ToolStart {
        tool_name: Cow<'a, str>,
        tool_call_id: Cow<'a, str>,
        arguments: Cow<'a, Map<String, Value>>,
    },
    ToolExecutionUpdate {
        tool_call_id: Cow<'a, str>,
        text: Cow<'a, str>,
    },
    ToolEnd {
        tool_call_id: Cow<'a, str>,
        duration_ms: u64,
        is_error: bool,
        text: Cow<'a, str>,
    },
    #[serde(other)]
    Other,
}

/// What arrives from a model.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Arriving<'a> {
    Start,
    TextDelta {
        index: usize,
        delta: Cow<'a, str>,
    },
    ThinkingDelta {
        index: usize,
        delta: Cow<'a, str>,
    },
    #[serde(rename = "toolcall_start")]
    ToolCallStart {
        index: usize,
        id: Cow<'a, str>,
        name: Cow<'a, str>,
    },
    #[serde(other)]
    Other,
}

impl<'a> Seen<'a> {
    pub(super) fn of(event: &'a AgentRunEvent) -> Self {
        let text = |text: &'a String| Cow::Borrowed(text.as_str());
        match event {
            AgentRunEvent::RunStart { .. } => Self::RunStart,
            AgentRunEvent::RunEnd { .. } => Self::RunEnd,
            AgentRunEvent::Taken { ids, .. } => {
                Self::Taken { ids: ids.iter().map(|id| id.as_str().to_owned().into()).collect() }
            }
            AgentRunEvent::LlmStart { provider, model, .. } => {
                Self::LlmStart { provider: text(provider), model: text(model) }
            }
            AgentRunEvent::LlmStream { event } => Self::LlmStream { event: Arriving::of(event) },
            AgentRunEvent::LlmEnd { .. } => Self::LlmEnd,
            AgentRunEvent::ToolStart { tool_name, tool_call_id, arguments } => Self::ToolStart {
                tool_name: text(tool_name),
                tool_call_id: text(tool_call_id),
                arguments: Cow::Borrowed(arguments),
            },
            AgentRunEvent::ToolExecutionUpdate { tool_call_id, text: progress, .. } => {
                Self::ToolExecutionUpdate { tool_call_id: text(tool_call_id), text: text(progress) }
            }
            AgentRunEvent::ToolEnd {
                tool_call_id, duration_ms, is_error, text: result, ..
            } => Self::ToolEnd {
                tool_call_id: text(tool_call_id),
                duration_ms: *duration_ms,
                is_error: *is_error,
                text: text(result),
            },
            _ => Self::Other,
        }
    }
}

impl<'a> Arriving<'a> {
    fn of(event: &'a StreamEvent) -> Self {
        match event {
            StreamEvent::Start => Self::Start,
            StreamEvent::TextDelta { index, delta } => {
                Self::TextDelta { index: *index, delta: Cow::Borrowed(delta) }
            }
            StreamEvent::ThinkingDelta { index, delta } => {
                Self::ThinkingDelta { index: *index, delta: Cow::Borrowed(delta) }
            }
            StreamEvent::ToolCallStart { index, id, name } => Self::ToolCallStart {
                index: *index,
                id: Cow::Borrowed(id),
                name: Cow::Borrowed(name),
            },
            _ => Self::Other,
        }
    }
}
