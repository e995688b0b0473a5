//! Google's Generative Language API, at AI Studio.

use myclaw_llm::{Api, ContentBlock};
use serde_json::{Value, json};

use super::{Format, Framing};
use crate::decoding::{thinking, tool_call};
use crate::support::tools;

/// Stands for the signature of a call that no Gemini model made.
const SKIP: &str = "skip_thought_signature_validator";

pub(super) const FORMAT: Format = Format {
    api: Api::GoogleGenerativeAi,
    framing: Framing::Text,
    streams: &[
        include_bytes!("../../data/google_tools.sse"),
        include_bytes!("../../data/recorded/google_generative_ai/text.sse"),
        include_bytes!("../../data/recorded/google_generative_ai/call.sse"),
    ],
    document,
    document_content,
    failing_stream: (
        b"data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\n\n",
        "reported an error (UNAVAILABLE): The model is overloaded",
    ),
    path: "/v1beta/models/test-model:streamGenerateContent?alt=sse",
    headers: &[("x-goog-api-key", "sk-test-0123456789abcdef")],
    messages: "contents",
    request,
    pictures,
    annotated,
    without_blanks,
    unreadable_arguments: |messages| {
        messages[1]["parts"][0]["functionCall"]["args"].clone()
    },
};

/// Two responses in a list, as the service answers a call without `alt=sse`.
fn document() -> Value {
    let part = |part: Value| json!({"content": {"role": "model", "parts": [part]}});
    let call = json!({"functionCall": {"name": "read", "args": {"path": "a"}, "id": "t"}, "thoughtSignature": "sig"});
    let mut last = part(call);
    last["finishReason"] = json!("STOP");
    json!([
        {"candidates": [part(json!({"text": "hm", "thought": true}))]},
        {"candidates": [part(json!({"text": "Reading."}))], "usageMetadata": {"promptTokenCount": 4}},
        {"candidates": [last], "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2}},
    ])
}

fn document_content() -> Vec<ContentBlock> {
    let mut call = tool_call("t", "read", json!({"path": "a"}));
    if let ContentBlock::ToolCall(call) = &mut call {
        call.thought_signature = Some("sig".to_owned());
    }
    vec![thinking("hm", None), ContentBlock::text("Reading."), call]
}

fn call(id: &str, path: &str) -> Value {
    json!({"functionCall": {"id": id, "name": "read", "args": {"path": path}}})
}

fn signed(mut part: Value, signature: &str) -> Value {
    part["thoughtSignature"] = json!(signature);
    part
}

fn request() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "You help."}]},
        "tools": [{"functionDeclarations": [{
            "name": "read",
            "description": "Reads a file.",
            "parametersJsonSchema": tools()[0].parameters,
        }]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {"maxOutputTokens": 8192},
        "contents": [
            {"role": "user", "parts": [{"text": "Read both."}]},
            {"role": "model", "parts": [
                {"text": "On it."}, signed(call("one", "a"), SKIP), call("two", "b"),
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "one", "name": "read", "response": {"output": "text of a\nmore"}}},
                {"functionResponse": {"id": "two", "name": "read", "response": {"error": "no such file"}}},
                {"text": "Hurry."},
            ]},
        ],
    })
}

fn pictures() -> Value {
    let png = json!({"inlineData": {"mimeType": "image/png", "data": "aGk="}});
    let omitted = "[image omitted: image/tiff is not supported here]";
    json!([
        {"role": "user", "parts": [{"text": "See:"}, png]},
        {"role": "model", "parts": [signed(call("one", "a"), SKIP), call("two", "b")]},
        {"role": "user", "parts": [
            {"functionResponse": {
                "id": "one", "name": "read", "response": {"output": "a picture"}, "parts": [png],
            }},
            {"functionResponse": {"id": "two", "name": "read", "response": {"output": omitted}}},
        ]},
    ])
}

fn annotated() -> Value {
    json!([{"role": "user", "parts": [
        {"text": "What time is it?"},
        {"text": "It is noon."},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"text": "A picture."},
        {"text": "Well?"},
    ]}])
}

fn without_blanks() -> Value {
    json!([
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": [signed(call("one", "a"), SKIP)]},
        {"role": "user", "parts": [
            {"functionResponse": {"id": "one", "name": "read", "response": {"error": "(no output)"}}},
            {"text": "b"},
        ]},
    ])
}
