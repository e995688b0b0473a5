//! Checks a config tree against the JSON Schema and reports every mistake at once.
//!
//! Reading a config into [`crate::Config`] stops at the first mistake, with serde's message. So when that fails, the
//! tree is checked against the schema. Only the keywords that the schema uses are supported. No message quotes a string
//! value, because it may be a misplaced secret.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::config_path::ConfigPath;
use crate::locate::Target;
use crate::schema::FORMATS;
use crate::{hints, suggest};

/// The problem of a key that the schema does not have.
pub(crate) const UNKNOWN_KEY: &str = "unknown key";
/// Most keys that are listed if no key is similar to an unknown one.
const MAX_LISTED_KEYS: usize = 16;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: ConfigPath,
    pub(crate) target: Target,
    /// The problem.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

/// A mistake in the value at `path`.
pub(crate) fn finding(
    path: ConfigPath,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Finding {
    Finding { path, target: Target::Value, message: message.into(), help: Some(help.into()) }
}

/// Validates a tree against a schema from [`crate::json_schema()`]. Returns the first `limit` mistakes.
pub(crate) fn validate(schema: &Value, tree: &Value, limit: usize) -> Vec<Finding> {
    let mut validator =
        Validator { root: schema, path: ConfigPath::default(), findings: Vec::new(), limit };
    validator.value(schema, tree);
    validator.findings
}

struct Validator<'s> {
    root: &'s Value,
    path: ConfigPath,
    findings: Vec<Finding>,
    limit: usize,
}

impl<'s> Validator<'s> {
    fn value(&mut self, schema: &'s Value, value: &Value) {
        let schema = self.resolve(schema);
        if let Some(words) = allowed_words(schema) {
            return self.word(schema, &words, value);
        }
        if let Some(branches) = schema["anyOf"].as_array() {
            return self.any_of(schema, branches, value);
        }
        if !has_type(schema, value) {
            return self.wrong(schema, value);
        }
        match value {
            Value::Object(entries) => self.object(schema, entries),
            Value::Array(items) => self.list(schema, items),
            Value::Number(_) if !in_range(schema, value) => self.wrong(schema, value),
            Value::String(text)
                if format_of(schema).is_some_and(|format| !(format.accepts)(text)) =>
            {
                self.wrong(schema, value);
            }
            _ => {}
        }
    }

    /// Within an object the branch for the value's type describes the problem; elsewhere all branches are listed.
    fn any_of(&mut self, schema: &'s Value, branches: &'s [Value], value: &Value) {
        let Some(branch) = branches.iter().find(|branch| has_type(self.resolve(branch), value))
        else {
            return self.wrong(schema, value);
        };
        let before = self.findings.len();
        self.value(branch, value);
        if self.findings.len() > before && !value.is_object() {
            self.findings.truncate(before);
            self.wrong(schema, value);
        }
    }

    fn word(&mut self, schema: &'s Value, words: &[&str], value: &Value) {
        match value {
            Value::String(text) if words.contains(&text.as_str()) => {}
            Value::String(text) => {
                let help = suggest::nearest(text, words.iter().copied()).map(did_you_mean);
                self.report(
                    Target::Value,
                    format!("expected {}, found another string", describe(schema)),
                    help,
                );
            }
            _ => self.wrong(schema, value),
        }
    }

    fn object(&mut self, schema: &'s Value, entries: &Map<String, Value>) {
        let none = Map::new();
        let known = schema["properties"].as_object().unwrap_or(&none);
        let mut meant = Vec::new();
        for (key, entry) in entries {
            if self.findings.len() == self.limit {
                return;
            }
            self.path.push_key(key);
            if let Some(property) = schema["properties"].get(key) {
                self.value(property, entry);
            } else if let Some(others) =
                schema.get("additionalProperties").filter(|others| others.is_object())
            {
                self.value(others, entry);
            } else {
                let is_free = |name: &&str| !entries.contains_key(*name);
                let advice = hints::for_key(&self.path, key);
                let near = match advice {
                    Some(_) => None,
                    None => suggest::nearest(key, known.keys().map(String::as_str).filter(is_free)),
                };
                let near = near.or_else(|| {
                    let synonym = advice.is_none().then(|| hints::synonym(key, known));
                    synonym.flatten().filter(is_free)
                });
                meant.extend(near);
                let advice = advice.map(str::to_owned).or_else(|| near.map(did_you_mean));
                let help = advice.or_else(|| self.help_for_unknown(key, entry, known));
                self.report(Target::Key, UNKNOWN_KEY.to_owned(), help);
            }
            self.path.pop();
        }
        let required =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for key in required.filter(|key| !entries.contains_key(*key) && !meant.contains(key)) {
            self.path.push_key(key);
            let expected = known
                .get(key)
                .map_or(Cow::Borrowed("a value"), |property| describe(self.resolve(property)));
            self.report(
                Target::Key,
                "this key is missing".to_owned(),
                Some(format!("add it, with {expected}")),
            );
            self.path.pop();
        }
    }

