//! Changes values in the text of the config, and keeps everything else: comments, order, blank lines.
//!
//! The text is edited as a tree that holds every character of it. Each change is checked: the new text must be the old
//! values with that change and nothing else.

use jsonc_parser::cst::{
    CstArray, CstContainerNode, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode,
    ObjectPropName,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config_path::Step;
use crate::{ConfigPath, syntax, tree};

/// One change of the config.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum ConfigChange {
    /// Gives a key or an entry of a list another value. Objects on the way to a key are made. An index that is the
    /// length of its list appends.
    Set {
        /// The key, or the entry.
        path: ConfigPath,
        /// Its value.
        value: Value,
    },
    /// Removes a key or an entry of a list; one that is not there is no mistake.
    Unset {
        /// The key, or the entry.
        path: ConfigPath,
    },
    /// Adds an entry at the end of a list, which is made if it is not there.
    Append {
        /// The list.
        path: ConfigPath,
        /// The entry.
        value: Value,
    },
}

impl ConfigChange {
    /// The value that it concerns.
    pub fn path(&self) -> &ConfigPath {
        match self {
            Self::Set { path, .. } | Self::Unset { path } | Self::Append { path, .. } => path,
        }
    }
}

/// Why the config cannot be changed in this way. No message quotes a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct EditError {
    /// The value that was to be changed.
    pub path: ConfigPath,
    /// What is in the way.
    pub problem: EditProblem,
}

/// What is in the way of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EditProblem {
    /// The text as it is cannot be read.
    #[error("the file cannot be read as it is; `myclaw config check` says where")]
    Unreadable,
    /// A step of the path leads into something else.
    #[error("this is inside of a value that is no object and no list, or in none of its entries")]
    NoSuchPlace,
    /// Something is appended to a value that is no list.
    #[error("only a list can be appended to")]
    NotAList,
    /// The value is nested too deep, or is the whole file.
    #[error("this value cannot be written to the config")]
    NotAValue,
    /// The text could not be changed without changing something else.
    #[error(
        "this cannot be changed without touching other parts of the file; edit it with a text editor"
    )]
    NotAlone,
    /// The placeholder of a secret, where the file has no secret.
    #[error(
        "this is the placeholder of a secret, but the file has none here; write the secret itself, or `${{NAME}}`"
    )]
    NoSecretHere,
}

impl EditProblem {
    pub(crate) fn at(self, path: &ConfigPath) -> EditError {
        EditError { path: path.clone(), problem: self }
    }
}

/// Applies changes to the text of a config, one after the other.
///
/// # Errors
/// The text is not JSON5, or a change does not fit it. No text is made then.
pub fn edit_config(text: &str, changes: &[ConfigChange]) -> Result<String, EditError> {
    let mut text = text.to_owned();
    for change in changes {
        text = edit(&text, change).map_err(|problem| problem.at(change.path()))?;
    }
    Ok(text)
}

fn edit(text: &str, change: &ConfigChange) -> Result<String, EditProblem> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let mut wanted = tree::parse(body).map_err(|_| EditProblem::Unreadable)?;
    let before = wanted.clone();
    // As the text will be read: 25.0 is 25 there.
    let read = |value: &Value| tree::parse(&value.to_string()).map_err(|_| EditProblem::NotAValue);
    let root = CstRootNode::parse(body, &tree::options()).map_err(|_| EditProblem::Unreadable)?;
    let editor = Editor { is_plain: writes_plain_keys(&root) };
    match change {
        ConfigChange::Set { path, value } => {
            let value = read(value)?;
            put(&mut wanted, path.steps(), value.clone())?;
            editor.set(&root, path.steps(), &value)?;
        }
        ConfigChange::Append { path, value } => {
            let value = read(value)?;
            let end = match find(&wanted, path.steps()) {
                Some(Value::Array(items)) => Some(items.len()),
                Some(_) => return Err(EditProblem::NotAList),
                None => None,
            };
            let (path, value) = match end {
                Some(end) => (path.clone().index(end), value),
                None => (path.clone(), Value::Array(vec![value])),
            };
            put(&mut wanted, path.steps(), value.clone())?;
            editor.set(&root, path.steps(), &value)?;
        }
        ConfigChange::Unset { path } => {
            if !take(&mut wanted, path.steps())? {
                return Ok(text.to_owned());
            }
            remove(&root, path.steps()).ok_or(EditProblem::NotAlone)?;
        }
    }
    if wanted == before {
        return Ok(text.to_owned());
    }
    let edited = root.to_string();
    match tree::parse(&edited) {
        Ok(now) if now == wanted => Ok(format!("{mark}{edited}")),
        _ => Err(EditProblem::NotAlone),
    }
}

