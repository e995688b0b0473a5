//! Anthropic's Messages API.

use myclaw_llm::{Api, ContentBlock};
use serde_json::{Value, json};

use super::{Format, Framing};
use crate::decoding::{thinking, tool_call};
use crate::support::tools;

pub(super) const FORMAT: Format = Format {
    api: Api::AnthropicMessages,
    framing: Framing::Text,
    streams: &[include_bytes!("../../data/anthropic_tools.sse")],
    document,
    document_content,
    failing_stream: (
        b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        "reported an error (overloaded_error): Overloaded",
    ),
    path: "/v1/messages",
    headers: &[("x-api-key", "sk-test-0123456789abcdef"), ("anthropic-version", "2023-06-01")],
    messages: "messages",
    request,
    pictures,
    annotated,
    without_blanks,
    unreadable_arguments: |messages| messages[1]["content"][0]["input"].clone(),
};

fn document() -> Value {
    json!({
        "type": "message", "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "Reading."},
            {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a"}},
        ],
        "stop_reason": "tool_use", "usage": {"input_tokens": 4, "output_tokens": 2},
    })
}

fn document_content() -> Vec<ContentBlock> {
    vec![
        thinking("hm", Some("sig")),
        ContentBlock::text("Reading."),
        tool_call("t", "read", json!({"path": "a"})),
    ]
}

fn request() -> Value {
    json!({
        "model": "test-model",
        "max_tokens": 8192,
        "stream": true,
        "tools": [{
            "name": "read",
            "description": "Reads a file.",
            "input_schema": tools()[0].parameters,
            "cache_control": {"type": "ephemeral"},
        }],
        "system": [{"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Read both.", "cache_control": {"type": "ephemeral"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "On it."},
                {"type": "tool_use", "id": "one", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "two", "name": "read", "input": {"path": "b"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "one", "content": [
                    {"type": "text", "text": "text of a"}, {"type": "text", "text": "more"},
                ]},
                {"type": "tool_result", "tool_use_id": "two", "is_error": true, "content": [
                    {"type": "text", "text": "no such file"},
                ]},
                {"type": "text", "text": "Hurry.", "cache_control": {"type": "ephemeral"}},
            ]},
        ],
    })
}

fn pictures() -> Value {
    let png = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let mut cached_png = png.clone();
    cached_png["cache_control"] = json!({"type": "ephemeral"});
    let omitted = "[image omitted: image/tiff is not supported here]";
    json!([
        {"role": "user", "content": [{"type": "text", "text": "See:"}, cached_png]},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "one", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "two", "name": "read", "input": {"path": "b"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "one", "content": [{"type": "text", "text": "a picture"}, png]},
            {"type": "tool_result", "tool_use_id": "two", "content": [{"type": "text", "text": omitted}],
             "cache_control": {"type": "ephemeral"}},
        ]},
    ])
}

fn annotated() -> Value {
    json!([{"role": "user", "content": [
        {"type": "text", "text": "What time is it?"},
        {"type": "text", "text": "It is noon."},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "text", "text": "A picture."},
        {"type": "text", "text": "Well?", "cache_control": {"type": "ephemeral"}},
    ]}])
}

fn without_blanks() -> Value {
    json!([
        {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "one", "name": "read", "input": {"path": "a"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "one", "is_error": true,
             "content": [{"type": "text", "text": "(no output)"}]},
            {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}},
        ]},
    ])
}
