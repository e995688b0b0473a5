//! The Chat Completions API's rules, with those of the stricter hosts that speak the same format.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Checked, items, model, non_empty_list, object_in_string, offered_tool, text_or_items,
    tool_name, unique, violation, visible_text,
};

/// Longest name of a function.
const LONGEST_NAME: usize = 64;

/// Longest id of a call.
const LONGEST_ID: usize = 40;

pub(super) fn check(body: &Value) -> Checked {
    model(body)?;
    tools(&body["tools"])?;
    let messages = non_empty_list(&body["messages"], "messages")?;
    let system = messages.iter().take_while(|message| is_system(message)).count();
    for (number, message) in messages[..system].iter().enumerate() {
        text_content(&message["content"], &format!("messages[{number}].content"))?;
    }
    if messages.get(system).is_none_or(|message| message["role"] != "user") {
        return Err(violation(
            format!("messages[{system}]"),
            "the first message after the system's must be a user's",
        ));
    }
    let mut open: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    for (number, message) in messages.iter().enumerate().skip(system) {
        let place = format!("messages[{number}]");
        let role = message["role"].as_str();
        if role != Some("tool") && !open.is_empty() {
            return Err(violation(
                place,
                format!("tool calls without a tool message directly after them: {open:?}"),
            ));
        }
        match role {
            Some("user") => {
                text_or_items(&message["content"], &format!("{place}.content"), user_part)?;
            }
            Some("assistant") => open = assistant(message, &place, &mut seen)?,
            Some("tool") => {
                let id = visible_text(&message["tool_call_id"], &format!("{place}.tool_call_id"))?;
                let Some(position) = open.iter().position(|call| *call == id) else {
                    let rule = format!(
                        "tool_call_id {id:?} answers no open call of the assistant message before"
                    );
                    return Err(violation(place, rule));
                };
                open.remove(position);
                text_content(&message["content"], &format!("{place}.content"))?;
            }
            // OpenAI takes system messages anywhere; chat templates of other hosts refuse them after the first.
            _ if is_system(message) => {
                return Err(violation(place, "system messages come first or not at all"));
            }
            _ => return Err(violation(place, format!("unknown role {}", message["role"]))),
        }
    }
    if !open.is_empty() {
        return Err(violation(
            "messages",
            format!("tool calls without a tool message after them: {open:?}"),
        ));
    }
    match messages.last() {
        Some(last) if last["role"] == "assistant" => {
            Err(violation("messages", "the last message must be a user's or a tool's"))
        }
        _ => Ok(()),
    }
}

fn is_system(message: &Value) -> bool {
    message["role"] == "system" || message["role"] == "developer"
}

/// Checks an assistant message and gives the ids of its calls.
fn assistant<'a>(
    message: &'a Value,
    place: &str,
    seen: &mut HashSet<&'a str>,
) -> Checked<Vec<&'a str>> {
    let mut ids = Vec::new();
    if let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) {
        for (place, call) in items(calls, &format!("{place}.tool_calls"))? {
            let id = visible_text(&call["id"], &format!("{place}.id"))?;
            if id.len() > LONGEST_ID {
                return Err(violation(
                    format!("{place}.id"),
                    format!("{id:?} is longer than {LONGEST_ID}"),
                ));
            }
            unique(seen, id, &place, "tool call id")?;
            if call["type"] != "function" {
                return Err(violation(format!("{place}.type"), "must be \"function\""));
            }
            tool_name(&call["function"]["name"], &format!("{place}.function.name"), LONGEST_NAME)?;
            let arguments = &call["function"]["arguments"];
            object_in_string(arguments, &format!("{place}.function.arguments"))?;
            ids.push(id);
        }
    }
    match &message["content"] {
        Value::Null if !ids.is_empty() => {}
        Value::Null => {
            return Err(violation(place, "an assistant message needs content or tool calls"));
        }
        content => text_content(content, &format!("{place}.content"))?,
    }
    Ok(ids)
}

/// Text, whole or in parts.
fn text_content(content: &Value, place: &str) -> Checked {
    text_or_items(content, place, |part, place| {
        if part["type"] != "text" {
            let rule = format!("only text may stand here, not {}", part["type"]);
            return Err(violation(place, rule));
        }
        visible_text(&part["text"], &format!("{place}.text")).map(|_| ())
    })
}

/// Text and images.
fn user_part(part: &Value, place: &str) -> Checked {
    let (field, place) = match part["type"].as_str() {
        Some("text") => (&part["text"], format!("{place}.text")),
        Some("image_url") => (&part["image_url"]["url"], format!("{place}.image_url.url")),
        _ => {
            let rule = format!("no part of a user message: {}", part["type"]);
            return Err(violation(place, rule));
        }
    };
    visible_text(field, &place).map(|_| ())
}

fn tools(tools: &Value) -> Checked {
    let mut names = HashSet::new();
    for (number, tool) in tools.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate() {
        let place = format!("tools[{number}]");
        if tool["type"] != "function" {
            return Err(violation(format!("{place}.type"), "must be \"function\""));
        }
        let place = format!("{place}.function");
        offered_tool(&mut names, &tool["function"], "/parameters", LONGEST_NAME, &place)?;
    }
    Ok(())
}
