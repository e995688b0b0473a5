//! OpenAI's Responses API.

use myclaw_llm::{Api, ContentBlock, TextContent, ThinkingContent};
use serde_json::{Value, json};

use super::{Format, Framing};
use crate::decoding::{call_with_state, tool_call};
use crate::support::tools;

pub(super) const FORMAT: Format = Format {
    api: Api::OpenaiResponses,
    framing: Framing::Text,
    streams: &[
        include_bytes!("../../data/responses_tools.sse"),
        include_bytes!("../../data/responses_done_only.sse"),
    ],
    document,
    document_content,
    failing_stream: (
        b"event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"out of memory\",\"param\":null,\"sequence_number\":1}\n\n",
        "reported an error (server_error): out of memory",
    ),
    path: "/v1/responses",
    headers: &[("authorization", "Bearer sk-test-0123456789abcdef")],
    messages: "input",
    request,
    pictures,
    annotated,
    without_blanks,
    unreadable_arguments: |messages| {
        serde_json::from_str(messages[2]["arguments"].as_str().unwrap()).unwrap()
    },
};

fn document() -> Value {
    json!({
        "object": "response", "status": "completed", "error": null,
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
             "encrypted_content": "sealed"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "Reading.", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "t", "name": "read", "arguments": "{\"path\":\"a\"}"},
        ],
        "usage": {"input_tokens": 4, "output_tokens": 2, "total_tokens": 6},
    })
}

fn document_content() -> Vec<ContentBlock> {
    vec![
        ContentBlock::Thinking(ThinkingContent {
            thinking: "hm".to_owned(),
            thinking_signature: Some(
                r#"{"id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"sealed"}"#
                    .to_owned(),
            ),
            redacted: false,
        }),
        ContentBlock::Text(TextContent {
            text: "Reading.".to_owned(),
            text_signature: Some(r#"{"id":"msg_1"}"#.to_owned()),
            outside: Vec::new(),
        }),
        call_with_state(tool_call("t", "read", json!({"path": "a"})), "fc_1"),
    ]
}

fn message(role: &str, content: impl Into<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content.into()})
}

fn call(id: &str, path: &str) -> Value {
    let arguments = json!({"path": path}).to_string();
    json!({"type": "function_call", "call_id": id, "name": "read", "arguments": arguments})
}

fn output(id: &str, output: impl Into<Value>) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output.into()})
}

fn picture(kind: &str) -> Value {
    let url = format!("data:{kind};base64,aGk=");
    json!({"type": "input_image", "image_url": url, "detail": "auto"})
}

fn request() -> Value {
    json!({
        "model": "test-model",
        "stream": true,
        "store": false,
        "max_output_tokens": 8192,
        "tools": [{
            "type": "function", "name": "read", "description": "Reads a file.",
            "parameters": tools()[0].parameters, "strict": false,
        }],
        "tool_choice": "auto",
        "input": [
            message("system", "You help."),
            message("user", "Read both."),
            message("assistant", "On it."),
            call("one", "a"),
            call("two", "b"),
            output("one", "text of a\nmore"),
            output("two", "no such file"),
            message("user", "Hurry."),
        ],
    })
}

fn pictures() -> Value {
    json!([
        message("system", "You help."),
        message("user", json!([{"type": "input_text", "text": "See:"}, picture("image/png")])),
        call("one", "a"),
        call("two", "b"),
        output("one", json!([{"type": "input_text", "text": "a picture"}, picture("image/png")])),
        output("two", json!([picture("image/tiff")])),
    ])
}

fn annotated() -> Value {
    let text = json!({"type": "input_text", "text": "A picture."});
    json!([
        message("system", "You help."),
        message("user", "What time is it?\nIt is noon."),
        message("user", json!([picture("image/png"), text])),
        message("user", "Well?"),
    ])
}

fn without_blanks() -> Value {
    json!([
        message("system", "You help."),
        message("user", "a"),
        call("one", "a"),
        output("one", "(no output)"),
        message("user", "b"),
    ])
}
