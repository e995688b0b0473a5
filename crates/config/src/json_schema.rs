//! The JSON Schema of the config file, for editors and for this crate's own diagnostics.

use serde_json::{Map, Value};

use crate::Config;

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
