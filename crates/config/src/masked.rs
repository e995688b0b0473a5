//! The values of the config without its secrets.

use serde_json::{Map, Value};

use crate::ConfigPath;
use crate::edit::find;
use crate::json_schema;
use crate::mask::{holds_literal_secret, is_secret_key};
use crate::substitute::is_one_reference;

/// Stands for a secret.
pub const MASKED: &str = "••••••••";

/// Values of a config without secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskedValues {
    /// The values, with [`MASKED`] in place of each secret.
    pub values: Value,
    /// Where the secrets are.
    pub secrets: Vec<ConfigPath>,
}

impl MaskedValues {
    /// The value at a place; the root is the whole file.
    pub fn get(&self, path: &ConfigPath) -> Option<&Value> {
        find(&self.values, path.steps())
    }
}

/// Masks what the schema calls a secret, and what looks like one. `${NAME}` is shown.
pub(crate) fn mask(tree: &Value) -> MaskedValues {
    let schema = json_schema();
    let mut masker = Masker { root: &schema, path: ConfigPath::default(), secrets: Vec::new() };
    let mut values = tree.clone();
    masker.value(&mut values, &expand(&schema, &[&schema]));
    MaskedValues { values, secrets: masker.secrets }
}

/// Whether a value is or contains the placeholder.
pub(crate) fn holds_mask(value: &Value) -> bool {
    match value {
        Value::String(text) => text == MASKED,
        Value::Array(items) => items.iter().any(holds_mask),
        Value::Object(map) => map.values().any(holds_mask),
        _ => false,
    }
}

/// Replaces each placeholder by the text that is at its place in `old`. False if there is none.
pub(crate) fn fill_in(value: &mut Value, old: Option<&Value>) -> bool {
    match value {
        Value::String(text) if text == MASKED => match old {
            Some(Value::String(secret)) => {
                text.clone_from(secret);
                true
            }
            _ => false,
        },
        Value::Array(items) => items
            .iter_mut()
            .enumerate()
            .all(|(index, item)| fill_in(item, old.and_then(|old| old.get(index)))),
        Value::Object(map) => {
            map.iter_mut().all(|(key, value)| fill_in(value, old.and_then(|old| old.get(key))))
        }
        _ => true,
    }
}

struct Masker<'s> {
    root: &'s Value,
    path: ConfigPath,
    secrets: Vec<ConfigPath>,
}

impl<'s> Masker<'s> {
    /// Masks a value that has these schemas, of which one holds.
    fn value(&mut self, value: &mut Value, schemas: &[&'s Map<String, Value>]) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let below = self.of_key(schemas, key);
                    self.path.push_key(key);
                    if below.is_empty() && is_secret_key(key) {
                        self.secret(value);
                    } else {
                        self.value(value, &below);
                    }
                    self.path.pop();
                }
            }
            Value::Array(items) => {
                let of_items = schemas.iter().filter_map(|schema| schema.get("items"));
                let below = expand(self.root, &of_items.collect::<Vec<_>>());
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push_index(index);
                    self.value(item, &below);
                    self.path.pop();
                }
            }
            Value::String(text) => {
                let is_secret =
                    schemas.iter().any(|schema| schema.get("writeOnly") == Some(&true.into()));
                // Text in the place of an object or a list is most likely a secret that belongs into it.
                let is_misplaced =
                    !schemas.is_empty() && !schemas.iter().any(|schema| takes_text(schema));
                if is_secret || is_misplaced || holds_literal_secret(text) {
                    self.secret(value);
                }
            }
            _ => {}
        }
    }

    /// The schemas of an entry of an object.
    fn of_key(&self, schemas: &[&'s Map<String, Value>], key: &str) -> Vec<&'s Map<String, Value>> {
        let found = schemas.iter().filter_map(|schema| {
            let named = schema.get("properties").and_then(|properties| properties.get(key));
            named.or_else(|| schema.get("additionalProperties"))
        });
        expand(self.root, &found.collect::<Vec<_>>())
    }

    /// Masks every text in a value.
    fn secret(&mut self, value: &mut Value) {
        match value {
            Value::String(text) if text.trim().is_empty() || is_one_reference(text) => {}
            Value::String(_) | Value::Number(_) => {
                *value = Value::from(MASKED);
                self.secrets.push(self.path.clone());
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push_index(index);
                    self.secret(item);
                    self.path.pop();
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    self.path.push_key(key);
                    self.secret(value);
                    self.path.pop();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// Whether a schema admits text.
fn takes_text(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(|name| name == "string"),
        Some(name) => name == "string",
        None => schema.contains_key("enum") || schema.contains_key("const"),
    }
}

/// The schemas themselves, what they refer to, and their alternatives.
pub(crate) fn expand<'s>(root: &'s Value, schemas: &[&'s Value]) -> Vec<&'s Map<String, Value>> {
    let mut found = Vec::new();
    let mut open = schemas.to_vec();
    while let Some(schema) = open.pop() {
        let Some(map) = schema.as_object() else { continue };
        let named = map
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|name| root.pointer(name.strip_prefix('#').unwrap_or_default()));
        open.extend(named);
        for keyword in ["anyOf", "oneOf", "allOf"] {
            open.extend(map.get(keyword).and_then(Value::as_array).into_iter().flatten());
        }
        found.push(map);
    }
    found
}
