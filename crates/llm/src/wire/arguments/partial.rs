//! The arguments of a call while they stream, for display.

use serde_json::{Map, Value};

use super::{relaxed, without_empty_object};

/// The content of an unfinished JSON object: complete members, and the part of the last one that has arrived. Empty if
/// nothing can be read yet. This is for display alone; a call runs with the arguments of its
/// [`ToolCallEnd`](crate::StreamEvent::ToolCallEnd), which must be whole.
///
/// It takes time proportional to the length of `text`: call it when something is drawn, not for every fragment.
pub fn partial_arguments(text: &str) -> Map<String, Value> {
    let text = without_empty_object(text.trim_start());
    let closed = closed(text);
    let value = serde_json::from_str(&closed).or_else(|_| serde_json::from_str(&relaxed(&closed)));
    match value {
        Ok(Value::Object(arguments)) => arguments,
        _ => Map::new(),
    }
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Key,
    Colon,
    Value,
    /// A comma or a closing bracket.
    Separator,
}

/// `text` up to the last place where it can be closed, with the brackets and quotes that close it.
fn closed(text: &str) -> String {
    let mut stack: Vec<u8> = Vec::new();
    let mut expected = Expected::Value;
    // Up to where the text can be kept, and how many brackets are open there.
    let mut safe = (0, 0);
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let is_key = expected == Expected::Key;
                let Some(end) = string_end(bytes, at) else {
                    if is_key {
                        break;
                    }
                    return with_closers(&format!("{}\"", whole_escapes(text)), &stack);
                };
                at = end;
                expected = if is_key { Expected::Colon } else { Expected::Separator };
                if !is_key {
                    safe = (at, stack.len());
                }
                continue;
            }
            open @ (b'{' | b'[') => {
                stack.push(if open == b'{' { b'}' } else { b']' });
                expected = if open == b'{' { Expected::Key } else { Expected::Value };
                safe = (at + 1, stack.len());
            }
            b'}' | b']' => {
                stack.pop();
                expected = Expected::Separator;
                safe = (at + 1, stack.len());
                if stack.is_empty() {
                    break;
                }
            }
            b':' => expected = Expected::Value,
            b',' => {
                // A number or a word ends here.
                safe = (at, stack.len());
                expected = match stack.last() {
                    Some(b'}') => Expected::Key,
                    _ => Expected::Value,
                };
            }
            _ => {}
        }
        at += 1;
    }
    stack.truncate(safe.1);
    with_closers(&text[..safe.0], &stack)
}

/// The end of the string that begins at `start`; `None` if it is not closed.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// `text`, whose last string is open, without half an escape at its end. Half an emoji goes too.
fn whole_escapes(text: &str) -> &str {
    let slashes = text.len() - text.trim_end_matches('\\').len();
    if slashes % 2 == 1 {
        return whole_escapes(&text[..text.len() - 1]);
    }
    // `\u12` and `\ud83d` need the characters after them.
    let Some(at) = text.rfind("\\u") else { return text };
    let is_escape = (text[..at].len() - text[..at].trim_end_matches('\\').len()).is_multiple_of(2);
    let digits = &text[at + 2..];
    let is_first_half = digits.len() == 4
        && u32::from_str_radix(digits, 16).is_ok_and(|code| (0xD800..=0xDBFF).contains(&code));
    let is_half = digits.len() < 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_escape && (is_half || is_first_half) { whole_escapes(&text[..at]) } else { text }
}

fn with_closers(text: &str, stack: &[u8]) -> String {
    let mut closed = text.to_owned();
    closed.extend(stack.iter().rev().map(|&closer| char::from(closer)));
    closed
}

#[cfg(test)]
mod tests;
