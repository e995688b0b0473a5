//! The schema that editors use.

use myclaw_config::json_schema;
use serde_json::Value;

/// Calls `visit` with every part of a schema and its place.
fn walk(schema: &Value, at: &str, visit: &mut dyn FnMut(&str, &Value)) {
    visit(at, schema);
    match schema {
        Value::Object(entries) => {
            entries.iter().for_each(|(key, part)| walk(part, &format!("{at}/{key}"), visit))
        }
        Value::Array(items) => items.iter().for_each(|part| walk(part, at, visit)),
        _ => {}
    }
}

#[test]
fn every_key_is_described_and_every_object_strict() {
    let mut keys = 0;
    walk(&json_schema(), "", &mut |at, schema| {
        let Some(properties) =
            schema["properties"].as_object().filter(|_| schema["type"] == "object")
        else {
            return;
        };
        assert_eq!(schema["additionalProperties"], Value::Bool(false), "{at}");
        for (key, property) in properties {
            keys += 1;
            assert!(property["description"].is_string(), "{at}/{key} has no description");
        }
    });
    assert!(keys > 50, "{keys}");
}

#[test]
fn secrets_are_plain_strings_marked_as_such() {
    let mut secrets = Vec::new();
    walk(&json_schema(), "", &mut |at, schema| {
        if schema["writeOnly"] == true {
            assert_eq!(schema["type"], "string", "{at}");
            secrets.push(at.rsplit('/').next().unwrap_or_default().to_owned());
        }
    });
    secrets.sort();
    assert_eq!(
        secrets,
        [
            "accessToken",
            "accessToken",
            "accessToken",
            "additionalProperties",
            "additionalProperties",
            "apiKey",
            "apiKey",
            "apiKey",
            "apiKey",
            "apiKey",
            "appSecret",
            "appToken",
            "blobs",
            "botToken",
            "botToken",
            "botToken",
            "botToken",
            "clientSecret",
            "password",
            "password",
            "password",
            "secret",
            "serverPassword",
            "store",
            "token",
            "verifyToken",
        ]
    );
}

#[test]
fn nothing_of_the_language_it_is_written_in_shows() {
    let schema = json_schema();
    assert_eq!(schema["title"], "MyClaw config");
    assert!(schema["properties"].get("paths").is_none());
    let text = schema.to_string();
    for word in ["uint", "int64", "\"null\"", "NonBlankText", "SecretText"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    assert_eq!(schema["properties"]["gateway"]["default"]["port"], 18_789);
}