    fn help_for_unknown(
        &self,
        key: &str,
        entry: &Value,
        known: &Map<String, Value>,
    ) -> Option<String> {
        if let Some(advice) = hints::for_entry(&self.path, key, entry) {
            return Some(advice.to_owned());
        }
        let longer = hints::longer_keys(key, known.keys().map(String::as_str));
        if !longer.is_empty() {
            let longer: Vec<_> = longer.iter().map(|key| format!("`{key}`")).collect();
            return Some(format!("did you mean {}?", longer.join(" or ")));
        }
        if let Some(place) = self.place_of_key(key, entry) {
            return Some(format!("did you mean `{place}`?"));
        }
        if let Some(taken) = suggest::nearest(key, known.keys().map(String::as_str)) {
            return Some(format!("like `{taken}`, which is here already"));
        }
        let keys: Vec<_> = known
            .keys()
            .filter(|name| !name.starts_with('$'))
            .map(|name| format!("`{name}`"))
            .collect();
        (!keys.is_empty() && keys.len() <= MAX_LISTED_KEYS)
            .then(|| format!("known here: {}", keys.join(", ")))
    }

    /// The one place where a key that is unknown here would be valid. Searches sections, but not lists and maps. A key of
    /// one word, such as `enabled`, means something else in each section, unless it is a section of its own.
    fn place_of_key(&self, key: &str, entry: &Value) -> Option<ConfigPath> {
        let is_section = || self.root["properties"].get(key).is_some() && entry.is_object();
        if !key.contains(char::is_uppercase) && !is_section() {
            return None;
        }
        let mut sections = vec![(ConfigPath::default(), self.root)];
        let mut places = Vec::new();
        let mut next = 0;
        while let Some((path, section)) = sections.get(next).cloned() {
            next += 1;
            let Some(properties) = self.resolve(section)["properties"].as_object() else {
                continue;
            };
            if properties.contains_key(key) {
                places.push(path.clone().key(key));
            }
            sections
                .extend(properties.iter().map(|(name, section)| (path.clone().key(name), section)));
        }
        let is_one = places.len() == 1 || is_section();
        places.into_iter().next().filter(|_| is_one)
    }

    fn list(&mut self, schema: &'s Value, items: &[Value]) {
        if schema["minItems"].as_u64().is_some_and(|least| (items.len() as u64) < least) {
            self.report(
                Target::Value,
                "expected at least one entry, found an empty list".to_owned(),
                None,
            );
        }
        for (index, item) in items.iter().enumerate() {
            self.path.push_index(index);
            self.value(&schema["items"], item);
            self.path.pop();
        }
    }

    /// The schema that a reference points to.
    fn resolve(&self, schema: &'s Value) -> &'s Value {
        let name = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| target.strip_prefix("#/$defs/"));
        name.and_then(|name| self.root["$defs"].get(name)).unwrap_or(schema)
    }

