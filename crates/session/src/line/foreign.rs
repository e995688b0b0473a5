//! Rows as other programs write them: messages of OpenAI's Chat Completions protocol.
//!
//! The original of the container runner keeps its sessions like that: calls are `tool_calls` of an assistant row with
//! `content: null`, and results are rows of the role `tool` with `tool_call_id`.

use serde_json::{Map, Value, json};

/// Gives a row the fields of this program's own rows. Fields that it has already are left alone.
pub(super) fn adopt(object: &mut Map<String, Value>) {
    match object.get_mut("role") {
        Some(Value::String(role)) if role == "developer" => "system".clone_into(role),
        Some(Value::String(role)) if role == "function" => "tool".clone_into(role),
        _ => {}
    }
    let calls = calls(object);
    let text = match object.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => match text_of(parts) {
            Some(text) => text,
            None => return,
        },
        // An assistant that only called tools has none, and a refusal stands in a field of its own.
        Some(Value::Null) | None if !calls.is_empty() => String::new(),
        Some(Value::Null) if object.get("role").is_some_and(|role| role == "assistant") => {
            object.get("refusal").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        _ => return,
    };
    if !object.contains_key("toolCallId")
        && let Some(id @ Value::String(_)) = object.shift_remove("tool_call_id")
    {
        object.insert("toolCallId".to_owned(), id);
        if let Some(name @ Value::String(_)) = object.get("name").cloned() {
            add_meta(object, "toolName", name);
        }
    }
    if !calls.is_empty() {
        let said = (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}));
        let blocks: Vec<Value> = said.into_iter().chain(calls).collect();
        add_meta(object, "contentBlocks", Value::Array(blocks));
        add_meta(object, "stopReason", json!("toolUse"));
    }
    object.insert("content".to_owned(), Value::String(text));
}

/// The calls of a row, as blocks.
fn calls(object: &Map<String, Value>) -> Vec<Value> {
    let listed = object.get("tool_calls").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(call).collect()
}

fn call(call: &Value) -> Option<Value> {
    let function = &call["function"];
    let name = function["name"].as_str().filter(|name| !name.is_empty())?;
    let mut block = json!({
        "type": "toolCall",
        "id": call["id"].as_str().unwrap_or_default(),
        "name": name,
        "arguments": {},
    });
    match &function["arguments"] {
        arguments @ Value::Object(_) => block["arguments"] = arguments.clone(),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(arguments @ Value::Object(_)) => block["arguments"] = arguments,
            _ if text.trim().is_empty() => {}
            _ => block["invalidArguments"] = json!(text),
        },
        _ => {}
    }
    Some(block)
}

/// The text of a list of parts; `None` if it holds none.
fn text_of(parts: &[Value]) -> Option<String> {
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Adds a field to the row's meta, unless it is there.
fn add_meta(object: &mut Map<String, Value>, name: &str, value: Value) {
    let meta = object.entry("meta").or_insert_with(|| json!({}));
    if meta.is_null() {
        *meta = json!({});
    }
    if let Value::Object(meta) = meta {
        meta.entry(name).or_insert(value);
    }
}
