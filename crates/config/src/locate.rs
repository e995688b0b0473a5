//! Finds the range of the text that belongs to a path in the config.
//!
//! Only errors need this, so the text is parsed again for them.

use std::ops::Range;

use jsonc_parser::ast::{ObjectProp, ObjectPropName, Value};
use jsonc_parser::common::Ranged as _;

use crate::config_path::{ConfigPath, Step};
use crate::tree::parse_positions;

/// The part of an entry to locate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The key.
    Key,
    /// The value. For an object or a list, which may be long, its key or its first character.
    Value,
}

/// Config text in which paths can be located.
pub(crate) struct Located<'a> {
    root: Option<Value<'a>>,
}

/// A key that an object has twice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DuplicateKey {
    pub(crate) path: ConfigPath,
    /// The second occurrence.
    pub(crate) span: Range<usize>,
    /// The first occurrence.
    pub(crate) first: Range<usize>,
}

impl<'a> Located<'a> {
    /// Parses the text. If that fails, no position is found, and messages are shown without one.
    pub(crate) fn new(text: &'a str) -> Self {
        let root = parse_positions(text).ok().flatten();
        Self { root }
    }

    /// The range of `path`, in bytes. If the path does not exist, such as for a missing key, the range of its deepest
    /// existing part.
    pub(crate) fn span(&self, path: &ConfigPath, target: Target) -> Option<Range<usize>> {
        let mut value = self.root.as_ref()?;
        let mut key = None;
        let mut reached = true;
        for step in path.steps() {
            let next = match (value, step) {
                (Value::Object(object), Step::Key(name)) => {
                    object.properties.iter().find(|property| property.name.as_str() == name)
                }
                (Value::Array(array), Step::Index(index)) => {
                    let Some(element) = array.elements.get(*index) else {
                        reached = false;
                        break;
                    };
                    (value, key) = (element, None);
                    continue;
                }
                _ => None,
            };
            let Some(property) = next else {
                reached = false;
                break;
            };
            (value, key) = (&property.value, Some(name_span(property)));
        }
        let is_container = matches!(value, Value::Object(_) | Value::Array(_));
        if reached && target == Target::Value && !is_container {
            return Some(value.start()..value.end());
        }
        Some(key.unwrap_or(value.start()..value.start() + 1))
    }

    /// The place of the value that begins at `offset`.
    pub(crate) fn path_at(&self, offset: usize) -> Option<ConfigPath> {
        let mut value = self.root.as_ref()?;
        let mut path = ConfigPath::default();
        while value.start() != offset {
            match value {
                Value::Object(object) => {
                    let property = object
                        .properties
                        .iter()
                        .find(|property| contains(&property.value, offset))?;
                    path.push_key(property.name.as_str());
                    value = &property.value;
                }
                Value::Array(array) => {
                    let index =
                        array.elements.iter().position(|element| contains(element, offset))?;
                    path.push_index(index);
                    value = &array.elements[index];
                }
                _ => return None,
            }
        }
        Some(path)
    }

    /// Keys that an object has twice, at most `limit`.
    pub(crate) fn duplicate_keys(&self, limit: usize) -> Vec<DuplicateKey> {
        let mut found = Vec::new();
        if let Some(root) = &self.root {
            collect_duplicates(root, &mut ConfigPath::default(), limit, &mut found);
        }
        found
    }
}

fn contains(value: &Value<'_>, offset: usize) -> bool {
    (value.start()..value.end()).contains(&offset)
}

fn name_span(property: &ObjectProp<'_>) -> Range<usize> {
    match &property.name {
        ObjectPropName::String(name) => name.start()..name.end(),
        ObjectPropName::Word(name) => name.start()..name.end(),
    }
}

fn collect_duplicates(
    value: &Value<'_>,
    path: &mut ConfigPath,
    limit: usize,
    found: &mut Vec<DuplicateKey>,
) {
    match value {
        Value::Object(object) => {
            let mut seen = std::collections::HashMap::with_capacity(object.properties.len());
            for property in &object.properties {
                path.push_key(property.name.as_str());
                let span = name_span(property);
                match seen.get(property.name.as_str()) {
                    Some(first) if found.len() < limit => {
                        let first: &Range<usize> = first;
                        found.push(DuplicateKey { path: path.clone(), span, first: first.clone() });
                    }
                    Some(_) => {}
                    None => {
                        seen.insert(property.name.as_str(), span);
                    }
                }
                collect_duplicates(&property.value, path, limit, found);
                path.pop();
            }
        }
        Value::Array(array) => {
            for (index, element) in array.elements.iter().enumerate() {
                path.push_index(index);
                collect_duplicates(element, path, limit, found);
                path.pop();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
