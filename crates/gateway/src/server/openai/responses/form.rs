//! The objects of a response.

use myclaw_delivery::rows::MessageId;
use myclaw_engine::ProgramRequest;
use myclaw_llm::{AnswerFormat, ForcedCall, ToolCall, ToolSchema};
use serde_json::{Map, Value, json};

use super::PREFIX;
use crate::server::openai::stream::{Used, Whole};
use crate::server::openai::turns::{arguments, call_id};

/// What all objects of one response have in common.
#[derive(Clone)]
pub(super) struct Form {
    pub(super) id: MessageId,
    pub(super) model: String,
    pub(super) created: u64,
    pub(super) previous: Option<String>,
    /// What the request said that the response repeats.
    pub(super) echo: Map<String, Value>,
}

impl Form {
    /// Every field that the schema of Open Responses requires. What the agent does not do has the value that says so.
    pub(super) fn object(&self, status: &str, output: &Value) -> Value {
        let mut object = json!({
            "id": format!("{PREFIX}{}", self.id),
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": null,
            "incomplete_details": null,
            "instructions": null,
            "metadata": {},
            "model": self.model,
            "output": output,
            "parallel_tool_calls": true,
            "previous_response_id": self.previous,
            "temperature": 1,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1,
            "usage": null,
            "completed_at": null,
            "truncation": "disabled",
            "text": {"format": {"type": "text"}},
            "presence_penalty": 0,
            "frequency_penalty": 0,
            "top_logprobs": 0,
            "reasoning": null,
            "user": null,
            "max_output_tokens": null,
            "max_tool_calls": null,
            "store": true,
            "background": false,
            "service_tier": "default",
            "safety_identifier": null,
            "prompt_cache_key": null,
        });
        for (name, value) in &self.echo {
            object[name.as_str()] = value.clone();
        }
        object
    }

    pub(super) fn item(&self, status: &str, content: &Value) -> Value {
        let id = format!("msg_{}", self.id);
        json!({"id": id, "type": "message", "role": "assistant", "status": status, "content": content})
    }

    /// The calls with which an answer ends, as items.
    pub(super) fn calls(&self, whole: &Whole) -> Vec<Value> {
        let item = |(number, call): (usize, &ToolCall)| {
            json!({
                "id": format!("fc_{}_{number}", self.id),
                "type": "function_call",
                "call_id": call_id(&self.id, number),
                "name": call.name,
                "arguments": arguments(call),
                "status": "completed",
            })
        };
        whole.calls.iter().enumerate().map(item).collect()
    }

    /// A response that ended at a time in seconds: complete, or cut at a limit.
    pub(super) fn completed(&self, whole: &Whole, at: u64) -> Value {
        let status = if whole.is_cut { "incomplete" } else { "completed" };
        let has_text = !whole.text.is_empty() || whole.calls.is_empty();
        let item = has_text.then(|| self.item(status, &json!([part(&whole.text)])));
        let items: Vec<Value> = item.into_iter().chain(self.calls(whole)).collect();
        let mut object = self.object(status, &json!(items));
        match whole.is_cut {
            true => object["incomplete_details"] = json!({"reason": "max_output_tokens"}),
            false => object["completed_at"] = json!(at),
        }
        if let Some(used) = whole.usage {
            object["usage"] = usage(used);
        }
        object
    }

    pub(super) fn failed(&self, class: &str, message: &str) -> Value {
        let mut object = self.object("failed", &json!([]));
        object["error"] = json!({"code": class, "message": message});
        object
    }
}

/// What a request asks, in the fields of its response.
pub(super) fn echo_of(asked: &ProgramRequest) -> Map<String, Value> {
    let mut echo = Map::new();
    let options = &asked.options;
    let numbers = [
        ("temperature", options.temperature),
        ("top_p", options.top_p),
        ("presence_penalty", options.presence_penalty),
        ("frequency_penalty", options.frequency_penalty),
    ];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
    echo.extend(numbers.map(|(name, number)| (name.to_owned(), json!(number))));
    echo.extend(options.max_output.map(|most| ("max_output_tokens".to_owned(), json!(most))));
    let tool = |tool: &ToolSchema| {
        let ToolSchema { name, description, parameters } = tool;
        json!({"type": "function", "name": name, "description": description, "parameters": parameters, "strict": false})
    };
    echo.insert("tools".to_owned(), asked.tools.iter().map(tool).collect());
    echo.insert("parallel_tool_calls".to_owned(), json!(!options.single_calls));
    let choice = options.forced_call.as_ref().map(|forced| match forced {
        ForcedCall::Any => json!("required"),
        ForcedCall::Tool(name) => json!({"type": "function", "name": name}),
    });
    echo.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
    let format = options.format.as_ref().map(|format| match format {
        AnswerFormat::JsonObject => json!({"type": "json_object"}),
        AnswerFormat::JsonSchema { name, description, schema, strict } => json!({
            "type": "json_schema",
            "name": name,
            "description": description,
            "schema": schema,
            "strict": strict.unwrap_or(false),
        }),
    });
    echo.extend(format.map(|format| ("text".to_owned(), json!({"format": format}))));
    echo
}

pub(super) fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn usage(used: Used) -> Value {
    json!({
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cached},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input + used.output,
    })
}
