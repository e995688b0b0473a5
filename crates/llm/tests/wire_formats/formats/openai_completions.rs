//! OpenAI's Chat Completions API.

use myclaw_llm::{Api, ContentBlock};
use serde_json::{Value, json};

use super::{Format, Framing};
use crate::decoding::{thinking, tool_call};
use crate::support::tools;

pub(super) const FORMAT: Format = Format {
    api: Api::OpenaiCompletions,
    framing: Framing::Text,
    streams: &[
        include_bytes!("../../data/openai_tools.sse"),
        include_bytes!("../../data/openrouter_reasoning.sse"),
        include_bytes!("../../data/ollama_tools.sse"),
    ],
    document,
    document_content,
    failing_stream: (
        b"data: {\"error\":{\"message\":\"out of memory\",\"type\":\"server_error\"}}\n\n",
        "reported an error (server_error): out of memory",
    ),
    path: "/v1/chat/completions",
    headers: &[("authorization", "Bearer sk-test-0123456789abcdef")],
    messages: "messages",
    request,
    pictures,
    annotated,
    without_blanks,
    unreadable_arguments: |messages| {
        let text = messages[2]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
        serde_json::from_str(text).unwrap()
    },
};

fn document() -> Value {
    json!({
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Reading.", "reasoning_content": "hm",
            "tool_calls": [{"id": "t", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}],
        }}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6},
    })
}

fn document_content() -> Vec<ContentBlock> {
    vec![
        thinking("hm", None),
        ContentBlock::text("Reading."),
        tool_call("t", "read", json!({"path": "a"})),
    ]
}

fn calls() -> Value {
    json!([
        {"id": "one", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
        {"id": "two", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"b\"}"}},
    ])
}

fn request() -> Value {
    json!({
        "model": "test-model",
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 8192,
        "tools": [{"type": "function", "function": {
            "name": "read", "description": "Reads a file.", "parameters": tools()[0].parameters,
        }}],
        "tool_choice": "auto",
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": "Read both."},
            {"role": "assistant", "content": "On it.", "tool_calls": calls()},
            {"role": "tool", "content": "text of a\nmore", "tool_call_id": "one"},
            {"role": "tool", "content": "no such file", "tool_call_id": "two"},
            {"role": "user", "content": "Hurry."},
        ],
    })
}

fn pictures() -> Value {
    let url = |kind: &str| json!({"type": "image_url", "image_url": {"url": format!("data:{kind};base64,aGk=")}});
    let note = json!({"type": "text", "text": "Image from the result of tool read:"});
    json!([
        {"role": "system", "content": "You help."},
        {"role": "user", "content": [{"type": "text", "text": "See:"}, url("image/png")]},
        {"role": "assistant", "tool_calls": calls()},
        {"role": "tool", "content": "a picture", "tool_call_id": "one"},
        {"role": "tool", "content": "(image in the next message)", "tool_call_id": "two"},
        {"role": "user", "content": [note, url("image/png"), note, url("image/tiff")]},
    ])
}

fn annotated() -> Value {
    let picture = json!([
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "text", "text": "A picture."},
    ]);
    json!([
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "What time is it?\nIt is noon."},
        {"role": "user", "content": picture},
        {"role": "user", "content": "Well?"},
    ])
}

fn without_blanks() -> Value {
    json!([
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "a"},
        {"role": "assistant", "tool_calls": [calls()[0]]},
        {"role": "tool", "content": "(no output)", "tool_call_id": "one"},
        {"role": "user", "content": "b"},
    ])
}
