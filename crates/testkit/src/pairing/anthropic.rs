//! The Messages API's rules.

use std::collections::HashSet;

use serde_json::Value;

use super::calls::Calls;
use super::{
    Checked, alternating, items, model, non_empty_list, object, offered_tool, text_or_items, token,
    tool_name, violation, visible_text,
};

/// Longest name of a tool.
const LONGEST_NAME: usize = 128;

/// Most blocks of one request that may carry `cache_control`.
const MOST_CACHE_POINTS: usize = 4;

/// Least budget for thinking, in tokens.
const SMALLEST_BUDGET: u64 = 1_024;

/// Image types the service reads.
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The messages so far.
struct Checker<'a> {
    calls: Calls<'a>,
}

pub(super) fn check(body: &Value) -> Checked {
    model(body)?;
    if body["max_tokens"].as_u64().is_none_or(|limit| limit == 0) {
        return Err(violation("max_tokens", "must be a positive number"));
    }
    thinking(body)?;
    system(&body["system"])?;
    let offers_tools = tools(&body["tools"])?;
    let messages = alternating(&body["messages"], "messages", "assistant")?;
    let mut checker = Checker { calls: Calls::new("tool_use", "tool_result") };
    for (role, place, message) in &messages {
        let place = format!("{place}.content");
        match *role {
            "user" => checker.user(&message["content"], &place)?,
            _ => checker.assistant(&message["content"], &place)?,
        }
    }
    if checker.calls.are_there_any() && !offers_tools {
        return Err(violation("tools", "must be given when messages hold tool calls"));
    }
    continued_calls(body, &messages)?;
    let cache_points = cache_points(body);
    if cache_points > MOST_CACHE_POINTS {
        return Err(violation(
            "cache_control",
            format!("{cache_points} blocks carry it, {MOST_CACHE_POINTS} may"),
        ));
    }
    Ok(())
}

impl<'a> Checker<'a> {
    fn user(&mut self, content: &'a Value, place: &str) -> Checked {
        if content.is_string() {
            visible_text(content, place)?;
            return self.calls.all_answered(place);
        }
        let mut after_results = false;
        for (place, block) in items(content, place)? {
            match block["type"].as_str() {
                Some("tool_result") if after_results => {
                    return Err(violation(
                        place,
                        "tool results must come before any other content",
                    ));
                }
                Some("tool_result") => {
                    let id = visible_text(&block["tool_use_id"], &format!("{place}.tool_use_id"))?;
                    self.calls.answered(id, &place)?;
                    text_or_items(&block["content"], &format!("{place}.content"), text_or_image)?;
                }
                Some("text" | "image") => {
                    after_results = true;
                    text_or_image(block, &place)?;
                }
                _ => {
                    return Err(violation(place, format!("no block of a user: {}", block["type"])));
                }
            }
        }
        self.calls.all_answered(place)
    }

