//! The Responses API's rules for requests of which the server stores nothing.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Checked, model, non_empty_list, object_in_string, offered_tool, text_or_items, tool_name,
    unique, violation, visible_text,
};

/// Longest name of a function.
const LONGEST_NAME: usize = 64;

/// Longest id of a call or an item.
const LONGEST_ID: usize = 64;

/// Smallest output limit.
const LEAST_OUTPUT: u64 = 16;

/// What has been seen of the input.
#[derive(Default)]
struct Input<'a> {
    /// Calls without an output so far.
    open: Vec<&'a str>,
    /// Whether some calls of the last answer have their output and others have not.
    is_answering: bool,
    calls: HashSet<&'a str>,
    /// Reasoning that the next item must follow from.
    reasoning: Option<String>,
    has_user: bool,
}

pub(super) fn check(body: &Value) -> Checked {
    model(body)?;
    if body["max_output_tokens"].as_u64().is_some_and(|limit| limit < LEAST_OUTPUT) {
        return Err(violation("max_output_tokens", format!("must be at least {LEAST_OUTPUT}")));
    }
    tools(&body["tools"])?;
    let items = non_empty_list(&body["input"], "input")?;
    let mut input = Input::default();
    for (number, item) in items.iter().enumerate() {
        input.item(item, &format!("input[{number}]"))?;
    }
    input.nothing_left("input")?;
    match items.last() {
        Some(last) if last["role"] == "assistant" => {
            Err(violation("input", "the last item must be a user's or the output of a call"))
        }
        _ => Ok(()),
    }
}

impl<'a> Input<'a> {
    fn item(&mut self, item: &'a Value, place: &str) -> Checked {
        if let Some(given) = item.get("id") {
            id(given, &format!("{place}.id"))?;
        }
        match item["type"].as_str() {
            Some("function_call_output") => self.output(item, place),
            Some("function_call") => {
                self.reasoning = None;
                self.call(item, place)
            }
            Some("reasoning") => self.reasoning(item, place),
            Some("message") | None => self.message(item, place),
            _ => Err(violation(place, format!("no item of a request: {}", item["type"]))),
        }
    }

    fn message(&mut self, item: &'a Value, place: &str) -> Checked {
        let content = &item["content"];
        let place_of_content = format!("{place}.content");
        match item["role"].as_str() {
            Some("system" | "developer") if self.has_user => {
                return Err(violation(place, "system messages come first or not at all"));
            }
            Some("system" | "developer") => visible_text(content, &place_of_content).map(|_| ())?,
            Some("user") => {
                self.nothing_left(place)?;
                self.has_user = true;
                text_or_items(content, &place_of_content, part)?;
            }
            Some("assistant") if self.has_user => {
                self.reasoning = None;
                self.may_speak(place)?;
                text_or_items(content, &place_of_content, part_of_answer)?;
            }
            Some("assistant") => {
                return Err(violation(
                    place,
                    "the first message after the system's must be a user's",
                ));
            }
            _ => return Err(violation(place, format!("unknown role {}", item["role"]))),
        }
        Ok(())
    }

    fn reasoning(&mut self, item: &Value, place: &str) -> Checked {
        self.may_speak(place)?;
        if !item["summary"].is_array() {
            return Err(violation(format!("{place}.summary"), "must be a list"));
        }
        if item["content"].as_array().is_none_or(Vec::is_empty) {
            visible_text(&item["encrypted_content"], &format!("{place}.encrypted_content"))?;
        }
        self.reasoning = Some(place.to_owned());
        Ok(())
    }

    fn call(&mut self, item: &'a Value, place: &str) -> Checked {
        self.may_speak(place)?;
        let id = id(&item["call_id"], &format!("{place}.call_id"))?;
        unique(&mut self.calls, id, place, "call_id")?;
        tool_name(&item["name"], &format!("{place}.name"), LONGEST_NAME)?;
        object_in_string(&item["arguments"], &format!("{place}.arguments"))?;
        self.open.push(id);
        Ok(())
    }

    fn output(&mut self, item: &'a Value, place: &str) -> Checked {
        let id = visible_text(&item["call_id"], &format!("{place}.call_id"))?;
        let Some(position) = self.open.iter().position(|call| *call == id) else {
            let rule = format!("call_id {id:?} answers no open call");
            return Err(violation(place, rule));
        };
        self.open.remove(position);
        self.is_answering = !self.open.is_empty();
        text_or_items(&item["output"], &format!("{place}.output"), part)
    }

    /// The items of one answer are sent back unchanged, calls among text and reasoning, directly followed by the
    /// outputs of all its calls.
    fn may_speak(&self, place: &str) -> Checked {
        if self.is_answering { self.all_answered(place) } else { Ok(()) }
    }

    fn all_answered(&self, place: &str) -> Checked {
        match self.open.as_slice() {
            [] => Ok(()),
            open => Err(violation(place, format!("calls without an output before it: {open:?}"))),
        }
    }

    fn nothing_left(&self, place: &str) -> Checked {
        self.all_answered(place)?;
        match &self.reasoning {
            None => Ok(()),
            Some(reasoning) => {
                Err(violation(reasoning, "reasoning without the item that follows from it"))
            }
        }
    }
}

fn id<'a>(value: &'a Value, place: &str) -> Checked<&'a str> {
    let id = visible_text(value, place)?;
    if id.len() > LONGEST_ID {
        return Err(violation(place, format!("{id:?} is longer than {LONGEST_ID}")));
    }
    Ok(id)
}

/// Text and images.
fn part(part: &Value, place: &str) -> Checked {
    let (field, place) = match part["type"].as_str() {
        Some("input_text") => (&part["text"], format!("{place}.text")),
        Some("input_image") => (&part["image_url"], format!("{place}.image_url")),
        _ => return Err(violation(place, format!("no part of a message: {}", part["type"]))),
    };
    visible_text(field, &place).map(|_| ())
}

fn part_of_answer(part: &Value, place: &str) -> Checked {
    if part["type"] != "output_text" {
        return Err(violation(place, format!("no part of an answer: {}", part["type"])));
    }
    visible_text(&part["text"], &format!("{place}.text")).map(|_| ())
}

fn tools(tools: &Value) -> Checked {
    let mut names = HashSet::new();
    for (number, tool) in tools.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate() {
        let place = format!("tools[{number}]");
        if tool["type"] != "function" {
            return Err(violation(format!("{place}.type"), "must be \"function\""));
        }
        offered_tool(&mut names, tool, "/parameters", LONGEST_NAME, &place)?;
    }
    Ok(())
}
