//! OpenAI's Chat Completions format, as <https://platform.openai.com/docs/api-reference/chat-streaming> shows it,
//! with the `reasoning_content` that most other hosts add.

use serde_json::{Value, json};

use super::{BlockContent, Pings, Reply, Stop, StreamFailure};

/// Seconds since the epoch in every answer: fixed, so that answers can be compared.
const CREATED: u64 = 1_760_000_000;

pub(super) fn stream(reply: &Reply, model: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let id = reply.message_id("chatcmpl-");
    let envelope = |choices: Value| {
        json!({
            "id": id, "object": "chat.completion.chunk", "created": CREATED, "model": model, "choices": choices,
        })
    };
    let delta =
        |delta: Value| envelope(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    event(&mut out, &delta(json!({"role": "assistant", "content": ""})));
    let mut calls = 0;
    for block in &reply.blocks {
        if reply.pings == Pings::BetweenBlocks {
            out.extend_from_slice(b": keep-alive\n\n");
        }
        match &block.content {
            BlockContent::Text(text) => {
                for part in block.parts(text) {
                    event(&mut out, &delta(json!({"content": part})));
                }
            }
            BlockContent::Thinking { text, .. } => {
                for part in block.parts(text) {
                    event(&mut out, &delta(json!({"reasoning_content": part})));
                }
            }
            BlockContent::RedactedThinking(_) => {}
            BlockContent::ToolCall { id, name, arguments } => {
                let function = json!({"name": name, "arguments": ""});
                let start =
                    json!({"index": calls, "id": id, "type": "function", "function": function});
                event(&mut out, &delta(json!({"tool_calls": [start]})));
                for part in block.parts(arguments) {
                    let fragment = json!({"index": calls, "function": {"arguments": part}});
                    event(&mut out, &delta(json!({"tool_calls": [fragment]})));
                }
                calls += 1;
            }
        }
    }
    if let Some(failure) = &reply.failure {
        event(&mut out, &error(failure));
        return out;
    }
    event(
        &mut out,
        &envelope(json!([{"index": 0, "delta": {}, "finish_reason": stop_word(reply)}])),
    );
    let mut last = envelope(json!([]));
    last["usage"] = usage(reply);
    event(&mut out, &last);
    out.extend_from_slice(b"data: [DONE]\n\n");
    out
}

pub(super) fn whole(reply: &Reply, model: &str) -> Value {
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for block in &reply.blocks {
        match &block.content {
            BlockContent::Text(part) => text.push_str(&block.joined(part)),
            BlockContent::Thinking { text, .. } => reasoning.push_str(&block.joined(text)),
            BlockContent::RedactedThinking(_) => {}
            BlockContent::ToolCall { id, name, arguments } => {
                calls.push(json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}));
            }
        }
    }
    let content = if text.is_empty() { Value::Null } else { Value::String(text) };
    let mut message = json!({"role": "assistant", "content": content});
    if !reasoning.is_empty() {
        message["reasoning_content"] = Value::String(reasoning);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    json!({
        "id": reply.message_id("chatcmpl-"), "object": "chat.completion", "created": CREATED, "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": stop_word(reply)}],
        "usage": usage(reply),
    })
}

pub(super) fn error(failure: &StreamFailure) -> Value {
    json!({"error": {"message": failure.message, "type": failure.kind, "param": null, "code": failure.kind}})
}

/// This format counts what the cache gave within the prompt.
fn usage(reply: &Reply) -> Value {
    let prompt = reply.usage.input + reply.usage.cache_read + reply.usage.cache_write;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": reply.usage.output,
        "total_tokens": prompt + reply.usage.output,
        "prompt_tokens_details": {"cached_tokens": reply.usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}

fn stop_word(reply: &Reply) -> String {
    match reply.effective_stop() {
        Stop::EndTurn => "stop".to_owned(),
        Stop::ToolUse => "tool_calls".to_owned(),
        Stop::Length => "length".to_owned(),
        Stop::Refusal => "content_filter".to_owned(),
        Stop::Other(word) => word,
    }
}

fn event(out: &mut Vec<u8>, data: &Value) {
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}