    fn assistant(&mut self, content: &'a Value, place: &str) -> Checked {
        if content.is_string() {
            return visible_text(content, place).map(|_| ());
        }
        let blocks = non_empty_list(content, place)?;
        if blocks.last().is_some_and(is_thinking) {
            return Err(violation(place, "the final block cannot be thinking"));
        }
        for (place, block) in items(content, place)? {
            match block["type"].as_str() {
                Some("text") => text_or_image(block, &place)?,
                Some("thinking") => {
                    visible_text(&block["signature"], &format!("{place}.signature"))?;
                    if !block["thinking"].is_string() {
                        return Err(violation(place, "a thinking block needs its text"));
                    }
                    no_cache_point(block, &place)?;
                }
                Some("redacted_thinking") => {
                    visible_text(&block["data"], &format!("{place}.data"))?;
                    no_cache_point(block, &place)?;
                }
                Some("tool_use") => self.call(block, &place)?,
                _ => {
                    return Err(violation(
                        place,
                        format!("no block of an assistant: {}", block["type"]),
                    ));
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, block: &'a Value, place: &str) -> Checked {
        let id = token(&block["id"], &format!("{place}.id"), None)?;
        self.calls.made(id, place)?;
        tool_name(&block["name"], &format!("{place}.name"), LONGEST_NAME)?;
        object(&block["input"], &format!("{place}.input"))
    }
}

fn is_thinking(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// How the model is asked to think.
fn thinking(body: &Value) -> Checked {
    let thinking = &body["thinking"];
    match thinking["type"].as_str() {
        None if thinking.is_null() => Ok(()),
        Some("disabled" | "adaptive") if thinking.get("budget_tokens").is_some() => {
            Err(violation("thinking.budget_tokens", "only goes with the type enabled"))
        }
        Some("disabled") if thinking.get("block_binding").is_some() => {
            Err(violation("thinking.block_binding", "does not go with the type disabled"))
        }
        Some("disabled" | "adaptive") => Ok(()),
        Some("enabled") => {
            let budget = thinking["budget_tokens"].as_u64().unwrap_or_default();
            if budget < SMALLEST_BUDGET || Some(budget) >= body["max_tokens"].as_u64() {
                let rule = format!("{budget} is not from {SMALLEST_BUDGET} to below max_tokens");
                return Err(violation("thinking.budget_tokens", rule));
            }
            Ok(())
        }
        _ => Err(violation("thinking.type", format!("is {}", thinking["type"]))),
    }
}

/// With a budget for thinking, an answer whose tool calls go on must have begun with thinking.
fn continued_calls(body: &Value, messages: &[(&str, String, &Value)]) -> Checked {
    let [.., (_, _, assistant), (_, _, last)] = messages else { return Ok(()) };
    let holds_result = last["content"]
        .as_array()
        .is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"));
    if body["thinking"]["type"] == "enabled"
        && holds_result
        && !is_thinking(&assistant["content"][0])
    {
        let rule = "when thinking is enabled, a final assistant message must start with thinking";
        return Err(violation("messages", rule));
    }
    Ok(())
}

fn text_or_image(block: &Value, place: &str) -> Checked {
    match block["type"].as_str() {
        Some("text") => visible_text(&block["text"], &format!("{place}.text")).map(|_| ()),
        Some("image") => {
            let source = &block["source"];
            if source["type"] != "base64" {
                return Err(violation(format!("{place}.source"), "must be base64 data"));
            }
            if !IMAGE_TYPES.iter().any(|known| source["media_type"] == *known) {
                return Err(violation(
                    format!("{place}.source.media_type"),
                    format!("is {}", source["media_type"]),
                ));
            }
            visible_text(&source["data"], &format!("{place}.source.data")).map(|_| ())
        }
        _ => Err(violation(place, format!("must be text or an image, is {}", block["type"]))),
    }
}

fn no_cache_point(block: &Value, place: &str) -> Checked {
    match block.get("cache_control") {
        Some(_) => Err(violation(place, "thinking blocks cannot carry cache_control")),
        None => Ok(()),
    }
}

fn system(system: &Value) -> Checked {
    match system {
        // The service takes an empty string, but not an empty block.
        Value::Null | Value::String(_) => Ok(()),
        blocks => {
            for (place, block) in items(blocks, "system")? {
                if block["type"] != "text" {
                    return Err(violation(place, "must be a text block"));
                }
                visible_text(&block["text"], &format!("{place}.text"))?;
            }
            Ok(())
        }
    }
}

/// Whether tools are offered, once they are found to be in order.
fn tools(tools: &Value) -> Checked<bool> {
    let Some(tools) = tools.as_array() else { return Ok(false) };
    let mut names = HashSet::new();
    for (number, tool) in tools.iter().enumerate() {
        let place = format!("tools[{number}]");
        offered_tool(&mut names, tool, "/input_schema", LONGEST_NAME, &place)?;
    }
    Ok(!tools.is_empty())
}

/// How many blocks below `value` carry `cache_control`. What a model or a user wrote is not searched: it could hold
/// the same key.
fn cache_points(body: &Value) -> usize {
    let carries =
        |block: &&Value| block.get("cache_control").is_some_and(|control| !control.is_null());
    let of_list =
        |list: &Value| list.as_array().map_or(0, |blocks| blocks.iter().filter(carries).count());
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let in_messages: usize = messages
        .iter()
        .map(|message| {
            let content = &message["content"];
            let inner: usize = content
                .as_array()
                .map_or(0, |blocks| blocks.iter().map(|block| of_list(&block["content"])).sum());
            of_list(content) + inner
        })
        .sum();
    of_list(&body["system"]) + of_list(&body["tools"]) + in_messages
}
