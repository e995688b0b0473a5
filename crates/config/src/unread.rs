//! Keys that the schema has but the program does not read yet.
//!
//! They are accepted so that a config file shared with a later version loads, and they are reported so that the user
//! does not expect an effect.

use serde_json::Value;

use crate::ConfigPath;

/// Matches every entry of a list.
const EACH: &str = "[]";

/// These keys. Remove a key here once it is read.
const UNREAD: [&[&str]; 1] = [&["agents", "list", EACH, "name"]];

/// The unread keys that a config contains.
pub(crate) fn unread_keys(tree: &Value) -> Vec<ConfigPath> {
    let mut found = Vec::new();
    for keys in UNREAD {
        collect(tree, keys, &ConfigPath::default(), &mut found);
    }
    found
}

fn collect(value: &Value, keys: &[&str], at: &ConfigPath, found: &mut Vec<ConfigPath>) {
    match keys {
        [] => found.push(at.clone()),
        [EACH, rest @ ..] => {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                collect(item, rest, &at.clone().index(index), found);
            }
        }
        [key, rest @ ..] => {
            if let Some(entry) = value.get(*key) {
                collect(entry, rest, &at.clone().key(key), found);
            }
        }
    }
}
