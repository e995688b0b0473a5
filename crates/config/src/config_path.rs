//! A path to a value of the config, written as `provider.authProfiles[0].apiKey`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::edit::find;

/// Longest key that a message quotes, in characters.
const MAX_SHOWN_KEY: usize = 64;

/// One step down into the config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Step {
    /// Into an object.
    Key(String),
    /// Into a list, from 0.
    Index(usize),
}

/// A path to a value of the config; the empty path is the whole file. Programs see it as a list of keys and indexes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfigPath(Vec<Step>);

impl ConfigPath {
    pub(crate) fn push_key(&mut self, key: &str) {
        self.0.push(Step::Key(key.to_owned()));
    }

    pub(crate) fn push_index(&mut self, index: usize) {
        self.0.push(Step::Index(index));
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// The entry `key` of the object here.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.push_key(key);
        self
    }

    /// The entry of the list here, from 0.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.push_index(index);
        self
    }

    /// Whether the last step is the key `key`.
    pub(crate) fn ends_with_key(&self, key: &str) -> bool {
        matches!(self.0.last(), Some(Step::Key(last)) if last == key)
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether this is `other`, or something in it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The value here in a tree.
    pub fn find<'v>(&self, tree: &'v Value) -> Option<&'v Value> {
        find(tree, &self.0)
    }

    /// Whether this is the path of the whole file.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for ConfigPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(formatter, "[{index}]")?,
                Step::Key(key) if is_plain(key) => {
                    formatter.write_str(if position == 0 { "" } else { "." })?;
                    formatter.write_str(key)?;
                }
                Step::Key(key) => write!(formatter, "[{}]", quoted(key))?,
            }
        }
        Ok(())
    }
}

/// Why text is not the path of a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not a path of the config: write it as `agents.list[0].model`, and odd keys as `models.providers[\"my.host\"]`"
)]
pub struct NotAPath;

/// Reads the form that [`fmt::Display`] writes.
impl FromStr for ConfigPath {
    type Err = NotAPath;

    fn from_str(text: &str) -> Result<Self, NotAPath> {
        let mut path = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                // The quoted form is that of JSON; the number, or the string, ends where its parser says.
                let mut values = serde_json::Deserializer::from_str(inside).into_iter::<Step>();
                let Some(Ok(step)) = values.next() else { return Err(NotAPath) };
                rest = inside[values.byte_offset()..].strip_prefix(']').ok_or(NotAPath)?;
                path.0.push(step);
                continue;
            }
            let name = match rest.strip_prefix('.') {
                Some(name) if !path.is_root() => name,
                None if path.is_root() => rest,
                _ => return Err(NotAPath),
            };
            let end = name.find(['.', '[']).unwrap_or(name.len());
            if end == 0 {
                return Err(NotAPath);
            }
            path.push_key(&name[..end]);
            rest = &name[end..];
        }
        Ok(path)
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= MAX_SHOWN_KEY
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-'))
}

/// Formats a key for a message: a long key is cut, and control characters are escaped so that they cannot affect the
/// terminal.
fn quoted(key: &str) -> String {
    let shown: String = key.chars().take(MAX_SHOWN_KEY).collect();
    if shown.len() < key.len() { format!("{:?}…", shown) } else { format!("{shown:?}") }
}

#[cfg(test)]
mod tests;
