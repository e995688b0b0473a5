//! Bedrock's Converse format, as
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html> shows it, in Amazon's
//! binary framing of events.

use serde_json::{Value, json};

use super::{Block, BlockContent, Reply, Stop, StreamFailure, parsed};

/// How the type of a header's text value is written.
const TEXT_VALUE: u8 = 7;

/// The polynomial of the checksums (CRC-32 of IEEE 802.3), reflected.
const POLYNOMIAL: u32 = 0xEDB8_8320;

pub(super) fn stream(reply: &Reply) -> Vec<u8> {
    let mut out = Vec::new();
    event(&mut out, "messageStart", &json!({"p": "abcdefgh", "role": "assistant"}));
    for (index, block) in reply.blocks.iter().enumerate() {
        open(&mut out, index, block);
        let stays_open = reply.failure.is_some() && index + 1 == reply.blocks.len();
        if !stays_open {
            event(&mut out, "contentBlockStop", &json!({"contentBlockIndex": index}));
        }
    }
    match &reply.failure {
        Some(failure) => message(&mut out, "exception", &failure.kind, &error(failure)),
        None => {
            event(&mut out, "messageStop", &json!({"stopReason": stop_word(reply)}));
            let metadata = json!({"metrics": {"latencyMs": 1}, "usage": usage(reply)});
            event(&mut out, "metadata", &metadata);
        }
    }
    out
}

/// A block's start, which only calls have, and its deltas.
fn open(out: &mut Vec<u8>, index: usize, block: &Block) {
    let mut delta = |delta: Value| {
        event(out, "contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta}));
    };
    match &block.content {
        BlockContent::Text(text) => {
            for part in block.parts(text) {
                delta(json!({"text": part}));
            }
        }
        BlockContent::Thinking { text, signature } => {
            for part in block.parts(text) {
                delta(json!({"reasoningContent": {"text": part}}));
            }
            delta(json!({"reasoningContent": {"signature": signature}}));
        }
        BlockContent::RedactedThinking(data) => {
            delta(json!({"reasoningContent": {"redactedContent": data}}));
        }
        BlockContent::ToolCall { id, name, arguments } => {
            let start = json!({"toolUse": {"toolUseId": id, "name": name}});
            event(out, "contentBlockStart", &json!({"contentBlockIndex": index, "start": start}));
            for part in block.parts(arguments) {
                let delta = json!({"toolUse": {"input": part}});
                event(
                    out,
                    "contentBlockDelta",
                    &json!({"contentBlockIndex": index, "delta": delta}),
                );
            }
        }
    }
}

pub(super) fn whole(reply: &Reply) -> Value {
    let content: Vec<Value> = reply
        .blocks
        .iter()
        .map(|block| match &block.content {
            BlockContent::Text(text) => json!({"text": block.joined(text)}),
            BlockContent::Thinking { text, signature } => {
                let text = json!({"text": block.joined(text), "signature": signature});
                json!({"reasoningContent": {"reasoningText": text}})
            }
            BlockContent::RedactedThinking(data) => {
                json!({"reasoningContent": {"redactedContent": data}})
            }
            BlockContent::ToolCall { id, name, arguments } => {
                json!({"toolUse": {"toolUseId": id, "name": name, "input": parsed(arguments)}})
            }
        })
        .collect();
    json!({
        "metrics": {"latencyMs": 1},
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop_word(reply),
        "usage": usage(reply),
    })
}

/// The body of an error; its kind is in a header of the answer or of the stream's message.
pub(super) fn error(failure: &StreamFailure) -> Value {
    json!({"message": failure.message})
}

fn usage(reply: &Reply) -> Value {
    let counts = &reply.usage;
    json!({
        "inputTokens": counts.input,
        "outputTokens": counts.output,
        "cacheReadInputTokens": counts.cache_read,
        "cacheWriteInputTokens": counts.cache_write,
        "totalTokens": counts.input + counts.output + counts.cache_read + counts.cache_write,
    })
}

fn stop_word(reply: &Reply) -> String {
    match reply.effective_stop() {
        Stop::EndTurn => "end_turn".to_owned(),
        Stop::ToolUse => "tool_use".to_owned(),
        Stop::Length => "max_tokens".to_owned(),
        Stop::Refusal => "content_filtered".to_owned(),
        Stop::Other(word) => word,
    }
}

fn event(out: &mut Vec<u8>, name: &str, payload: &Value) {
    message(out, "event", name, payload);
}

/// One message of the stream: lengths, their checksum, headers, payload, the checksum of all.
fn message(out: &mut Vec<u8>, kind: &str, name: &str, payload: &Value) {
    let payload = payload.to_string().into_bytes();
    let mut headers = Vec::new();
    let name_header = format!(":{kind}-type");
    for (header, value) in [
        (name_header.as_str(), name),
        (":content-type", "application/json"),
        (":message-type", kind),
    ] {
        headers.push(u8::try_from(header.len()).expect("a short name"));
        headers.extend_from_slice(header.as_bytes());
        headers.push(TEXT_VALUE);
        headers
            .extend_from_slice(&u16::try_from(value.len()).expect("a short value").to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let start = out.len();
    let total = 12 + headers.len() + payload.len() + 4;
    for length in [total, headers.len()] {
        out.extend_from_slice(&u32::try_from(length).expect("a short message").to_be_bytes());
    }
    out.extend_from_slice(&checksum(&out[start..]).to_be_bytes());
    out.extend_from_slice(&headers);
    out.extend_from_slice(&payload);
    out.extend_from_slice(&checksum(&out[start..]).to_be_bytes());
}

/// Bit by bit, from the definition: this is not the code that it helps to test.
fn checksum(bytes: &[u8]) -> u32 {
    let shifted = |value: u32| if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
    let all = bytes
        .iter()
        .fold(u32::MAX, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), |value, _| shifted(value)));
    !all
}
