//! Checks a call's arguments against the tool's JSON Schema before the tool runs.
//!
//! Models make harmless mistakes: a number as a string, `null` for an option that was left out, one string where a list
//! is required. Those are corrected. Everything else is an error that names the argument and the expected value,
//! because the model reads it and tries again. Supported keywords: `type`, `properties`, `required`, `enum`, `items`,
//! `minimum`, `maximum`, `additionalProperties: false`; the tool checks the others.

use serde_json::{Map, Number, Value};

/// Returns arguments that fit `schema`, or one line per problem.
pub(crate) fn fit_arguments(
    schema: &Value,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, Vec<String>> {
    let mut problems = Vec::new();
    let fitted = fit_object(schema, arguments, "", &mut problems);
    if problems.is_empty() { Ok(fitted) } else { Err(problems) }
}

fn fit_object(
    schema: &Value,
    fields: Map<String, Value>,
    path: &str,
    problems: &mut Vec<String>,
) -> Map<String, Value> {
    let properties = schema["properties"].as_object();
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|required| required == name))
    };
    let mut fitted = Map::new();
    let mut unknown_names = false;
    for (name, value) in fields {
        let at = join(path, &name);
        match properties.and_then(|properties| properties.get(&name)) {
            Some(_) if value.is_null() && !required(&name) => {}
            Some(property) => {
                fitted.insert(name, fit(property, value, &at, problems));
            }
            None => {
                unknown_names = true;
                fitted.insert(name, value);
            }
        }
    }
    // A tool may know other spellings of an argument (`file_path`), so the tool itself checks unknown names.
    if !unknown_names {
        let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in names.filter(|name| !fitted.contains_key(*name)) {
            problems.push(format!("`{}` is missing", join(path, name)));
        }
    }
    fitted
}

fn fit(schema: &Value, value: Value, path: &str, problems: &mut Vec<String>) -> Value {
    let wanted = match &schema["type"] {
        Value::String(wanted) => wanted.as_str(),
        _ => return value,
    };
    let Some(value) = coerce(wanted, value, path, problems) else { return Value::Null };
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(&value)
    {
        let names: Vec<String> = allowed.iter().map(Value::to_string).collect();
        problems.push(format!(
            "`{path}` must be one of {}, not {}",
            names.join(", "),
            excerpt(&value)
        ));
    }
    check_range(schema, &value, path, problems);
    match value {
        Value::Object(fields) => Value::Object(fit_object(schema, fields, path, problems)),
        Value::Array(items) => Value::Array(
            items
                .into_iter()
                .enumerate()
                .map(|(at, item)| fit(&schema["items"], item, &format!("{path}[{at}]"), problems))
                .collect(),
        ),
        other => other,
    }
}

/// Converts the value to the wanted type if that needs no guessing.
fn coerce(wanted: &str, value: Value, path: &str, problems: &mut Vec<String>) -> Option<Value> {
    let fitted = match (wanted, &value) {
        ("string", Value::Number(number)) => Some(Value::String(number.to_string())),
        ("string", Value::Bool(flag)) => Some(Value::String(flag.to_string())),
        ("integer", Value::Number(number)) => whole(number.as_f64()),
        ("integer", Value::String(text)) => whole(text.trim().parse().ok()),
        ("number", Value::String(text)) => {
            text.trim().parse().ok().and_then(Number::from_f64).map(Value::Number)
        }
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("array", Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
            Some(Value::Array(vec![value.clone()]))
        }
        ("string", Value::String(_))
        | ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => return Some(value),
        _ => None,
    };
    if fitted.is_none() {
        problems.push(format!(
            "`{path}` must be {}, not {}",
            with_article(wanted),
            excerpt(&value)
        ));
    }
    fitted
}

/// The number as an integer, if it is one.
fn whole(number: Option<f64>) -> Option<Value> {
    /// Beyond this a 64-bit float no longer holds every integer.
    const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
    number
        .filter(|number| number.fract() == 0.0 && number.abs() <= LARGEST_EXACT)
        .map(|number| Value::from(number as i64))
}

fn check_range(schema: &Value, value: &Value, path: &str, problems: &mut Vec<String>) {
    let Some(number) = value.as_f64() else { return };
    if let Some(minimum) = schema["minimum"].as_f64().filter(|minimum| number < *minimum) {
        problems.push(format!("`{path}` must be at least {minimum}, not {number}"));
    }
    if let Some(maximum) = schema["maximum"].as_f64().filter(|maximum| number > *maximum) {
        problems.push(format!("`{path}` must be at most {maximum}, not {number}"));
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn with_article(wanted: &str) -> String {
    let article = if wanted.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {wanted}")
}

/// An excerpt that is long enough to recognise a value.
fn excerpt(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
