//! The Converse API's rules, from its reference and its error messages, and the shape of a signed request.

use std::collections::HashSet;

use serde_json::Value;

use super::calls::Calls;
use super::{
    Checked, alternating, items, object, offered_tool, token, tool_name, violation, visible_text,
};
use crate::RecordedRequest;

/// Longest name of a tool, and longest id of a call.
const LONGEST_NAME: usize = 64;

/// Most cache points in one request.
const MOST_CACHE_POINTS: usize = 4;

/// Image formats the service reads.
const IMAGE_FORMATS: [&str; 4] = ["jpeg", "png", "gif", "webp"];

/// The messages so far.
struct Checker<'a> {
    calls: Calls<'a>,
}

pub(super) fn check(body: &Value) -> Checked {
    let limit = &body["inferenceConfig"]["maxTokens"];
    if !limit.is_null() && limit.as_u64().is_none_or(|limit| limit == 0) {
        return Err(violation("inferenceConfig.maxTokens", "must be a positive number"));
    }
    if !body["system"].is_null() {
        for (place, block) in items(&body["system"], "system")? {
            text_or_image(block, &place)?;
        }
    }
    let offers_tools = tools(&body["toolConfig"])?;
    let messages = alternating(&body["messages"], "messages", "assistant")?;
    let mut checker = Checker { calls: Calls::new("toolUse", "toolResult") };
    for (role, place, message) in messages {
        let place = format!("{place}.content");
        match role {
            "user" => checker.user(&message["content"], &place)?,
            _ => checker.assistant(&message["content"], &place)?,
        }
    }
    if checker.calls.are_there_any() && !offers_tools {
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

/// True if a request is authenticated: by a bearer token, or by a signature with every required part. The signature
/// itself is not verified here.
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

impl<'a> Checker<'a> {
    fn user(&mut self, content: &'a Value, place: &str) -> Checked {
        for (place, block) in items(content, place)? {
            let (kind, value) = only_member(block, &place)?;
            match kind {
                "toolResult" => {
                    let id_place = format!("{place}.toolUseId");
                    let id = visible_text(&value["toolUseId"], &id_place)?;
                    self.calls.answered(id, &place)?;
                    result(value, &place)?;
                }
                _ => text_or_image(block, &place)?,
            }
        }
        self.calls.all_answered(place)
    }

    fn assistant(&mut self, content: &'a Value, place: &str) -> Checked {
        for (place, block) in items(content, place)? {
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
        let id_place = format!("{place}.toolUseId");
        self.calls.made(token(&call["toolUseId"], &id_place, Some(LONGEST_NAME))?, place)?;
        tool_name(&call["name"], &format!("{place}.name"), LONGEST_NAME)?;
        object(&call["input"], &format!("{place}.input"))
    }
}

fn result(result: &Value, place: &str) -> Checked {
    if !matches!(result["status"].as_str(), None | Some("success" | "error")) {
        return Err(violation(format!("{place}.status"), format!("is {}", result["status"])));
    }
    let place = format!("{place}.content");
    for (place, block) in items(&result["content"], &place)? {
        if block.get("json").is_none() {
            text_or_image(block, &place)?;
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
    for (number, (place, tool)) in items(&config["tools"], "toolConfig.tools")?.enumerate() {
        let spec = match only_member(tool, &place)? {
            ("toolSpec", spec) => spec,
            ("cachePoint", _) if number > 0 => continue,
            (kind, _) => return Err(violation(place, format!("no tool is {kind:?}"))),
        };
        offered_tool(&mut names, spec, "/inputSchema/json", LONGEST_NAME, &place)?;
        if spec["description"] == "" {
            return Err(violation(format!("{place}.description"), "must not be empty"));
        }
    }
    Ok(true)
}

/// The only member of a block, which names its kind.
fn only_member<'a>(block: &'a Value, place: &str) -> Checked<(&'a str, &'a Value)> {
    let members = block.as_object().map(|block| block.iter().collect::<Vec<_>>());
    match members.as_deref() {
        Some([(kind, value)]) => Ok((kind.as_str(), *value)),
        _ => Err(violation(place, format!("must be an object with one member, is {block}"))),
    }
}
