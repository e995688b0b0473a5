//! The headers of the revision without sessions, which repeat parts of a message for what stands between client and server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

/// The key of a schema that wants the value of an argument in a header.
const WANTED: &str = "x-mcp-header";
/// Before the name that the schema gives.
const PREFIX: &str = "Mcp-Param-";
/// Around a value that a header cannot hold as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");
/// Deepest place of such a key.
const MAX_DEPTH: usize = 16;
/// Largest whole number that every JSON reader keeps, 2^53 - 1.
const MAX_SAFE: i64 = 9_007_199_254_740_991;

/// The headers of any message.
pub(super) fn of_message(message: &Value) -> Vec<(HeaderName, HeaderValue)> {
    let method = message["method"].as_str();
    let params = &message["params"];
    let name = match method {
        Some("tools/call" | "prompts/get") => params["name"].as_str(),
        Some("resources/read") => params["uri"].as_str(),
        _ => None,
    };
    let named = [("mcp-method", method), ("mcp-name", name)].into_iter();
    let named = named.filter_map(|(header, value)| {
        Some((HeaderName::from_static(header), HeaderValue::try_from(encoded(value?)).ok()?))
    });
    named.collect()
}

/// A header as text, as a header.
pub(super) fn pair((name, value): &(String, String)) -> Option<(HeaderName, HeaderValue)> {
    Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
}

/// Which arguments a schema wants in which headers.
///
/// # Errors
/// It wants what cannot be; such a tool must not be used over HTTP.
pub(crate) fn parameter_headers(schema: &Value) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    for (index, (name, _)) in found.iter().enumerate() {
        if found[..index].iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            return Err(format!("two of its arguments want the header {name}"));
        }
    }
    Ok(found)
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<(String, Vec<String>)>,
) -> Result<(), String> {
    if path.len() > MAX_DEPTH {
        return Ok(());
    }
    for (argument, about) in schema["properties"].as_object().into_iter().flatten() {
        path.push(argument.clone());
        if let Some(wanted) = about.get(WANTED) {
            let name = wanted.as_str().unwrap_or_default();
            if name.is_empty() || HeaderName::try_from(format!("{PREFIX}{name}")).is_err() {
                return Err(format!("`{WANTED}` of {argument} cannot be the name of a header"));
            }
            if !matches!(about["type"].as_str(), Some("string" | "integer" | "boolean")) {
                return Err(format!(
                    "`{WANTED}` of {argument} is for a text, an integer or a boolean only"
                ));
            }
            found.push((name.to_owned(), path.clone()));
        }
        collect(about, path, found)?;
        path.pop();
    }
    Ok(())
}

/// The headers that a call has because of the schema of its tool.
pub(crate) fn parameter_values(
    schema: &Value,
    arguments: &Map<String, Value>,
) -> Vec<(String, String)> {
    let wanted = parameter_headers(schema).unwrap_or_default();
    let headers = wanted.into_iter().filter_map(|(name, path)| {
        let (first, rest) = path.split_first()?;
        let value = rest.iter().try_fold(arguments.get(first)?, |value, key| value.get(key))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(is_true) => is_true.to_string(),
            Value::Number(number) => whole(number)?.to_string(),
            _ => return None,
        };
        Some((format!("{PREFIX}{name}"), encoded(&text)))
    });
    headers.collect()
}

fn whole(number: &serde_json::Number) -> Option<i64> {
    let of_float = |float: f64| (float.fract() == 0.0).then_some(float as i64);
    let whole = number.as_i64().or_else(|| number.as_f64().and_then(of_float))?;
    (-MAX_SAFE..=MAX_SAFE).contains(&whole).then_some(whole)
}

/// The text as the value of a header.
fn encoded(text: &str) -> String {
    let (before, after) = ENCODED;
    let is_plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
        && text.trim() == text
        && !(text.starts_with(before) && text.ends_with(after));
    match is_plain {
        true => text.to_owned(),
        false => format!("{before}{}{after}", STANDARD.encode(text)),
    }
}

#[cfg(test)]
mod tests;
