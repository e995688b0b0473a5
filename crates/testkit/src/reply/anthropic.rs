//! Anthropic's Messages format, as <https://docs.anthropic.com/en/api/messages-streaming> shows it.

use serde_json::{Value, json};

use super::{Block, BlockContent, Pings, Reply, Stop, StreamFailure, parsed};

pub(super) fn stream(reply: &Reply, model: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let usage = json!({
        "input_tokens": reply.usage.input,
        "cache_creation_input_tokens": reply.usage.cache_write,
        "cache_read_input_tokens": reply.usage.cache_read,
        "output_tokens": 1,
    });
    let message = json!({
        "id": reply.message_id("msg_"), "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    event(&mut out, &json!({"type": "message_start", "message": message}));
    for (index, block) in reply.blocks.iter().enumerate() {
        if reply.pings == Pings::BetweenBlocks {
            event(&mut out, &json!({"type": "ping"}));
        }
        open(&mut out, index, block);
        let stays_open = reply.failure.is_some() && index + 1 == reply.blocks.len();
        if !stays_open {
            event(&mut out, &json!({"type": "content_block_stop", "index": index}));
        }
    }
    match &reply.failure {
        Some(failure) => event(&mut out, &error(failure)),
        None => {
            event(
                &mut out,
                &json!({
                    "type": "message_delta",
                    "delta": {"stop_reason": stop_word(reply), "stop_sequence": null},
                    "usage": {"output_tokens": reply.usage.output},
                }),
            );
            event(&mut out, &json!({"type": "message_stop"}));
        }
    }
    out
}

/// A block's start and its deltas.
fn open(out: &mut Vec<u8>, index: usize, block: &Block) {
    let mut start = |content: Value| {
        event(
            out,
            &json!({"type": "content_block_start", "index": index, "content_block": content}),
        )
    };
    match &block.content {
        BlockContent::Text(_) => start(json!({"type": "text", "text": ""})),
        BlockContent::Thinking { .. } => {
            start(json!({"type": "thinking", "thinking": "", "signature": ""}))
        }
        BlockContent::RedactedThinking(data) => {
            start(json!({"type": "redacted_thinking", "data": data}))
        }
        BlockContent::ToolCall { id, name, .. } => {
            start(json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
        }
    }
    let mut delta = |delta: Value| {
        event(out, &json!({"type": "content_block_delta", "index": index, "delta": delta}))
    };
    match &block.content {
        BlockContent::Text(text) => {
            for part in block.parts(text) {
                delta(json!({"type": "text_delta", "text": part}));
            }
        }
        BlockContent::Thinking { text, signature } => {
            for part in block.parts(text) {
                delta(json!({"type": "thinking_delta", "thinking": part}));
            }
            delta(json!({"type": "signature_delta", "signature": signature}));
        }
        BlockContent::RedactedThinking(_) => {}
        BlockContent::ToolCall { arguments, .. } => {
            // The real service begins with an empty fragment.
            delta(json!({"type": "input_json_delta", "partial_json": ""}));
            for part in block.parts(arguments) {
                delta(json!({"type": "input_json_delta", "partial_json": part}));
            }
        }
    }
}

pub(super) fn whole(reply: &Reply, model: &str) -> Value {
    let content: Vec<Value> = reply
        .blocks
        .iter()
        .map(|block| match &block.content {
            BlockContent::Text(text) => json!({"type": "text", "text": block.joined(text)}),
            BlockContent::Thinking { text, signature } => {
                json!({"type": "thinking", "thinking": block.joined(text), "signature": signature})
            }
            BlockContent::RedactedThinking(data) => {
                json!({"type": "redacted_thinking", "data": data})
            }
            BlockContent::ToolCall { id, name, arguments } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": parsed(arguments)})
            }
        })
        .collect();
    json!({
        "id": reply.message_id("msg_"), "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop_word(reply), "stop_sequence": null,
        "usage": {
            "input_tokens": reply.usage.input,
            "cache_creation_input_tokens": reply.usage.cache_write,
            "cache_read_input_tokens": reply.usage.cache_read,
            "output_tokens": reply.usage.output,
        },
    })
}

pub(super) fn error(failure: &StreamFailure) -> Value {
    json!({"type": "error", "error": {"type": failure.kind, "message": failure.message}})
}

fn stop_word(reply: &Reply) -> String {
    match reply.effective_stop() {
        Stop::EndTurn => "end_turn".to_owned(),
        Stop::ToolUse => "tool_use".to_owned(),
        Stop::Length => "max_tokens".to_owned(),
        Stop::Refusal => "refusal".to_owned(),
        Stop::Other(word) => word,
    }
}

fn event(out: &mut Vec<u8>, data: &Value) {
    let name = data["type"].as_str().unwrap_or_default();
    out.extend_from_slice(format!("event: {name}\ndata: {data}\n\n").as_bytes());
}
