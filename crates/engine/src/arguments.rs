//! The arguments of a call: converted to the names of the tool's schema, and checked against it, before anybody reads
//! them.
//!
//! Models make harmless mistakes: a number as a string, `null` for an option that was left out, one string where a list
//! is required. Those are corrected. Everything else is an error that names the argument and the expected value,
//! because the model reads it and tries again. An argument that the schema does not have is an error, so that nobody can
//! give one reader of a call what another does not see. Supported keywords: `type`, `properties`, `required`, `enum`,
//! `items`, `minimum`, `maximum`, `additionalProperties`; the tool checks the others. An object has no other fields than
//! its `properties` unless it has none, or `additionalProperties` permits them.

use std::ops::Index;

use myclaw_files::shortened;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value, json};

use crate::{Tool, ToolAliases, ToolError};

/// Arguments that fit the schema of their tool, under the names of the schema.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct CallArguments(Map<String, Value>);

impl CallArguments {
    /// The arguments `given` for a call of `tool`.
    ///
    /// # Errors
    /// They do not fit: one line per problem.
    pub fn of(tool: &dyn Tool, given: Map<String, Value>) -> Result<Self, Vec<String>> {
        let aliases = tool.aliases();
        fit_arguments(&tool.schema().parameters, &aliases, given).map(Self)
    }

    /// Their values by name.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Their values by name.
    pub fn into_map(self) -> Map<String, Value> {
        self.0
    }

    /// The value of one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Reads them as the type of their tool.
    ///
    /// # Errors
    /// [`ToolError::Failed`] that says which argument is missing or wrong.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        serde_json::from_value(Value::Object(self.0.clone())).map_err(|error| {
            ToolError::Failed(format!(
                "the arguments do not fit: {error}. Correct them and call again"
            ))
        })
    }
}

impl Index<&str> for CallArguments {
    type Output = Value;

    /// The value of one; `null` if it is not given.
    fn index(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }
}

impl ToolAliases {
    /// Renames `arguments` to the names of the schema.
    ///
    /// # Errors
    /// One argument is given under several names with different values: one line for each.
    fn rename(&self, arguments: &mut Map<String, Value>) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        for (alias, own) in self.arguments {
            let (place, alias) = alias.rsplit_once('.').unwrap_or(("", alias));
            let Some(fields) = fields_at(arguments, place) else { continue };
            let Some(value) = fields.remove(alias).filter(|value| !value.is_null()) else {
                continue;
            };
            match fields.get(*own).filter(|known| !known.is_null()) {
                Some(known) if *known != value => problems.push(format!(
                    "`{}` and `{}` are the same argument and have different values; give one of them",
                    join(place, alias),
                    join(place, own)
                )),
                _ => drop(fields.insert((*own).to_owned(), value)),
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}

/// The object at a path of names with dots between them.
fn fields_at<'a>(
    fields: &'a mut Map<String, Value>,
    place: &str,
) -> Option<&'a mut Map<String, Value>> {
    place
        .split('.')
        .filter(|name| !name.is_empty())
        .try_fold(fields, |fields, name| fields.get_mut(name)?.as_object_mut())
}

/// Returns arguments that fit `schema`, or one line per problem.
fn fit_arguments(
    schema: &Value,
    aliases: &ToolAliases,
    mut arguments: Map<String, Value>,
) -> Result<Map<String, Value>, Vec<String>> {
    aliases.rename(&mut arguments)?;
    let mut problems = Vec::new();
    let mut unlisted = Map::new();
    for (name, wanted) in aliases.unlisted {
        if let Some(value) = arguments.remove(*name).filter(|value| !value.is_null()) {
            let fitted = fit(&json!({"type": wanted}), value, name, &mut problems);
            unlisted.insert((*name).to_owned(), fitted);
        }
    }
    let mut fitted = fit_object(schema, arguments, "", &mut problems);
    fitted.extend(unlisted);
    if problems.is_empty() { Ok(fitted) } else { Err(problems) }
}

fn fit_object(
    schema: &Value,
    fields: Map<String, Value>,
    path: &str,
    problems: &mut Vec<String>,
) -> Map<String, Value> {
    let properties = schema["properties"].as_object();
    let others = match &schema["additionalProperties"] {
        Value::Bool(true) => Some(&Value::Null),
        others @ Value::Object(_) => Some(others),
        _ if properties.is_none() => Some(&Value::Null),
        _ => None,
    };
    let required = || schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut fitted = Map::new();
    let mut unknown = Vec::new();
    for (name, value) in fields {
        let at = join(path, &name);
        match properties.and_then(|properties| properties.get(&name)).or(others) {
            Some(_) if value.is_null() && !required().any(|required| required == name) => {}
            Some(property) => {
                fitted.insert(name, fit(property, value, &at, problems));
            }
            None => unknown.push(at),
        }
    }
    if !unknown.is_empty() {
        problems.push(unknown_names(&unknown, properties));
    }
    for name in required().filter(|name| !fitted.contains_key(*name)) {
        problems.push(format!("`{}` is missing", join(path, name)));
    }
    fitted
}

fn unknown_names(unknown: &[String], properties: Option<&Map<String, Value>>) -> String {
    /// Most unknown names that are listed.
    const MOST: usize = 10;
    let quoted = |name: &String| format!("`{}`", excerpt_of(name));
    let names: Vec<String> = unknown.iter().take(MOST).map(quoted).collect();
    let known: Vec<String> =
        properties.into_iter().flatten().map(|(name, _)| quoted(name)).collect();
    let (names, known) = (names.join(", "), known.join(", "));
    match known.is_empty() {
        true => format!("{names}: there are no arguments here"),
        false => format!("{names}: not known here; there are {known}"),
    }
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
    excerpt_of(&value.to_string())
}

fn excerpt_of(text: &str) -> String {
    const LONGEST: usize = 60;
    shortened(text, LONGEST).into_owned()
}

#[cfg(test)]
mod tests;
