//! Calls of tools that a model writes as text, and names of tools with remains of a chat template in them.
//!
//! Both come from servers that do not parse what the model writes: the template's marks for calls arrive as part of the
//! answer or of a name.

use myclaw_llm::without_fence;
use serde_json::Value;

/// How marks of calls begin in the templates of models, in lower case.
const MARKS: &[&str] = &[
    "<tool_call",
    "<toolcall",
    "<tool_use",
    "<tool|",
    "<|tool_call",
    "<|toolcall",
    "<|python_tag|>",
    "<|start_action|>",
    "<|channel|>commentary",
    "<function=",
    "<function_call",
    "<function name=",
    "<functioncall",
    "<start_function_call",
    "<invoke name=",
    "<｜tool",
    "<｜dsml｜",
    ":tool_call",
    ":function_call",
    "_tool_call>",
    "to=functions.",
    "functools[",
    "[tool_call",
    "[tool_request]",
    "```tool_c",
    "```tool_use",
];

/// Words of templates between the mark of a call and the name of the tool, or before its arguments.
const WORDS_OF_MARKS: [&str; 18] = [
    "begin",
    "call",
    "calls",
    "commentary",
    "constrain",
    "function",
    "function_call",
    "function_calls",
    "invoke",
    "json",
    "message",
    "name",
    "section",
    "sep",
    "to",
    "tool",
    "tool_call",
    "tool_calls",
];

/// How arguments begin.
const ARGUMENTS: [&str; 5] = ["{", "(", "<parameter", "<arg", "<key"];

/// Most bytes after a mark in which the name of the tool is looked for.
const NAME_WITHIN: usize = 400;

/// Most bytes of an answer that are searched for marks, at its beginning and at its end.
const SEARCHED: usize = 64 * 1024;

/// The fields in which templates write the name of a tool, and its arguments.
const NAME_FIELDS: [&str; 6] =
    ["name", "tool_name", "tool", "function", "action", "recipient_name"];
const ARGUMENT_FIELDS: [&str; 8] = [
    "arguments",
    "parameters",
    "args",
    "input",
    "tool_input",
    "action_input",
    "tool_arguments",
    "kwargs",
];

/// Words that stand before the name of a tool in templates.
const PREFIXES: [&str; 5] = ["functions_", "function_", "tools_", "tool_", "default_api_"];

/// The name of a tool without the remains of a template: `functions.bash` and `bash<|channel|>commentary` are `bash`.
/// `is_tool` decides whether there is such a tool.
pub fn cleaned_name(name: &str, is_tool: impl Fn(&str) -> bool) -> Option<&str> {
    // `assistant<|channel|>commentary to=functions.bash`: what stands before it says who speaks.
    let name = name.rsplit_once("to=").map_or(name, |(_, name)| name);
    let mut name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric() && c != '<');
    while let Some(mark) = name.strip_prefix("<|") {
        name = mark.split_once("|>")?.1;
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
    let name = name[..end].trim_end_matches(['.', ':', '/', '-']);
    // `functions.bash:0` is numbered.
    let mut parts = name.rsplit(['.', ':', '/']).filter(|part| !part.is_empty());
    let last = parts.find(|part| !part.bytes().all(|byte| byte.is_ascii_digit())).unwrap_or(name);
    let bare = PREFIXES.iter().filter_map(|prefix| last.strip_prefix(prefix));
    [name, last].into_iter().chain(bare).find(|candidate| is_tool(candidate))
}

/// The tool that an answer calls in its text, where a call should have been. Where the answer ends with a call between the
/// marks of a template, the name is what the model wrote, even if there is no such tool.
pub fn written_call(text: &str, is_tool: impl Fn(&str) -> bool) -> Option<String> {
    let text = text.trim();
    let tool = |name: &str| cleaned_name(name, &is_tool).map(str::to_owned);
    bare_call(text, &tool)
        .or_else(|| marked_call(text, &tool))
        .or_else(|| spoken_call(text, &tool))
        .or_else(|| unknown_call(text))
}

/// An answer that is nothing but the JSON of a call, or of several.
fn bare_call(text: &str, tool: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let text = without_fence(text);
    // `[bash(command="ls")]` is a call too.
    if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(")]")) {
        let (name, _) = inner.split_once('(')?;
        return tool(name).filter(|found| found == name);
    }
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut found = None;
    for value in values {
        let name = called_by(&value.ok()?, tool)?;
        found.get_or_insert(name);
    }
    found
}

