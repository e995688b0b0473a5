//! Keys that the schema has but that nothing in the program reads yet.
//!
//! They are accepted so that a config file which is shared with a later version loads, and they are reported so that
//! nobody waits for their effect.

use serde_json::Value;

use crate::ConfigPath;

/// Stands for every entry of a list.
const EACH: &str = "[]";

/// Such keys. One that gets a reader is taken out here.
const UNREAD: [&[&str]; 4] = [
    &["agents", "list", EACH, "name"],
    &["channels", "telegram", "allowedChatIds"],
    &["channels", "telegram", "botToken"],
    &["gateway"],
];

/// Those that a config holds.
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
