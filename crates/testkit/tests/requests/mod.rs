//! A request in each format, with every kind of block, that breaks no rule.

use serde_json::{Value, json};

pub(crate) fn anthropic() -> Value {
    json!({
        "model": "m", "max_tokens": 10, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "bash", "description": "", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "", "signature": "s"},
                {"type": "text", "text": "both"},
                {"type": "tool_use", "id": "a", "name": "bash", "input": {}},
                {"type": "tool_use", "id": "b", "name": "bash", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "two"},
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "one"}]},
                {"type": "text", "text": "and?"},
            ]},
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "ok"}]},
            {"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            ]},
        ],
    })
}

pub(crate) fn openai() -> Value {
    json!({
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "data:"}}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "bash", "arguments": "{\"x\": 1}"}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": "more"},
        ],
    })
}

pub(crate) fn google() -> Value {
    let png = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    json!({
        "systemInstruction": {"parts": [{"text": "s"}]},
        "tools": [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": {"type": "object"}}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}, png]},
            {"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"text": "", "thoughtSignature": "s"},
                {"functionCall": {"id": "a", "name": "bash", "args": {}}, "thoughtSignature": "t"},
                {"functionCall": {"id": "b", "name": "bash", "args": {"x": 1}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "a", "name": "bash", "response": {"output": "x"}, "parts": [png]}},
                {"functionResponse": {"id": "b", "name": "bash", "response": {"error": "x"}}},
                {"text": "and?"},
            ]},
            {"role": "model", "parts": [{"text": "ok"}]},
            {"role": "user", "parts": [{"text": "more"}]},
        ],
    })
}

pub(crate) fn bedrock() -> Value {
    json!({
        "toolConfig": {"tools": [
            {"toolSpec": {"name": "bash", "inputSchema": {"json": {"type": "object"}}}},
            {"cachePoint": {"type": "default"}},
        ]},
        "system": [{"text": "s"}, {"cachePoint": {"type": "default"}}],
        "inferenceConfig": {"maxTokens": 10},
        "messages": [
            {"role": "user", "content": [{"text": "hi"}, {"cachePoint": {"type": "default"}}]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "", "signature": "s"}}},
                {"text": "both"},
                {"toolUse": {"toolUseId": "a", "name": "bash", "input": {}}},
                {"toolUse": {"toolUseId": "b", "name": "bash", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "b", "content": [{"json": {}}]}},
                {"toolResult": {"toolUseId": "a", "content": [{"text": "one"}], "status": "error"}},
                {"text": "and?"},
            ]},
            {"role": "assistant", "content": [{"reasoningContent": {"redactedContent": "x"}}, {"text": "ok"}]},
            {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": "AAAA"}}}]},
        ],
    })
}

pub(crate) fn responses() -> Value {
    json!({
        "model": "m", "max_output_tokens": 16,
        "tools": [{"type": "function", "name": "bash", "parameters": {"type": "object"}}],
        "input": [
            {"role": "developer", "content": "s"},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": "data:"},
            ]},
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "id": "fc", "call_id": "a", "name": "bash", "arguments": "{}"},
            {"type": "function_call", "call_id": "b", "name": "bash", "arguments": "{\"x\": 1}"},
            {"type": "function_call_output", "call_id": "b", "output": "two"},
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "one"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
            {"type": "message", "role": "user", "content": "more"},
        ],
    })
}
