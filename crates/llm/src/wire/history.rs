//! Texts and rules that all formats share for content that a host does not accept.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{AssistantMessage, Model, ThinkingContent, ToolCall};

/// Replaces an empty tool result, which some hosts refuse and which confuses models.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// Replaces the missing name of a call.
const UNNAMED_TOOL: &str = "unnamed";

/// Longest tool name that every host accepts, in bytes.
pub(crate) const MAX_TOOL_NAME: usize = 64;

/// Most characters of unreadable arguments that are sent back to the model: enough to see the mistake.
const MAX_INVALID_ARGUMENTS: usize = 1000;

/// Whether `model` accepts the opaque state in `message`.
pub(crate) fn has_same_origin(model: &Model, message: &AssistantMessage) -> bool {
    message.api == model.api
        && message.provider == model.provider
        && (message.model == model.id || family(&message.model) == family(&model.id))
}

/// A model id without the parts that change between releases of one model: the vendor before a slash, a variant after a
/// colon or at sign, a date, `-latest`.
fn family(id: &str) -> &str {
    let id = id.rsplit_once('/').map_or(id, |(_, name)| name);
    let id = id.split([':', '@']).next().unwrap_or(id);
    without_date(id)
}

/// A model id without the date of a release (`-20250514`, `-2025-05-14`, `@20250514`) or `-latest`.
pub(crate) fn without_date(id: &str) -> &str {
    let is_date = |text: &str| {
        let has_form = text.len() == 8 || text.split('-').map(str::len).eq([4, 2, 2]);
        let is_digit = |byte: u8| byte.is_ascii_digit() || (text.len() == 10 && byte == b'-');
        has_form && text.starts_with("20") && text.bytes().all(is_digit)
    };
    for length in [8, 10] {
        let split = id.len().checked_sub(length).and_then(|at| id.split_at_checked(at));
        if let Some((name, date)) = split
            && let Some(name) = name.strip_suffix(['-', '@'])
            && is_date(date)
        {
            return name;
        }
    }
    id.strip_suffix("-latest").unwrap_or(id)
}

/// Reasoning of another model, as text that this one can read.
pub(crate) fn thinking_as_text(thinking: &ThinkingContent) -> Option<String> {
    let text = thinking.thinking.trim();
    (!text.is_empty()).then(|| format!("<thinking>\n{text}\n</thinking>"))
}

/// The arguments to send back for a call; those that could not be read, as an object that shows them.
pub(crate) fn arguments(call: &ToolCall) -> Cow<'_, Map<String, Value>> {
    match &call.invalid_arguments {
        None => Cow::Borrowed(&call.arguments),
        Some(raw) => {
            let shown: String = raw.chars().take(MAX_INVALID_ARGUMENTS).collect();
            Cow::Owned(Map::from_iter([("invalid_json".to_owned(), Value::String(shown))]))
        }
    }
}

/// A tool name in the form that every host accepts. Models invent names; one bad name in the past must not make
/// every later request fail.
pub(crate) fn tool_name(name: &str) -> Cow<'_, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() {
        Cow::Borrowed(UNNAMED_TOOL)
    } else if name.len() <= MAX_TOOL_NAME && name.chars().all(is_allowed) {
        Cow::Borrowed(name)
    } else {
        name.chars().map(|c| if is_allowed(c) { c } else { '_' }).take(MAX_TOOL_NAME).collect()
    }
}

/// Whether a host would refuse a text block with this text.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// The signature, unless it is too short to be whole because the stream was cut off.
pub(crate) fn usable_signature(signature: Option<&String>) -> Option<&str> {
    signature.map(String::as_str).filter(|signature| !is_blank(signature))
}

/// Appends `more` to `text`, with `separator` between them if both have text.
pub(crate) fn append<'a>(text: &mut Cow<'a, str>, separator: &str, more: Cow<'a, str>) {
    if text.is_empty() {
        *text = more;
    } else {
        let text = text.to_mut();
        text.push_str(separator);
        text.push_str(&more);
    }
}

#[cfg(test)]
mod tests;