/// The value at a place.
pub(crate) fn find<'v>(value: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.as_object()?.get(key),
        Step::Index(index) => value.as_array()?.get(*index),
    })
}

/// Sets a value in a tree.
fn put(tree: &mut Value, steps: &[Step], new: Value) -> Result<(), EditProblem> {
    let [step, rest @ ..] = steps else {
        // The whole file is an object.
        *tree = new;
        return if tree.is_object() { Ok(()) } else { Err(EditProblem::NotAValue) };
    };
    let below = match (tree, step) {
        (Value::Object(object), Step::Key(key)) => {
            object.entry(key.as_str()).or_insert_with(|| match rest {
                [Step::Index(_), ..] => Value::Array(Vec::new()),
                _ => Value::Object(Map::new()),
            })
        }
        (Value::Array(items), Step::Index(index)) => {
            if *index == items.len() {
                items.push(Value::Object(Map::new()));
            }
            items.get_mut(*index).ok_or(EditProblem::NoSuchPlace)?
        }
        _ => return Err(EditProblem::NoSuchPlace),
    };
    if rest.is_empty() {
        *below = new;
        return Ok(());
    }
    put(below, rest, new)
}

/// Removes a value from a tree. False if it was not there.
fn take(tree: &mut Value, steps: &[Step]) -> Result<bool, EditProblem> {
    let [before @ .., last] = steps else { return Err(EditProblem::NotAValue) };
    let mut value = tree;
    for step in before {
        let below = match (value, step) {
            (Value::Object(object), Step::Key(key)) => object.get_mut(key),
            (Value::Array(items), Step::Index(index)) => items.get_mut(*index),
            _ => return Err(EditProblem::NoSuchPlace),
        };
        let Some(below) = below else { return Ok(false) };
        value = below;
    }
    match (value, last) {
        (Value::Object(object), Step::Key(key)) => Ok(object.shift_remove(key).is_some()),
        (Value::Array(items), Step::Index(index)) if *index < items.len() => {
            items.remove(*index);
            Ok(true)
        }
        (Value::Array(_), Step::Index(_)) => Ok(false),
        _ => Err(EditProblem::NoSuchPlace),
    }
}

/// Whether the keys of the file have no quotes.
fn writes_plain_keys(root: &CstRootNode) -> bool {
    let first = root.object_value().and_then(|object| object.properties().into_iter().next());
    first.is_none_or(|first| matches!(first.name(), Some(ObjectPropName::Word(_))))
}

/// Writes values in the style of the file.
#[derive(Clone, Copy)]
struct Editor {
    /// Keys have no quotes.
    is_plain: bool,
}

impl Editor {
    fn set(self, root: &CstRootNode, steps: &[Step], value: &Value) -> Result<(), EditProblem> {
        let Some(node) = root.value() else { return Err(EditProblem::Unreadable) };
        if steps.is_empty() {
            root.set_value(input(value));
            self.tidy(root.value());
            return Ok(());
        }
        self.set_below(&node, steps, value).ok_or(EditProblem::NotAlone)
    }

    fn set_below(self, node: &CstNode, steps: &[Step], value: &Value) -> Option<()> {
        match steps {
            [] => None,
            [Step::Key(key), rest @ ..] => self.set_key(&node.as_object()?, key, rest, value),
            [Step::Index(index), rest @ ..] => {
                self.set_entry(&node.as_array()?, *index, rest, value)
            }
        }
    }

