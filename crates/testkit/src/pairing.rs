//! The rules that providers enforce on the messages of a request, from their documentation and error messages.

mod anthropic;
mod bedrock;
mod calls;
mod google;
mod openai;
mod responses;

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use crate::{RecordedRequest, WireFormat};

/// The ends of the paths of model calls, for any base URL.
pub(crate) const ROUTES: [(&str, WireFormat); 7] = [
    ("/messages", WireFormat::AnthropicMessages),
    ("/chat/completions", WireFormat::OpenAiCompletions),
    ("/responses", WireFormat::OpenAiResponses),
    (":streamGenerateContent", WireFormat::GoogleGenerativeAi),
    (":generateContent", WireFormat::GoogleGenerativeAi),
    ("/converse-stream", WireFormat::BedrockConverse),
    ("/converse", WireFormat::BedrockConverse),
];

/// A rule that a request breaks, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Such as `messages[3].content[0]`.
    pub place: String,
    /// What is wrong there.
    pub rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.rule)
    }
}

impl std::error::Error for Violation {}

/// Checks the messages of a request as strictly as its provider: every tool call has exactly one result directly after
/// it, ids are unique, the first message is a user's, roles alternate where the format needs it, nothing is empty. The
/// format follows from the path.
///
/// # Errors
/// The first rule that is broken.
pub fn validate_pairing(request: &RecordedRequest) -> Result<(), Violation> {
    let not_json = |error: serde_json::Error| violation("body", format!("is not JSON: {error}"));
    // Not kept with the request: the parsed bodies of a long run would need too much memory.
    let parsed;
    let body = match request.json.get() {
        Some(body) => body,
        None => {
            parsed = serde_json::from_slice(&request.body).map_err(not_json)?;
            &parsed
        }
    };
    let route = request.route();
    match ROUTES.iter().find(|(ending, _)| route.ends_with(ending)) {
        Some((_, format)) => {
            if *format == WireFormat::BedrockConverse {
                bedrock::check_authorization(request)?;
            }
            validate_body(*format, body)
        }
        None => Err(violation("path", format!("{} is of no wire format known here", request.path))),
    }
}

/// As [`validate_pairing`], for a body that was not sent.
///
/// # Errors
/// The first rule that is broken.
pub fn validate_body(format: WireFormat, body: &Value) -> Result<(), Violation> {
    match format {
        WireFormat::AnthropicMessages => anthropic::check(body),
        WireFormat::OpenAiCompletions => openai::check(body),
        WireFormat::OpenAiResponses => responses::check(body),
        WireFormat::GoogleGenerativeAi => google::check(body),
        WireFormat::BedrockConverse => bedrock::check(body),
    }
}

type Checked<T = ()> = Result<T, Violation>;

fn violation(place: impl Into<String>, rule: impl Into<String>) -> Violation {
    Violation { place: place.into(), rule: rule.into() }
}

/// The field as text with at least one character that is not white space.
fn visible_text<'a>(value: &'a Value, place: &str) -> Checked<&'a str> {
    let text =
        value.as_str().ok_or_else(|| violation(place, format!("must be a string, is {value}")))?;
    if text.trim().is_empty() {
        return Err(violation(place, "text must be non-empty and not only white space"));
    }
    Ok(text)
}

/// The field as a list with at least one item.
fn non_empty_list<'a>(value: &'a Value, place: &str) -> Checked<&'a [Value]> {
    match value.as_array() {
        Some(list) if !list.is_empty() => Ok(list),
        Some(_) => Err(violation(place, "the list is empty")),
        None => Err(violation(place, format!("must be a list, is {value}"))),
    }
}

/// The items of such a list, each with its place.
fn items<'a>(value: &'a Value, place: &str) -> Checked<impl Iterator<Item = (String, &'a Value)>> {
    let list = non_empty_list(value, place)?.iter().enumerate();
    Ok(list.map(move |(number, item)| (format!("{place}[{number}]"), item)))
}

