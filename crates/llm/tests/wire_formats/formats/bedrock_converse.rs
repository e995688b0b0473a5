//! Amazon Bedrock's Converse API, for a model of which nothing is known.

use myclaw_llm::{Api, ContentBlock};
use serde_json::{Value, json};

use super::{Format, Framing};
use crate::decoding::{thinking, tool_call};
use crate::support::tools;

pub(super) const FORMAT: Format = Format {
    api: Api::BedrockConverse,
    framing: Framing::Binary,
    streams: &[
        include_bytes!("../../data/bedrock_tools.bin"),
        include_bytes!("../../data/recorded/bedrock_converse/tool_call.bin"),
        include_bytes!("../../data/recorded/bedrock_converse/text_and_tool_call.bin"),
    ],
    document,
    document_content,
    failing_stream: (
        include_bytes!("../../data/bedrock_failure.bin"),
        "reported an error (modelStreamErrorException): The system encountered an unexpected error",
    ),
    path: "/model/test-model/converse-stream",
    headers: &[
        ("authorization", "Bearer sk-test-0123456789abcdef"),
        ("accept", "application/vnd.amazon.eventstream"),
    ],
    messages: "messages",
    request,
    pictures,
    annotated,
    without_blanks,
    unreadable_arguments: |messages| messages[1]["content"][0]["toolUse"]["input"].clone(),
};

fn document() -> Value {
    json!({
        "metrics": {"latencyMs": 1771},
        "output": {"message": {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
            {"text": "Reading."},
            {"toolUse": {"toolUseId": "t", "name": "read", "input": {"path": "a"}, "type": "tool_use"}},
        ]}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 4, "outputTokens": 2, "totalTokens": 6},
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
        "toolConfig": {"tools": [{"toolSpec": {
            "name": "read",
            "description": "Reads a file.",
            "inputSchema": {"json": tools()[0].parameters},
        }}]},
        "system": [{"text": "You help."}],
        "inferenceConfig": {"maxTokens": 8192},
        "messages": [
            {"role": "user", "content": [{"text": "Read both."}]},
            {"role": "assistant", "content": [
                {"text": "On it."},
                {"toolUse": {"toolUseId": "one", "name": "read", "input": {"path": "a"}}},
                {"toolUse": {"toolUseId": "two", "name": "read", "input": {"path": "b"}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "one", "content": [{"text": "text of a"}, {"text": "more"}]}},
                {"toolResult": {"toolUseId": "two", "content": [{"text": "no such file"}]}},
                {"text": "Hurry."},
            ]},
        ],
    })
}

fn pictures() -> Value {
    let png = json!({"image": {"format": "png", "source": {"bytes": "aGk="}}});
    let omitted = "[image omitted: image/tiff is not supported here]";
    json!([
        {"role": "user", "content": [{"text": "See:"}, png]},
        {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "one", "name": "read", "input": {"path": "a"}}},
            {"toolUse": {"toolUseId": "two", "name": "read", "input": {"path": "b"}}},
        ]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "one", "content": [{"text": "a picture"}, png]}},
            {"toolResult": {"toolUseId": "two", "content": [{"text": omitted}]}},
        ]},
    ])
}

fn annotated() -> Value {
    json!([{"role": "user", "content": [
        {"text": "What time is it?"},
        {"text": "It is noon."},
        {"image": {"format": "png", "source": {"bytes": "aGk="}}},
        {"text": "A picture."},
        {"text": "Well?"},
    ]}])
}

fn without_blanks() -> Value {
    json!([
        {"role": "user", "content": [{"text": "a"}]},
        {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "one", "name": "read", "input": {"path": "a"}}},
        ]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "one", "content": [{"text": "(no output)"}]}},
            {"text": "b"},
        ]},
    ])
}
