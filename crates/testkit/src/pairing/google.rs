//! The Generative Language API's rules. Its parser refuses fields that it does not know, so those are checked too.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Checked, alternating, is_name_char, items, non_empty_list, object, offered_tool, tool_name,
    unique, violation, visible_text,
};

/// Longest name of a function.
const LONGEST_NAME: usize = 64;

/// Members of a request that are used here.
const BODY_FIELDS: [&str; 5] =
    ["systemInstruction", "tools", "toolConfig", "generationConfig", "contents"];

/// The members of a part of which each has exactly one.
const PART_KINDS: [&str; 4] = ["text", "inlineData", "functionCall", "functionResponse"];

/// Members that any part may have besides.
const PART_FIELDS: [&str; 2] = ["thought", "thoughtSignature"];

/// A call that waits for its response.
#[derive(PartialEq)]
struct Call<'a> {
    name: &'a str,
    id: Option<&'a str>,
}

pub(super) fn check(body: &Value) -> Checked {
    known_fields(body, &BODY_FIELDS, "body")?;
    if let Some(system) = body.get("systemInstruction") {
        for (place, part) in items(&system["parts"], "systemInstruction.parts")? {
            visible_text(&part["text"], &format!("{place}.text"))?;
        }
    }
    let offers_tools = tools(&body["tools"])?;
    let mut open: Vec<Call<'_>> = Vec::new();
    let mut uses_tools = false;
    for (role, place, content) in alternating(&body["contents"], "contents", "model")? {
        let place = format!("{place}.parts");
        let parts = non_empty_list(&content["parts"], &place)?;
        for (place, one) in items(&content["parts"], &place)? {
            part(one, role, &place)?;
        }
        if role == "user" {
            responses(parts, &open, &place)?;
            open.clear();
        } else {
            open = parts.iter().filter_map(|part| part.get("functionCall")).map(call).collect();
            uses_tools |= !open.is_empty();
        }
    }
    if uses_tools && !offers_tools {
        return Err(violation("tools", "must be given when contents hold function calls"));
    }
    Ok(())
}

fn call(function: &Value) -> Call<'_> {
    Call { name: function["name"].as_str().unwrap_or_default(), id: function["id"].as_str() }
}

/// One part, by the kind it is of.
fn part(part: &Value, role: &str, place: &str) -> Checked {
    let kinds: Vec<&str> = PART_KINDS.into_iter().filter(|kind| part.get(kind).is_some()).collect();
    let [kind] = kinds.as_slice() else {
        return Err(violation(place, format!("must be of one kind, is of {kinds:?}")));
    };
    known_fields(part, &[&PART_FIELDS[..], &[kind]].concat(), place)?;
    if let Some(signature) = part.get("thoughtSignature") {
        visible_text(signature, &format!("{place}.thoughtSignature"))?;
        if role == "user" {
            return Err(violation(place, "only a model's part has a signature"));
        }
    }
    let value = &part[*kind];
    let inner = format!("{place}.{kind}");
    match (*kind, role) {
        ("text", _) if part.get("thoughtSignature").is_some() => match value.as_str() {
            Some(_) => Ok(()),
            None => Err(violation(inner, "must be a string")),
        },
        ("text", _) => visible_text(value, &inner).map(|_| ()),
        ("inlineData", "user") => blob(value, &inner),
        ("functionCall", "model") => {
            known_fields(value, &["id", "name", "args"], &inner)?;
            function_name(&value["name"], &format!("{inner}.name"))?;
            object(&value["args"], &format!("{inner}.args"))
        }
        ("functionResponse", "user") => {
            known_fields(value, &["id", "name", "response", "parts"], &inner)?;
            function_name(&value["name"], &format!("{inner}.name"))?;
            for (number, part) in value["parts"].as_array().into_iter().flatten().enumerate() {
                blob(&part["inlineData"], &format!("{inner}.parts[{number}].inlineData"))?;
            }
            object(&value["response"], &format!("{inner}.response"))
        }
        _ => Err(violation(place, format!("no part of a {role}: {kind}"))),
    }
}

/// The responses among `parts` answer exactly the calls of the content before.
fn responses(parts: &[Value], open: &[Call<'_>], place: &str) -> Checked {
    let given: Vec<Call<'_>> =
        parts.iter().filter_map(|part| part.get("functionResponse")).map(call).collect();
    if given.len() != open.len() {
        let rule = format!(
            "the number of function response parts ({}) must equal that of the function call parts before ({})",
            given.len(),
            open.len()
        );
        return Err(violation(place, rule));
    }
    let mut seen = HashSet::new();
    for (response, call) in given.iter().zip(open) {
        if response != call {
            let rule = format!("the response of {:?} answers no call in its place", response.name);
            return Err(violation(place, rule));
        }
        if let Some(id) = response.id {
            unique(&mut seen, id, place, "the response of")?;
        }
    }
    Ok(())
}

fn blob(blob: &Value, place: &str) -> Checked {
    let kind = visible_text(&blob["mimeType"], &format!("{place}.mimeType"))?;
    if !["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"].contains(&kind) {
        return Err(violation(format!("{place}.mimeType"), format!("is {kind:?}")));
    }
    visible_text(&blob["data"], &format!("{place}.data")).map(|_| ())
}

/// Whether tools are offered, once they are found to be in order.
fn tools(tools: &Value) -> Checked<bool> {
    let mut names = HashSet::new();
    for (number, tool) in tools.as_array().into_iter().flatten().enumerate() {
        let place = format!("tools[{number}].functionDeclarations");
        for (place, function) in items(&tool["functionDeclarations"], &place)? {
            function_name(&function["name"], &format!("{place}.name"))?;
            offered_tool(&mut names, function, "/parametersJsonSchema", LONGEST_NAME, &place)?;
        }
    }
    Ok(!names.is_empty())
}

/// A name, which begins with a letter or `_`.
fn function_name<'a>(value: &'a Value, place: &str) -> Checked<&'a str> {
    let name = tool_name(value, place, LONGEST_NAME)?;
    match name.starts_with(|c: char| is_name_char(c) && c != '-' && !c.is_ascii_digit()) {
        true => Ok(name),
        false => Err(violation(place, format!("{name:?} must begin with a letter or `_`"))),
    }
}

fn known_fields(value: &Value, known: &[&str], place: &str) -> Checked {
    let mut fields = value.as_object().into_iter().flat_map(|object| object.keys());
    match fields.find(|field| !known.contains(&field.as_str())) {
        Some(field) => Err(violation(place, format!("unknown name {field:?}: cannot find field"))),
        None => Ok(()),
    }
}
