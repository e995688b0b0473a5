//! `${NAME}` in string values.
//!
//! A name begins with an upper-case letter or `_`, followed by those and digits. `$${NAME}` is the text `${NAME}`.
//! Everything else, such as a lower-case name, an open brace or a lone `$`, is unchanged. Replaced text is not searched
//! again, so a value may contain anything. A key's command (`apiKey: "!…"`) is not replaced: there `${NAME}` belongs to
//! the shell.

use serde_json::Value;

use crate::key_source::{as_literal, is_command};
use crate::{ConfigPath, SubstitutionLookup};

/// The config key whose value may name the place of an API key.
const KEY_SETTING: &str = "apiKey";

/// One piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// `$${NAME}`, without the first `$`.
    Escaped(&'a str),
    /// The name in `${NAME}`.
    Reference(&'a str),
}

/// A reference to a variable that is unset or empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingVariable {
    pub(crate) name: String,
    pub(crate) path: ConfigPath,
}

/// Whether `text` refers to a variable, other than in the escaped form.
pub fn has_env_reference(text: &str) -> bool {
    pieces(text).any(|piece| matches!(piece, Piece::Reference(_)))
}

/// Whether `text` is one reference and nothing else.
pub(crate) fn is_one_reference(text: &str) -> bool {
    matches!(next_piece(text), (Piece::Reference(_), length) if length == text.len())
}

/// Replaces the references in every string value of a tree; keys are unchanged. Returns the references to unset or
/// empty variables, at most `limit` of them.
pub(crate) fn substitute_tree(
    tree: &mut Value,
    limit: usize,
    lookup: &SubstitutionLookup<'_>,
) -> Vec<MissingVariable> {
    let mut walk = Walk { path: ConfigPath::default(), missing: Vec::new(), limit, lookup };
    walk.value(tree);
    walk.missing
}

struct Walk<'l> {
    path: ConfigPath,
    missing: Vec<MissingVariable>,
    limit: usize,
    lookup: &'l SubstitutionLookup<'l>,
}

impl Walk<'_> {
    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains("${") => {
                let is_key = self.path.ends_with_key(KEY_SETTING);
                if is_key && is_command(text) {
                    return;
                }
                match substitute(text, |name| self.lookup.get(name)) {
                    Ok(replaced) if is_key => *text = as_literal(text, replaced),
                    Ok(replaced) => *text = replaced,
                    Err(name) if self.missing.len() < self.limit => {
                        let missing =
                            MissingVariable { name: name.to_owned(), path: self.path.clone() };
                        self.missing.push(missing);
                    }
                    Err(_) => {}
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push_index(index);
                    self.value(item);
                    self.path.pop();
                }
            }
            Value::Object(entries) => {
                for (key, entry) in entries {
                    self.path.push_key(key);
                    self.value(entry);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }
}

/// Replaces the references in one text.
///
/// # Errors
/// The name of the first variable that is unset or empty.
pub(crate) fn substitute<'t, 'v>(
    text: &'t str,
    lookup: impl Fn(&str) -> Option<&'v str>,
) -> Result<String, &'t str> {
    let mut replaced = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) | Piece::Escaped(text) => replaced.push_str(text),
            Piece::Reference(name) => match lookup(name) {
                Some(value) if !value.is_empty() => replaced.push_str(value),
                _ => return Err(name),
            },
        }
    }
    Ok(replaced)
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, length) = next_piece(rest);
        rest = &rest[length..];
        Some(piece)
    })
}

/// The first piece of a text that is not empty, and its length in bytes.
fn next_piece(text: &str) -> (Piece<'_>, usize) {
    if let Some(name) = text.strip_prefix("$${").and_then(name_before_brace) {
        let length = "$${}".len() + name.len();
        return (Piece::Escaped(&text[1..length]), length);
    }
    if let Some(name) = text.strip_prefix("${").and_then(name_before_brace) {
        return (Piece::Reference(name), "${}".len() + name.len());
    }
    let first = text.chars().next().map_or(0, char::len_utf8);
    let length = text[first..].find('$').map_or(text.len(), |at| first + at);
    (Piece::Text(&text[..length]), length)
}

fn name_before_brace(text: &str) -> Option<&str> {
    let name = &text[..text.find('}')?];
    let first = name.bytes().next()?;
    let starts_well = first.is_ascii_uppercase() || first == b'_';
    let goes_on_well =
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    (starts_well && goes_on_well).then_some(name)
}

#[cfg(test)]
mod tests;
