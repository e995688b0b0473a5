//! The Converse API's rules, from its reference and its error messages, and the shape of a signed request.

use std::collections::HashSet;

use serde_json::Value;

use super::{Checked, is_name_char, non_empty_list, tool_name, unique, violation, visible_text};
use crate::RecordedRequest;

/// Longest name of a tool, and longest id of a call.
const LONGEST_NAME: usize = 64;

/// Most cache points in one request.
const MOST_CACHE_POINTS: usize = 4;

/// Image formats the service reads.
const IMAGE_FORMATS: [&str; 4] = ["jpeg", "png", "gif", "webp"];

/// Calls of the message before, which this one must answer, and every id so far.
#[derive(Default)]
struct Conversation<'a> {
    open: Vec<&'a str>,
    seen: HashSet<&'a str>,
    uses_tools: bool,
}

pub(super) fn check(body: &Value) -> Checked {
    let limit = &body["inferenceConfig"]["maxTokens"];
    if !limit.is_null() && limit.as_u64().is_none_or(|limit| limit == 0) {
        return Err(violation("inferenceConfig.maxTokens", "must be a positive number"));
    }
    if !body["system"].is_null() {
        for (number, block) in non_empty_list(&body["system"], "system")?.iter().enumerate() {
            text_or_image(block, &format!("system[{number}]"))?;
        }
    }
    let offers_tools = tools(&body["toolConfig"])?;
    let messages = non_empty_list(&body["messages"], "messages")?;
    let mut conversation = Conversation::default();
    for (number, message) in messages.iter().enumerate() {
        let place = format!("messages[{number}]");
        let expected = if number % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            let rule = format!(
                "the role must be {expected:?} (roles alternate, a user begins), is {}",
                message["role"]
            );
            return Err(violation(place, rule));
        }
        let content = non_empty_list(&message["content"], &format!("{place}.content"))?;
        match expected {
            "user" => conversation.user(content, &format!("{place}.content"))?,
            _ => conversation.assistant(content, &format!("{place}.content"))?,
        }
    }
    if messages.len() % 2 == 0 {
        return Err(violation("messages", "the last message must be a user's"));
    }
    if conversation.uses_tools && !offers_tools {
        return Err(violation(
            "toolConfig",
            "must be given when messages hold toolUse and toolResult blocks",
        ));
    }
    let cache_points = body.to_string().matches("\"cachePoint\":").count();
    if cache_points > MOST_CACHE_POINTS {
        return Err(violation(
            "cachePoint",
            format!("there are {cache_points}, {MOST_CACHE_POINTS} may be"),
        ));
    }
    Ok(())
}