fn called_by(value: &Value, tool: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let object = match value {
        Value::Object(object) => object,
        Value::Array(calls) => return called_by(calls.first()?, tool),
        _ => return None,
    };
    if let Some(inner) = object.get("tool_calls").or_else(|| object.get("tool_call")) {
        return called_by(inner, tool);
    }
    if let Some(inner @ Value::Object(_)) = object.get("function") {
        return called_by(inner, tool);
    }
    let is_arguments = |value: &Value| value.is_object() || value.is_string();
    let has_arguments =
        ARGUMENT_FIELDS.iter().any(|field| object.get(*field).is_some_and(is_arguments));
    if has_arguments {
        let names = NAME_FIELDS.iter().filter_map(|field| object.get(*field)?.as_str());
        return names.filter_map(tool).next();
    }
    // `{"bash": {"command": "ls"}}`
    match object.iter().next() {
        Some((name, Value::Object(_))) if object.len() == 1 => tool(name),
        _ => None,
    }
}

/// A call between the marks of a template. A mark in a code block or between backticks is quoted.
fn marked_call(text: &str, tool: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let lower = ends_of(text).to_ascii_lowercase();
    let names_tool = |from: usize| {
        let rest = &lower[from..];
        let window = &rest[..rest.floor_char_boundary(NAME_WITHIN)];
        let is_part = |c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c));
        window.split(is_part).filter(|word| !word.is_empty()).find_map(tool)
    };
    MARKS.iter().find_map(|mark| {
        lower.match_indices(mark).find_map(|(at, _)| {
            let is_fence = mark.starts_with('`');
            if is_quoted(&lower[..at], is_fence) {
                return None;
            }
            names_tool(at + mark.len())
        })
    })
}

/// The name in a call of no tool that there is: a mark at the beginning of a line, a name and arguments, up to the end of
/// the answer.
fn unknown_call(text: &str) -> Option<String> {
    let text = ends_of(text);
    let lower = text.to_ascii_lowercase();
    let begins = |mark: &&str| {
        let begins_line = |at: &usize| {
            let before = lower[..*at].rsplit('\n').next().unwrap_or_default().trim();
            before.is_empty() || before.starts_with('<')
        };
        lower.match_indices(*mark).map(|(at, _)| at).find(begins_line).map(|at| (at, mark.len()))
    };
    let (at, length) = MARKS.iter().filter_map(begins).min()?;
    if is_quoted(&lower[..at], lower[at..].starts_with('`')) {
        return None;
    }
    let mut rest = &text[at + length..];
    // `<tool_call` is the beginning of `<tool_calls>` too.
    if text[..at + length].ends_with(|c: char| c.is_ascii_alphanumeric()) {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    }
    let arguments = ARGUMENTS.iter().filter_map(|mark| rest.find(mark)).min()?;
    let is_part = |c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c));
    let is_name = |word: &&str| {
        let is_of_mark = word.ends_with("_begin") || WORDS_OF_MARKS.contains(word);
        !word.is_empty() && !is_of_mark
    };
    let mut words = rest[..arguments].split(is_part).filter(is_name);
    let name = match (words.next(), words.count()) {
        (Some(name), 0..2) => Some(name.to_owned()),
        (Some(_), _) => None,
        (None, _) => {
            let values = serde_json::Deserializer::from_str(&rest[arguments..]);
            let value = values.into_iter::<Value>().next()?.ok()?;
            called_by(&value, &|name| Some(name.to_owned()))
        }
    };
    let ends_with_call = text.trim_end().ends_with(['>', '}', ']', ')', '`']);
    name.filter(|_| ends_with_call)
}

/// The text, without the middle of a very long one.
fn ends_of(text: &str) -> String {
    if text.len() <= 2 * SEARCHED {
        return text.to_owned();
    }
    let (head, tail) =
        (text.floor_char_boundary(SEARCHED), text.ceil_char_boundary(text.len() - SEARCHED));
    format!("{}\n{}", &text[..head], &text[tail..])
}

/// Whether what follows `before` stands in a code block or between backticks.
fn is_quoted(before: &str, is_fence: bool) -> bool {
    let fences = before.lines().filter(|line| line.trim_start().starts_with("```")).count();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let ticks = line.matches('`').count();
    fences % 2 == 1 || (!is_fence && ticks % 2 == 1)
}

/// `Action: bash` and `Action Input: …`, each at the beginning of a line.
fn spoken_call(text: &str, tool: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Action:"));
    let name = lines.next()?.strip_prefix("Action:")?.trim();
    let has_input = lines.next().is_some_and(|line| line.starts_with("Action Input:"));
    tool(name).filter(|_| has_input)
}

#[cfg(test)]
mod tests;