    fn set_key(self, object: &CstObject, key: &str, rest: &[Step], value: &Value) -> Option<()> {
        match (object.get(key), rest) {
            (Some(property), []) => {
                property.set_value(input(value));
                self.tidy(property.value());
            }
            (Some(property), rest) => self.set_below(&property.value()?, rest, value)?,
            (None, rest) => {
                let mut new = match rest {
                    [Step::Index(_), ..] => Value::Array(Vec::new()),
                    _ => Value::Object(Map::new()),
                };
                put_or_replace(&mut new, rest, value)?;
                self.tidy_property(&object.append(key, input(&new)));
            }
        }
        Some(())
    }

    fn set_entry(self, array: &CstArray, index: usize, rest: &[Step], value: &Value) -> Option<()> {
        match (array.elements().get(index), rest) {
            (Some(entry), []) => self.tidy(replace(entry, input(value))),
            (Some(entry), rest) => self.set_below(entry, rest, value)?,
            (None, rest) => {
                let mut new = Value::Object(Map::new());
                put_or_replace(&mut new, rest, value)?;
                let entry = array.append(input(&new));
                self.tidy(Some(entry));
            }
        }
        Some(())
    }

    /// Removes the quotes of new keys where the file writes none.
    fn tidy(self, node: Option<CstNode>) {
        if !self.is_plain {
            return;
        }
        let Some(node) = node else { return };
        if let Some(object) = node.as_object() {
            object.properties().iter().for_each(|property| self.tidy_property(property));
        } else if let Some(array) = node.as_array() {
            array.elements().into_iter().for_each(|entry| self.tidy(Some(entry)));
        }
    }

    fn tidy_property(self, property: &CstObjectProp) {
        if !self.is_plain {
            return;
        }
        if let Some(ObjectPropName::String(name)) = property.name()
            && let Ok(key) = name.decoded_value()
            && is_word(&key)
        {
            name.set_raw_value(key);
        }
        self.tidy(property.value());
    }
}

fn put_or_replace(new: &mut Value, rest: &[Step], value: &Value) -> Option<()> {
    if rest.is_empty() {
        *new = value.clone();
        return Some(());
    }
    put(new, rest, value.clone()).ok()
}

/// Whether a key needs no quotes.
fn is_word(key: &str) -> bool {
    !key.is_empty()
        && key.chars().all(syntax::is_word_character)
        && key.is_ascii()
        && !key.starts_with(|first: char| first.is_ascii_digit())
        && !matches!(key, "null" | "true" | "false")
}

fn replace(node: &CstNode, value: CstInputValue) -> Option<CstNode> {
    if let Some(array) = node.as_array() {
        return array.replace_with(value);
    }
    if let Some(object) = node.as_object() {
        return object.replace_with(value);
    }
    if let Some(text) = node.as_string_lit() {
        return text.replace_with(value);
    }
    if let Some(number) = node.as_number_lit() {
        return number.replace_with(value);
    }
    if let Some(flag) = node.as_boolean_lit() {
        return flag.replace_with(value);
    }
    node.as_null_keyword()?.replace_with(value)
}

fn remove(root: &CstRootNode, steps: &[Step]) -> Option<()> {
    let [before @ .., last] = steps else { return None };
    let mut node = root.value()?;
    for step in before {
        node = match step {
            Step::Key(key) => node.as_object()?.get(key)?.value()?,
            Step::Index(index) => node.as_array()?.elements().get(*index)?.clone(),
        };
    }
    let found = match last {
        Step::Key(key) => {
            CstNode::Container(CstContainerNode::ObjectProp(node.as_object()?.get(key)?))
        }
        Step::Index(index) => node.as_array()?.elements().get(*index)?.clone(),
    };
    found.remove();
    Some(())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(map) => CstInputValue::Object(
            map.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests;
