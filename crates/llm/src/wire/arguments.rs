//! The arguments of a tool call. A call runs only if they are a whole JSON object.
//!
//! Small models make syntax mistakes whose meaning is clear; these are corrected. An object that was cut is never
//! completed, because half a file must not be written.

mod partial;

use serde_json::{Map, Value};

pub use partial::partial_arguments;

/// How many layers of "a JSON string that holds JSON" are opened.
const MAX_NESTED_STRINGS: usize = 2;

/// The object that `raw` means, or `None` if it does not mean one.
pub(crate) fn parse(raw: &str) -> Option<Map<String, Value>> {
    parse_nested(raw, MAX_NESTED_STRINGS)
}

fn parse_nested(raw: &str, nested_strings: usize) -> Option<Map<String, Value>> {
    let text = raw.trim();
    if text.is_empty() {
        return Some(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(value) => from_value(value, nested_strings),
        Err(_) => {
            let text = without_empty_object(without_fence(text));
            let value = serde_json::from_str(text)
                .or_else(|_| serde_json::from_str(&relaxed(text)))
                .ok()?;
            from_value(value, nested_strings)
        }
    }
}

fn from_value(value: Value, nested_strings: usize) -> Option<Map<String, Value>> {
    match value {
        Value::Object(arguments) => Some(arguments),
        Value::Null => Some(Map::new()),
        Value::String(text) if nested_strings > 0 => parse_nested(&text, nested_strings - 1),
        _ => None,
    }
}

/// The text without the Markdown code fence around all of it, which some models write around JSON.
pub fn without_fence(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return text;
    };
    match inner.split_once('\n') {
        Some((language, rest)) if language.trim().chars().all(char::is_alphanumeric) => rest.trim(),
        _ => inner.trim(),
    }
}

/// Without the empty object that some gateways send before the first fragment.
fn without_empty_object(text: &str) -> &str {
    match text.strip_prefix("{}") {
        Some(rest) if rest.trim_start().starts_with('{') => rest.trim_start(),
        _ => text,
    }
}

/// Corrects what is nearly JSON: trailing commas, raw line breaks and tabs inside strings, unknown escapes (`\'`,
/// `\d`), strings in single quotes, and Python's words for true, false and null. It adds no bracket and no quote, so
/// text that was cut stays invalid.
fn relaxed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        match next {
            '"' | '\'' => rest = copy_string(rest, next, &mut out),
            ',' => {
                rest = &rest[1..];
                if !rest.trim_start().starts_with(['}', ']']) {
                    out.push(',');
                }
            }
            'T' | 'F' | 'N' => {
                let (word, json) = [("True", "true"), ("False", "false"), ("None", "null")]
                    .into_iter()
                    .find(|(word, _)| rest.starts_with(word))
                    .unwrap_or((&rest[..1], &rest[..1]));
                out.push_str(json);
                rest = &rest[word.len()..];
            }
            _ => {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    out
}

/// Copies the string at the start of `text`, which opens with `quote`, as a JSON string; gives what follows it.
fn copy_string<'a>(text: &'a str, quote: char, out: &mut String) -> &'a str {
    out.push('"');
    let mut characters = text[1..].char_indices();
    while let Some((offset, character)) = characters.next() {
        match character {
            _ if character == quote => {
                out.push('"');
                return &text[1 + offset + 1..];
            }
            '"' => out.push_str("\\\""),
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u'))) => {
                    out.push('\\');
                    out.push(escaped);
                }
                Some((_, '\'')) => out.push('\''),
                Some((_, '\n')) => out.push_str("\\n"),
                Some((_, other)) => {
                    out.push_str("\\\\");
                    out.push(other);
                }
                None => out.push('\\'),
            },
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    ""
}

#[cfg(test)]
mod tests;