/// Whether a request says who makes it: by a bearer token, or by a signature that has every part it needs. That the
/// signature is right is not checked here.
pub(super) fn check_authorization(request: &RecordedRequest) -> Checked {
    let wrong = |rule: &str| Err(violation("authorization", rule));
    let Some(header) = request.header("authorization") else { return wrong("is missing") };
    if header.strip_prefix("Bearer ").is_some_and(|token| !token.trim().is_empty()) {
        return Ok(());
    }
    let Some(rest) = header.strip_prefix("AWS4-HMAC-SHA256 Credential=") else {
        return wrong("is neither a bearer token nor a signature");
    };
    let parts: Vec<&str> = rest.split(", ").collect();
    let [credential, names, signature] = parts[..] else { return wrong("has not three parts") };
    let scope: Vec<&str> = credential.split('/').collect();
    let [id, date, region, "bedrock", "aws4_request"] = scope[..] else {
        return wrong("is not scoped to the service");
    };
    if id.is_empty() || region.is_empty() {
        return wrong("names no key or no region");
    }
    let Some(time) = request.header("x-amz-date") else { return wrong("needs x-amz-date") };
    let is_time = time.len() == "20150830T123600Z".len() && time.ends_with('Z');
    if !is_time || !time.starts_with(&format!("{date}T")) {
        return wrong("is of another day than x-amz-date");
    }
    let Some(names) = names.strip_prefix("SignedHeaders=") else {
        return wrong("does not say what is signed");
    };
    let names: Vec<&str> = names.split(';').collect();
    let mut needed = vec!["host", "x-amz-date"];
    if request.header("x-amz-security-token").is_some() {
        needed.push("x-amz-security-token");
    }
    if !names.is_sorted() || !needed.iter().all(|name| names.contains(name)) {
        return wrong("does not cover the headers it must, in order");
    }
    let is_hex = |text: &str| {
        text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    if !signature.strip_prefix("Signature=").is_some_and(is_hex) {
        return wrong("has no signature of 64 hexadecimal digits");
    }
    Ok(())
}

impl<'a> Conversation<'a> {
    fn user(&mut self, content: &'a [Value], place: &str) -> Checked {
        let mut answered = HashSet::new();
        for (number, block) in content.iter().enumerate() {
            let place = format!("{place}[{number}]");
            let (kind, value) = only_member(block, &place)?;
            match kind {
                "toolResult" => {
                    let id_place = format!("{place}.toolUseId");
                    let id = visible_text(&value["toolUseId"], &id_place)?;
                    if !self.open.contains(&id) {
                        let rule =
                            format!("toolResult {id:?} answers no toolUse of the message before");
                        return Err(violation(place, rule));
                    }
                    unique(&mut answered, id, &place, "the result of")?;
                    result(value, &place)?;
                }
                _ => text_or_image(block, &place)?,
            }
        }
        self.open.retain(|id| !answered.contains(id));
        match self.open.as_slice() {
            [] => Ok(()),
            open => Err(violation(
                place,
                format!("toolUse ids without a toolResult directly behind: {open:?}"),
            )),
        }
    }

    fn assistant(&mut self, content: &'a [Value], place: &str) -> Checked {
        for (number, block) in content.iter().enumerate() {
            let place = format!("{place}[{number}]");
            let (kind, value) = only_member(block, &place)?;
            match kind {
                "toolUse" => self.call(value, &place)?,
                "reasoningContent" => reasoning(value, &place)?,
                _ => text_or_image(block, &place)?,
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &'a Value, place: &str) -> Checked {
        let id = visible_text(&call["toolUseId"], &format!("{place}.toolUseId"))?;
        if id.len() > LONGEST_NAME || !id.chars().all(is_name_char) {
            return Err(violation(
                format!("{place}.toolUseId"),
                format!("{id:?} must match ^[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}$"),
            ));
        }
        unique(&mut self.seen, id, place, "toolUseId")?;
        tool_name(&call["name"], &format!("{place}.name"), LONGEST_NAME)?;
        if !call["input"].is_object() {
            return Err(violation(
                format!("{place}.input"),
                format!("must be an object, is {}", call["input"]),
            ));
        }
        self.open.push(id);
        self.uses_tools = true;
        Ok(())
    }
}

fn result(result: &Value, place: &str) -> Checked {
    if !matches!(result["status"].as_str(), None | Some("success" | "error")) {
        return Err(violation(format!("{place}.status"), format!("is {}", result["status"])));
    }
    let place = format!("{place}.content");
    for (number, block) in non_empty_list(&result["content"], &place)?.iter().enumerate() {
        if block.get("json").is_none() {
            text_or_image(block, &format!("{place}[{number}]"))?;
        }
    }
    Ok(())
}

fn reasoning(value: &Value, place: &str) -> Checked {
    match only_member(value, place)? {
        ("reasoningText", text) if text["text"].is_string() => {
            visible_text(&text["signature"], &format!("{place}.signature")).map(|_| ())
        }
        ("redactedContent", data) => {
            visible_text(data, &format!("{place}.redactedContent")).map(|_| ())
        }
        _ => Err(violation(place, "is neither reasoningText nor redactedContent")),
    }
}

fn text_or_image(block: &Value, place: &str) -> Checked {
    match only_member(block, place)? {
        ("text", text) => visible_text(text, &format!("{place}.text")).map(|_| ()),
        ("image", image) => {
            if !IMAGE_FORMATS.iter().any(|known| image["format"] == *known) {
                return Err(violation(
                    format!("{place}.format"),
                    format!("is {}", image["format"]),
                ));
            }
            visible_text(&image["source"]["bytes"], &format!("{place}.source.bytes")).map(|_| ())
        }
        ("cachePoint", point) if point["type"] == "default" => Ok(()),
        (kind, _) => Err(violation(place, format!("no block may be here that is {kind:?}"))),
    }
}

/// Whether tools are offered, once they are found to be in order.
fn tools(config: &Value) -> Checked<bool> {
    if config.is_null() {
        return Ok(false);
    }
    let mut names = HashSet::new();
    for (number, tool) in non_empty_list(&config["tools"], "toolConfig.tools")?.iter().enumerate() {
        let place = format!("toolConfig.tools[{number}]");
        let spec = match only_member(tool, &place)? {
            ("toolSpec", spec) => spec,
            ("cachePoint", _) if number > 0 => continue,
            (kind, _) => return Err(violation(place, format!("no tool is {kind:?}"))),
        };
        let name = tool_name(&spec["name"], &format!("{place}.name"), LONGEST_NAME)?;
        unique(&mut names, name, &place, "tool name")?;
        if spec["description"] == "" {
            return Err(violation(format!("{place}.description"), "must not be empty"));
        }
        if spec["inputSchema"]["json"]["type"] != "object" {
            return Err(violation(format!("{place}.inputSchema.json.type"), "must be \"object\""));
        }
    }
    Ok(true)
}

/// The only member of a block, which says what it is.
fn only_member<'a>(block: &'a Value, place: &str) -> Checked<(&'a str, &'a Value)> {
    let members = block.as_object().map(|block| block.iter().collect::<Vec<_>>());
    match members.as_deref() {
        Some([(kind, value)]) => Ok((kind.as_str(), *value)),
        _ => Err(violation(place, format!("must be an object with one member, is {block}"))),
    }
}
