//! Google's Generative Language format, as <https://ai.google.dev/api/generate-content> shows it. Calls come whole.

use serde_json::{Map, Value, json};

use super::{BlockContent, Pings, Reply, Stop, StreamFailure};

pub(super) fn stream(reply: &Reply, model: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for block in &reply.blocks {
        if reply.pings == Pings::BetweenBlocks {
            out.extend_from_slice(b": keep-alive\n\n");
        }
        for part in parts(&block.content, |text| block.parts(text)) {
            event(&mut out, &response(reply, model, &[part], None));
        }
    }
    match &reply.failure {
        Some(failure) => event(&mut out, &error(failure)),
        None => event(&mut out, &response(reply, model, &[], Some(&stop_word(reply)))),
    }
    out
}

pub(super) fn whole(reply: &Reply, model: &str) -> Value {
    let parts: Vec<Value> =
        reply.blocks.iter().flat_map(|block| parts(&block.content, |text| vec![text])).collect();
    response(reply, model, &parts, Some(&stop_word(reply)))
}

pub(super) fn error(failure: &StreamFailure) -> Value {
    json!({"error": {"code": 503, "message": failure.message, "status": failure.kind}})
}

/// The parts of a block: prose as `split` cuts it, anything else whole. The signature of a thought comes with its last
/// piece.
fn parts<'a>(content: &'a BlockContent, split: impl Fn(&'a str) -> Vec<&'a str>) -> Vec<Value> {
    match content {
        BlockContent::Text(text) => {
            split(text).into_iter().map(|text| json!({"text": text})).collect()
        }
        BlockContent::Thinking { text, signature } => {
            let mut parts: Vec<Value> = split(text)
                .into_iter()
                .map(|text| json!({"text": text, "thought": true}))
                .collect();
            if let Some(last) = parts.last_mut().filter(|_| !signature.is_empty()) {
                last["thoughtSignature"] = json!(signature);
            }
            parts
        }
        BlockContent::RedactedThinking(data) => {
            vec![json!({"text": "", "thought": true, "thoughtSignature": data})]
        }
        BlockContent::ToolCall { id, name, arguments } => {
            let args = serde_json::from_str(arguments).unwrap_or(Value::Object(Map::new()));
            vec![json!({"functionCall": {"id": id, "name": name, "args": args}})]
        }
    }
}

fn response(reply: &Reply, model: &str, parts: &[Value], stop: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(stop) = stop {
        candidate["finishReason"] = json!(stop);
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage(reply),
        "modelVersion": model,
        "responseId": reply.message_id("resp"),
    })
}

/// This format counts what the cache gave within the prompt; it does not say what the cache took.
fn usage(reply: &Reply) -> Value {
    let prompt = reply.usage.input + reply.usage.cache_read + reply.usage.cache_write;
    json!({
        "promptTokenCount": prompt,
        "cachedContentTokenCount": reply.usage.cache_read,
        "candidatesTokenCount": reply.usage.output,
        "totalTokenCount": prompt + reply.usage.output,
    })
}

fn stop_word(reply: &Reply) -> String {
    match reply.effective_stop() {
        Stop::EndTurn | Stop::ToolUse => "STOP".to_owned(),
        Stop::Length => "MAX_TOKENS".to_owned(),
        Stop::Refusal => "SAFETY".to_owned(),
        Stop::Other(word) => word,
    }
}

fn event(out: &mut Vec<u8>, data: &Value) {
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}
