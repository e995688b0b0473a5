//! The JSON Schema of the config file, for editors and for this crate's own diagnostics.

use serde_json::{Map, Value};

use crate::config_path::Step;
use crate::load::MAX_ISSUES;
use crate::masked::expand;
use crate::validate::{UNKNOWN_KEY, validate};
use crate::{Config, ConfigPath, Mistake};

/// The schema (draft 2020-12) of the config file: every object strict, every key described, secrets plain strings
/// marked `writeOnly`.
///
/// It describes the file before `${VAR}` references are replaced. [`crate::load_config`] refuses everything that the
/// schema refuses. It also checks what a schema cannot express, such as unique ids.
pub fn json_schema() -> Value {
    let mut schema = schemars::schema_for!(Config).to_value();
    tidy(&mut schema);
    schema
}

/// The mistake in a path that the config cannot have: its first unknown key. `None` if it can have the path.
pub fn unknown_key(path: &ConfigPath) -> Option<Mistake> {
    let mut tree = Value::Null;
    for step in path.steps().iter().rev() {
        tree = match step {
            Step::Key(key) => Value::Object(Map::from_iter([(key.clone(), tree)])),
            Step::Index(_) => Value::Array(vec![tree]),
        };
    }
    let found = validate(&json_schema(), &tree, MAX_ISSUES);
    let unknown = found.into_iter().find(|finding| finding.message == UNKNOWN_KEY)?;
    Some(Mistake { path: unknown.path, message: unknown.message, help: unknown.help })
}

/// What the config may have at a path, down to the keys of its objects: their types, values and descriptions. `None` if there
/// is no such place.
pub fn schema_outline(path: &ConfigPath) -> Option<Value> {
    let root = json_schema();
    let mut place = resolved(&root, &root);
    for step in path.steps() {
        let found = place.iter().find_map(|schema| match step {
            Step::Key(key) => {
                let named = schema.get("properties").and_then(|keys| keys.get(key));
                named.or_else(|| schema.get("additionalProperties").filter(|any| any.is_object()))
            }
            Step::Index(_) => schema.get("items"),
        })?;
        place = resolved(&root, found);
    }
    Some(outline(&root, &place, OUTLINE_DEPTH))
}

/// Objects in objects that an outline describes.
const OUTLINE_DEPTH: usize = 1;

/// A schema with what it refers to, and its alternatives.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Map<String, Value>> {
    expand(root, &[schema])
}

fn outline(root: &Value, schemas: &[&Map<String, Value>], depth: usize) -> Value {
    let mut shown = Map::new();
    for schema in schemas {
        for keyword in ["type", "enum", "const", "description", "default", "minimum", "maximum"] {
            if let Some(value) = schema.get(keyword) {
                shown.entry(keyword).or_insert_with(|| value.clone());
            }
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(below) = schema.get(keyword).filter(|below| below.is_object() && depth > 0)
            {
                shown.insert(keyword.to_owned(), outline(root, &resolved(root, below), depth - 1));
            }
        }
        for (key, below) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            if depth > 0 {
                let keys = shown.entry("keys").or_insert_with(|| Value::Object(Map::new()));
                if let Some(keys) = keys.as_object_mut() {
                    keys.insert(key.clone(), outline(root, &resolved(root, below), depth - 1));
                }
            }
        }
    }
    Value::Object(shown)
}

/// Removes what the generator adds for Rust's types: `null` (a key is left out, not set to null), and integer widths as
/// formats, which editors do not know.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            tidy_keywords(keywords);
            keywords.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn tidy_keywords(keywords: &mut Map<String, Value>) {
    if keywords.get("default").is_some_and(Value::is_null) {
        keywords.shift_remove("default");
    }
    if keywords.get("format").and_then(Value::as_str).is_some_and(|format| format != "uri") {
        keywords.shift_remove("format");
    }
    if let Some(Value::Array(types)) = keywords.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            keywords.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(branches)) = keywords.get_mut("anyOf") else {
        return;
    };
    branches.retain(|branch| branch.get("type").is_none_or(|name| name != "null"));
    if branches.len() == 1
        && let Some(Value::Object(only)) = branches.pop()
    {
        keywords.shift_remove("anyOf");
        for (keyword, value) in only {
            keywords.entry(keyword).or_insert(value);
        }
    }
}
