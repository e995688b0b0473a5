//! The messages as the request sends them, kept as JSON text and only ever added to.

use std::io::Write;

use serde_json::{Value, json};

use crate::Format;
use crate::stream::{Answer, Call};
use crate::transcript::Row;

/// Output limit of a call, in tokens.
const MAX_TOKENS: u32 = 8192;

/// The messages so far, in one of the formats.
pub(crate) struct Messages {
    format: Format,
    model: String,
    /// Messages, each followed by a comma.
    messages: Vec<u8>,
    /// Anthropic's format: results that wait to be sent as one user message, each followed by a comma.
    results: Vec<u8>,
}

impl Messages {
    pub(crate) fn new(format: Format, model: &str) -> Self {
        Self { format, model: model.to_owned(), messages: Vec::new(), results: Vec::new() }
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    pub(crate) fn add_user(&mut self, text: &str) {
        self.flush_results();
        self.add(&json!({"role": "user", "content": text}));
    }

    pub(crate) fn add_answer(&mut self, answer: &Answer) {
        let calls =
            answer.calls.iter().map(|Call { id, name, arguments }| (&**id, &**name, &**arguments));
        self.add_assistant(&answer.text, calls);
    }

    pub(crate) fn add_result(&mut self, id: &str, text: &str) {
        match self.format {
            Format::Anthropic => {
                let block = json!({"type": "tool_result", "tool_use_id": id, "content": text});
                append(&mut self.results, &block);
            }
            Format::OpenAi => {
                self.add(&json!({"role": "tool", "tool_call_id": id, "content": text}))
            }
        }
    }

    /// Takes a row of a transcript; one without a role is no message.
    pub(crate) fn add_row(&mut self, row: &Row<'_>) {
        match &*row.role {
            "user" => self.add_user(&row.content),
            "tool" => self.add_result(&row.tool_call_id, &row.content),
            "assistant" => {
                let text: String =
                    row.meta.content_blocks.iter().map(|block| &*block.text).collect();
                let text = if row.meta.content_blocks.is_empty() { &*row.content } else { &text };
                let calls = row.meta.content_blocks.iter().filter(|block| block.kind == "toolCall");
                let calls = calls.map(|block| {
                    (
                        &*block.id,
                        &*block.name,
                        block.arguments.map_or("{}", |arguments| arguments.get()),
                    )
                });
                self.add_assistant(text, calls);
            }
            _ => {}
        }
    }

    /// The body of the next request.
    pub(crate) fn body(&self) -> Vec<u8> {
        let parameters = json!({
            "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"],
        });
        let about = "Runs a shell command.";
        let (tool, limit) = match self.format {
            Format::Anthropic => (
                json!({"name": "bash", "description": about, "input_schema": parameters}),
                "max_tokens",
            ),
            Format::OpenAi => {
                let function =
                    json!({"name": "bash", "description": about, "parameters": parameters});
                (json!({"type": "function", "function": function}), "max_completion_tokens")
            }
        };
        let options =
            json!({"model": self.model, limit: MAX_TOKENS, "stream": true, "tools": [tool]})
                .to_string();
        let mut body =
            Vec::with_capacity(options.len() + self.messages.len() + self.results.len() + 64);
        // Without its last brace the object takes one more member.
        body.extend_from_slice(options.strip_suffix('}').unwrap_or(&options).as_bytes());
        body.extend_from_slice(b",\"messages\":[");
        body.extend_from_slice(&self.messages);
        if !self.results.is_empty() {
            wrap_results(&mut body, &self.results);
        }
        body.pop();
        body.extend_from_slice(b"]}");
        body
    }

    fn add_assistant<'a>(
        &mut self,
        text: &str,
        calls: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    ) {
        self.flush_results();
        let message = match self.format {
            Format::Anthropic => {
                let mut blocks = Vec::new();
                if !text.is_empty() {
                    blocks.push(json!({"type": "text", "text": text}));
                }
                for (id, name, arguments) in calls {
                    let input: Value = serde_json::from_str(arguments).unwrap_or_default();
                    blocks
                        .push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
                }
                json!({"role": "assistant", "content": blocks})
            }
            Format::OpenAi => {
                let calls: Vec<Value> = calls
                    .map(|(id, name, arguments)| {
                        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
                    })
                    .collect();
                let mut message = json!({"role": "assistant"});
                if !text.is_empty() {
                    message["content"] = json!(text);
                }
                if !calls.is_empty() {
                    message["tool_calls"] = Value::Array(calls);
                }
                message
            }
        };
        self.add(&message);
    }

    fn flush_results(&mut self) {
        if !self.results.is_empty() {
            let results = std::mem::take(&mut self.results);
            wrap_results(&mut self.messages, &results);
        }
    }

    fn add(&mut self, message: &Value) {
        append(&mut self.messages, message);
    }
}

/// Adds a value and a comma.
fn append(out: &mut Vec<u8>, value: &Value) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut *out, value);
    out.push(b',');
}

/// Adds a user message that holds `results`, and a comma.
fn wrap_results(out: &mut Vec<u8>, results: &[u8]) {
    let _ = write!(out, "{{\"role\":\"user\",\"content\":[");
    out.extend_from_slice(results.strip_suffix(b",").unwrap_or(results));
    out.extend_from_slice(b"]},");
}
