//! OpenAI's Responses format, as <https://platform.openai.com/docs/api-reference/responses-streaming> shows it.

use serde_json::{Value, json};

use super::{Block, BlockContent, Pings, Reply, Stop, StreamFailure};

/// Seconds since the epoch in every answer: fixed, so that answers can be compared.
const CREATED: u64 = 1_760_000_000;

pub(super) fn stream(reply: &Reply, model: &str) -> Vec<u8> {
    let mut events = Events::default();
    let begun = response(reply, model, "in_progress", &[]);
    events.send("response.created", json!({"response": begun}));
    events.send("response.in_progress", json!({"response": begun}));
    let items: Vec<Value> =
        (0..).zip(&reply.blocks).map(|(number, block)| item(number, block)).collect();
    for (number, (block, item)) in reply.blocks.iter().zip(&items).enumerate() {
        if reply.pings == Pings::BetweenBlocks {
            events.send("keepalive", json!({}));
        }
        open(&mut events, number, block, item);
        let stays_open = reply.failure.is_some() && number + 1 == items.len();
        if !stays_open {
            close(&mut events, number, block, item);
        }
    }
    match &reply.failure {
        Some(failure) => events.send("error", error(failure)),
        None => {
            let status = status(reply);
            events.send(
                &format!("response.{status}"),
                json!({"response": response(reply, model, status, &items)}),
            );
        }
    }
    events.out
}

pub(super) fn whole(reply: &Reply, model: &str) -> Value {
    let items: Vec<Value> =
        (0..).zip(&reply.blocks).map(|(number, block)| item(number, block)).collect();
    response(reply, model, status(reply), &items)
}

/// What an `error` event and the body of a refusal hold alike.
pub(super) fn error(failure: &StreamFailure) -> Value {
    json!({"error": {"type": failure.kind, "code": failure.kind, "message": failure.message, "param": null}})
}

/// Events with their names and numbers.
#[derive(Default)]
struct Events {
    out: Vec<u8>,
    sent: u64,
}

impl Events {
    fn send(&mut self, kind: &str, fields: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.sent});
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        self.sent += 1;
        self.out.extend_from_slice(format!("event: {kind}\ndata: {event}\n\n").as_bytes());
    }
}

/// The start of an item and its deltas.
fn open(events: &mut Events, number: usize, block: &Block, item: &Value) {
    let mut begun = item.clone();
    for (field, empty) in [
        ("status", json!("in_progress")),
        ("content", json!([])),
        ("summary", json!([])),
        ("arguments", json!("")),
    ] {
        if let Some(value) = begun.get_mut(field) {
            *value = empty;
        }
    }
    events.send("response.output_item.added", json!({"output_index": number, "item": begun}));
    let mut delta = |kind: &str, position: &str, part: &str| {
        let mut fields = json!({"item_id": item["id"], "output_index": number, "delta": part});
        if !position.is_empty() {
            fields[position] = json!(0);
        }
        events.send(kind, fields);
    };
    match &block.content {
        BlockContent::Text(text) => {
            for part in block.parts(text) {
                delta("response.output_text.delta", "content_index", part);
            }
        }
        BlockContent::Thinking { text, .. } => {
            for part in block.parts(text) {
                delta("response.reasoning_summary_text.delta", "summary_index", part);
            }
        }
        BlockContent::RedactedThinking(_) => {}
        BlockContent::ToolCall { arguments, .. } => {
            for part in block.parts(arguments) {
                delta("response.function_call_arguments.delta", "", part);
            }
        }
    }
}

/// The end of an item, which repeats it.
fn close(events: &mut Events, number: usize, block: &Block, item: &Value) {
    let part = |kind: &str, more: Value| {
        let mut fields = json!({"item_id": item["id"], "output_index": number});
        if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
            fields.extend(more);
        }
        (kind.to_owned(), fields)
    };
    let (kind, fields) = match &block.content {
        BlockContent::Text(text) => part(
            "response.output_text.done",
            json!({"content_index": 0, "text": block.joined(text)}),
        ),
        BlockContent::Thinking { text, .. } => part(
            "response.reasoning_summary_text.done",
            json!({"summary_index": 0, "text": block.joined(text)}),
        ),
        BlockContent::RedactedThinking(_) => (String::new(), Value::Null),
        BlockContent::ToolCall { arguments, .. } => part(
            "response.function_call_arguments.done",
            json!({"arguments": block.joined(arguments)}),
        ),
    };
    if !kind.is_empty() {
        events.send(&kind, fields);
    }
    events.send("response.output_item.done", json!({"output_index": number, "item": item}));
}

/// A block as the item that it is when it is done.
fn item(number: usize, block: &Block) -> Value {
    match &block.content {
        BlockContent::Text(text) => json!({
            "id": format!("msg_{number:08}"), "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": block.joined(text), "annotations": []}],
        }),
        BlockContent::Thinking { text, signature } => json!({
            "id": format!("rs_{number:08}"), "type": "reasoning",
            "summary": [{"type": "summary_text", "text": block.joined(text)}],
            "encrypted_content": signature,
        }),
        BlockContent::RedactedThinking(data) => json!({
            "id": format!("rs_{number:08}"), "type": "reasoning", "summary": [], "encrypted_content": data,
        }),
        BlockContent::ToolCall { id, name, arguments } => json!({
            "id": format!("fc_{number:08}"), "type": "function_call", "status": "completed",
            "arguments": block.joined(arguments), "call_id": id, "name": name,
        }),
    }
}

fn response(reply: &Reply, model: &str, status: &str, output: &[Value]) -> Value {
    let reason = match reply.effective_stop() {
        Stop::Length => json!({"reason": "max_output_tokens"}),
        Stop::Refusal => json!({"reason": "content_filter"}),
        Stop::Other(word) => json!({"reason": word}),
        Stop::EndTurn | Stop::ToolUse => Value::Null,
    };
    let is_over = status != "in_progress";
    json!({
        "id": reply.message_id("resp_"), "object": "response", "created_at": CREATED, "status": status,
        "error": null, "incomplete_details": if is_over { reason } else { Value::Null }, "model": model,
        "output": output, "usage": if is_over { usage(reply) } else { Value::Null },
    })
}

/// This format counts what the cache gave and took within the input.
fn usage(reply: &Reply) -> Value {
    let input = reply.usage.input + reply.usage.cache_read + reply.usage.cache_write;
    json!({
        "input_tokens": input,
        "input_tokens_details": {
            "cached_tokens": reply.usage.cache_read, "cache_write_tokens": reply.usage.cache_write,
        },
        "output_tokens": reply.usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + reply.usage.output,
    })
}

/// Only an answer that was cut has a reason; one that calls a tool is complete like any other.
fn status(reply: &Reply) -> &'static str {
    match reply.effective_stop() {
        Stop::EndTurn | Stop::ToolUse => "completed",
        Stop::Length | Stop::Refusal | Stop::Other(_) => "incomplete",
    }
}