    fn wrong(&mut self, schema: &'s Value, value: &Value) {
        let expected = describe(schema);
        let wants_string = wants_string(schema);
        let found = match value {
            Value::String(text) if wants_string && text.trim().is_empty() => "an empty one".into(),
            Value::String(_) if wants_string => "another string".into(),
            _ => found(value),
        };
        let message = format!("expected {expected}, found {found}");
        let help = match value {
            Value::Null => Some("leave the key out instead".to_owned()),
            Value::String(text) if is_address(schema) => hints::for_address(text),
            Value::String(_) | Value::Bool(_) | Value::Array(_)
                if self.properties(schema, value).is_some() =>
            {
                let words = |schema: &'s Value| -> Vec<String> {
                    let allowed = allowed_words(self.resolve_any(schema)).unwrap_or_default();
                    allowed.into_iter().map(str::to_owned).collect()
                };
                self.properties(schema, value)
                    .and_then(|known| hints::for_object(known, words, value))
            }
            Value::String(_) | Value::Object(_) | Value::Number(_) if schema["type"] == "array" => {
                let items = self.resolve(&schema["items"]);
                let item = match self.properties(items, value) {
                    Some(known) if known.contains_key("id") => "{ id: \"…\" }",
                    Some(_) => "{ … }",
                    None if items["type"] == "string" => "\"…\"",
                    None => "…",
                };
                Some(format!("write a list, such as `[{item}]`"))
            }
            Value::Array(_) if schema["additionalProperties"].is_object() => {
                Some("write an entry with a name for each: `{ \"NAME\": { … } }`".to_owned())
            }
            Value::String(_)
                if !wants_string && schema["type"] != "object" && schema["type"] != "array" =>
            {
                Some(
                    "write it without quotes; a `${VAR}` reference always gives a string"
                        .to_owned(),
                )
            }
            _ => None,
        };
        self.report(Target::Value, message, help);
    }

    /// The keys of the object that is expected instead of `value`.
    fn properties(&self, schema: &'s Value, value: &Value) -> Option<&'s Map<String, Value>> {
        if wants_string(schema) && !value.is_array() {
            return None;
        }
        let branches = schema["anyOf"].as_array().into_iter().flatten();
        let mut schemas = branches.chain([schema]).map(|schema| self.resolve(schema));
        schemas.find_map(|schema| schema["properties"].as_object())
    }

    /// The schema behind a reference, also where the key may be left out.
    fn resolve_any(&self, schema: &'s Value) -> &'s Value {
        let mut branches = schema["anyOf"].as_array().into_iter().flatten();
        self.resolve(branches.find(|branch| branch.get("$ref").is_some()).unwrap_or(schema))
    }

    fn report(&mut self, target: Target, message: String, help: Option<String>) {
        if self.findings.len() < self.limit {
            self.findings.push(Finding { path: self.path.clone(), target, message, help });
        }
    }
}

/// Whether an address is expected.
fn is_address(schema: &Value) -> bool {
    let branches = schema["anyOf"].as_array();
    schema["format"] == "uri" || branches.is_some_and(|all| all.iter().any(is_address))
}

/// Whether some other string would be valid.
fn wants_string(schema: &Value) -> bool {
    let branches = schema["anyOf"].as_array();
    schema["type"] == "string"
        || allowed_words(schema).is_some()
        || branches.is_some_and(|branches| branches.iter().any(wants_string))
}

fn did_you_mean(word: &str) -> String {
    format!("did you mean `{word}`?")
}

/// The words of a schema that allows only a fixed list.
fn allowed_words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(Value::as_str).collect();
    }
    schema["oneOf"].as_array()?.iter().map(|branch| branch["const"].as_str()).collect()
}

fn has_type(schema: &Value, value: &Value) -> bool {
    match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

fn in_range(schema: &Value, value: &Value) -> bool {
    let Some(number) = value.as_f64() else {
        return true;
    };
    let above = schema["minimum"].as_f64().is_none_or(|least| number >= least);
    let below = schema["maximum"].as_f64().is_none_or(|most| number <= most);
    above && below
}

fn format_of(schema: &Value) -> Option<&'static crate::schema::Format> {
    let pattern = schema["pattern"].as_str()?;
    FORMATS.iter().find(|format| format.pattern == pattern)
}

/// The expected value, worded to follow "expected".
fn describe(schema: &Value) -> Cow<'static, str> {
    if let Some(words) = allowed_words(schema) {
        let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
        return either(&words).into();
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        let branches: Vec<_> =
            branches.iter().map(|branch| describe(branch).into_owned()).collect();
        return either(&branches).into();
    }
    match schema["type"].as_str() {
        Some("string") => format_of(schema).map_or("a string", |format| format.expected).into(),
        Some("boolean") => "true or false".into(),
        Some("object") => "an object".into(),
        Some("array") => "a list".into(),
        Some("number") => match schema["maximum"].as_number() {
            Some(most) => format!("a number from 0 to {most}").into(),
            None => "a number that is not negative".into(),
        },
        Some("integer") => describe_integer(schema),
        _ => "another value".into(),
    }
}

fn describe_integer(schema: &Value) -> Cow<'static, str> {
    match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
        (Some(1), None) => "a positive integer".into(),
        (Some(0), _) => "0 or a positive integer".into(),
        (Some(least), Some(most)) => format!("an integer from {least} to {most}").into(),
        _ => "an integer".into(),
    }
}

/// "a, b or c".
fn either(phrases: &[String]) -> String {
    match phrases {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn found(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string().into(),
        Value::Number(number) => number.to_string().into(),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

#[cfg(test)]
mod tests;
