//! The content of a message: text, or a list of blocks of several programs' and providers' kinds.

use myclaw_llm::{ContentBlock, ImageContent, TextContent, ThinkingContent, ToolCall, joined_text};
use serde_json::{Map, Value};

use crate::left_out::LeftOut;

/// The content of a message.
#[derive(Default)]
pub(super) struct MessageContent {
    pub(super) blocks: Vec<ContentBlock>,
    /// Tool results in it.
    pub(super) results: Vec<ToolResult>,
}

/// The result of a tool as a block.
pub(super) struct ToolResult {
    pub(super) call_id: String,
    pub(super) blocks: Vec<ContentBlock>,
    pub(super) is_error: bool,
}

impl MessageContent {
    /// Reads the field `content`.
    pub(super) fn read(value: Option<&Value>, left_out: &mut LeftOut) -> Self {
        let mut content = Self::default();
        match value {
            None | Some(Value::Null) => {}
            Some(Value::Array(blocks)) => {
                for block in blocks {
                    content.add(block, left_out);
                }
            }
            Some(block) => content.add(block, left_out),
        }
        content
    }

    fn add(&mut self, value: &Value, left_out: &mut LeftOut) {
        let fields = match value {
            Value::String(text) => {
                if !text.is_empty() {
                    self.blocks.push(ContentBlock::text(text.as_str()));
                }
                return;
            }
            Value::Object(fields) => fields,
            _ => return left_out.add("content block that is not an object"),
        };
        let kind = text(fields, "type");
        if kind == "tool_result" {
            self.results.push(ToolResult {
                call_id: text(fields, "tool_use_id").to_owned(),
                blocks: Self::read(fields.get("content"), left_out).blocks,
                is_error: fields.get("is_error") == Some(&Value::Bool(true)),
            });
            return;
        }
        match block(kind, fields) {
            Some(block) => self.blocks.push(block),
            None => left_out.add_named("content block of the type", kind),
        }
    }
}

fn block(kind: &str, fields: &Map<String, Value>) -> Option<ContentBlock> {
    Some(match kind {
        "text" | "input_text" | "output_text" => ContentBlock::Text(TextContent {
            text: text(fields, "text").to_owned(),
            text_signature: optional(fields, "textSignature"),
            outside: Vec::new(),
        }),
        "refusal" => ContentBlock::text(text(fields, "refusal")),
        "thinking" | "reasoning" => ContentBlock::Thinking(ThinkingContent {
            thinking: [text(fields, "thinking"), text(fields, "text")].concat(),
            thinking_signature: optional(fields, "thinkingSignature")
                .or_else(|| optional(fields, "signature")),
            redacted: fields.get("redacted") == Some(&Value::Bool(true)),
        }),
        "redacted_thinking" => ContentBlock::Thinking(ThinkingContent {
            thinking: String::new(),
            thinking_signature: optional(fields, "data"),
            redacted: true,
        }),
        "image" => ContentBlock::Image(image(fields)?),
        "image_url" | "input_image" => {
            let url = match fields.get("image_url")? {
                Value::String(url) => url,
                object => object.get("url")?.as_str()?,
            };
            image_at(url)
        }
        "toolCall" | "tool_use" => {
            let arguments = fields.get("arguments").or_else(|| fields.get("input"));
            call(text(fields, "id"), text(fields, "name"), arguments, fields)
        }
        _ => return None,
    })
}

fn image(fields: &Map<String, Value>) -> Option<ImageContent> {
    let source = fields.get("source").and_then(Value::as_object).unwrap_or(fields);
    let mime_type = optional(source, "mimeType").or_else(|| optional(source, "media_type"))?;
    Some(ImageContent { data: optional(source, "data")?, mime_type })
}

/// An image in a `data:` URL. An image at another URL is not fetched, only named.
fn image_at(url: &str) -> ContentBlock {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((mime_type, data)) => ContentBlock::Image(ImageContent {
            data: data.to_owned(),
            mime_type: mime_type.to_owned(),
        }),
        None => ContentBlock::text(format!("[an image at {url}]")),
    }
}

/// The calls next to the content, as in OpenAI's interface.
pub(super) fn tool_calls(fields: &Map<String, Value>, left_out: &mut LeftOut) -> Vec<ContentBlock> {
    let beside = fields.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice);
    let mut calls = Vec::new();
    for value in beside.unwrap_or_default() {
        match (value.get("function").and_then(Value::as_object), value.get("id")) {
            (Some(function), id) => {
                let id = id.and_then(Value::as_str).unwrap_or_default();
                calls.push(call(id, text(function, "name"), function.get("arguments"), function));
            }
            (None, _) => left_out.add("tool call that is not a function"),
        }
    }
    if let Some(function) = fields.get("function_call").and_then(Value::as_object) {
        calls.push(call("", text(function, "name"), function.get("arguments"), function));
    }
    calls
}

/// A call, whose arguments are an object or the text of one.
fn call(
    id: &str,
    name: &str,
    arguments: Option<&Value>,
    fields: &Map<String, Value>,
) -> ContentBlock {
    let (arguments, invalid_arguments) = match arguments {
        Some(Value::Object(arguments)) => (arguments.clone(), None),
        None | Some(Value::Null) => (Map::new(), None),
        Some(Value::String(text)) if text.trim().is_empty() => (Map::new(), None),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(arguments) => (arguments, None),
            Err(_) => (Map::new(), Some(text.clone())),
        },
        Some(other) => (Map::new(), Some(other.to_string())),
    };
    ContentBlock::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
        invalid_arguments: invalid_arguments.or_else(|| optional(fields, "invalidArguments")),
        thought_signature: optional(fields, "thoughtSignature"),
    })
}

/// Reasoning without a signature.
pub(super) fn thinking(text: &str) -> ContentBlock {
    ContentBlock::Thinking(ThinkingContent {
        thinking: text.to_owned(),
        ..ThinkingContent::default()
    })
}

/// Removes state that is valid for one wire format only; returns the number of signatures. Reasoning that consists of a
/// signature alone is removed too.
pub(super) fn remove_signatures(content: &mut Vec<ContentBlock>) -> u64 {
    let mut removed = 0;
    for block in content.iter_mut() {
        let signature = match block {
            ContentBlock::Text(text) => text.text_signature.take(),
            ContentBlock::Thinking(thinking) => thinking.thinking_signature.take(),
            ContentBlock::ToolCall(call) => call.thought_signature.take(),
            ContentBlock::Image(_) => None,
        };
        removed += u64::from(signature.is_some());
    }
    content.retain(
        |block| !matches!(block, ContentBlock::Thinking(thinking) if thinking.thinking.is_empty()),
    );
    removed
}

/// All text of some blocks.
pub(super) fn text_of(blocks: &[ContentBlock]) -> String {
    joined_text(blocks, "\n")
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn optional(fields: &Map<String, Value>, name: &str) -> Option<String> {
    let text = text(fields, name);
    (!text.is_empty()).then(|| text.to_owned())
}
