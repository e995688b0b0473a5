//! The objects of a response.

use serde_json::{Map, Value, json};

use super::PREFIX;
use crate::rows::MessageId;
use crate::server::openai::stream::{Used, Whole};

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

    /// A response that was complete at a time in seconds.
    pub(super) fn completed(&self, whole: &Whole, at: u64) -> Value {
        let item = self.item("completed", &json!([part(&whole.text)]));
        let mut object = self.object("completed", &json!([item]));
        object["completed_at"] = json!(at);
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