/// Content that is text, or a list whose items `check` accepts.
fn text_or_items(content: &Value, place: &str, check: impl Fn(&Value, &str) -> Checked) -> Checked {
    if content.is_string() {
        return visible_text(content, place).map(|_| ());
    }
    items(content, place)?.try_for_each(|(place, item)| check(item, &place))
}

/// The messages with their places and contents: roles alternate, and a user begins and ends.
fn alternating<'a>(
    messages: &'a Value,
    place: &str,
    other_role: &'static str,
) -> Checked<Vec<(&'static str, String, &'a Value)>> {
    let roles = ["user", other_role].into_iter().cycle();
    let mut checked = Vec::new();
    for ((place, message), expected) in items(messages, place)?.zip(roles) {
        if message["role"] != expected {
            let rule = format!(
                "the role must be {expected:?} (roles alternate, a user begins), is {}",
                message["role"]
            );
            return Err(violation(place, rule));
        }
        checked.push((expected, place, message));
    }
    match checked.len() % 2 {
        0 => {
            let rule = format!("the last {} must be a user's", place.trim_end_matches('s'));
            Err(violation(place, rule))
        }
        _ => Ok(checked),
    }
}

/// An object.
fn object(value: &Value, place: &str) -> Checked {
    match value.is_object() {
        true => Ok(()),
        false => Err(violation(place, format!("must be an object, is {value}"))),
    }
}

/// An object, written as JSON in a string.
fn object_in_string(value: &Value, place: &str) -> Checked {
    let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match parsed {
        Some(Value::Object(_)) => Ok(()),
        _ => {
            Err(violation(place, format!("must be a string that holds a JSON object, is {value}")))
        }
    }
}

/// An id with the characters of names, and at most `longest` bytes if there is such a limit.
fn token<'a>(value: &'a Value, place: &str, longest: Option<usize>) -> Checked<&'a str> {
    let id = visible_text(value, place)?;
    if longest.is_some_and(|longest| id.len() > longest) || !id.chars().all(is_name_char) {
        let length = longest.map_or("1,".to_owned(), |longest| format!("1,{longest}"));
        return Err(violation(place, format!("{id:?} must match ^[a-zA-Z0-9_-]{{{length}}}$")));
    }
    Ok(id)
}

/// A tool on offer: a name that `seen` does not hold, and at the JSON pointer `schema` the schema of an object.
fn offered_tool<'a>(
    seen: &mut HashSet<&'a str>,
    tool: &'a Value,
    schema: &str,
    longest_name: usize,
    place: &str,
) -> Checked {
    let name = tool_name(&tool["name"], &format!("{place}.name"), longest_name)?;
    unique(seen, name, place, "tool name")?;
    if tool.pointer(schema).is_none_or(|schema| schema["type"] != "object") {
        let place = format!("{place}{}.type", schema.replace('/', "."));
        return Err(violation(place, "must be \"object\""));
    }
    Ok(())
}

/// An id that has not been used before.
fn unique<'a>(seen: &mut HashSet<&'a str>, id: &'a str, place: &str, what: &str) -> Checked {
    if seen.insert(id) {
        Ok(())
    } else {
        Err(violation(place, format!("{what} {id:?} is used twice")))
    }
}

/// A name of a tool: letters, digits, `_` and `-`, at most `longest` of them.
fn tool_name<'a>(value: &'a Value, place: &str, longest: usize) -> Checked<&'a str> {
    let name =
        value.as_str().ok_or_else(|| violation(place, format!("must be a string, is {value}")))?;
    if name.is_empty() || name.len() > longest || !name.chars().all(is_name_char) {
        return Err(violation(
            place,
            format!("{name:?} must match ^[a-zA-Z0-9_-]{{1,{longest}}}$"),
        ));
    }
    Ok(name)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// `model` of any request.
fn model(body: &Value) -> Checked {
    visible_text(&body["model"], "model").map(|_| ())
}
