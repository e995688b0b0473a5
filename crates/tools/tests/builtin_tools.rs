//! What every request to a model holds: the schemas of the built-in tools.

use std::time::Duration;

use myclaw_tools::builtin_tools;
use serde_json::{Value, json};

/// The order in which models see them.
const ORDER: [&str; 8] = ["read", "bash", "edit", "write", "grep", "find", "ls", "apply_patch"];
/// All schemas together: they are sent with every request, so they stay short.
const MAX_BYTES: usize = 5 * 1024;

#[test]
fn tools_have_their_names_and_order() {
    let names: Vec<String> = builtin_tools(Duration::from_secs(60))
        .iter()
        .map(|tool| tool.schema().name.clone())
        .collect();
    assert_eq!(names, ORDER);
}

#[test]
fn schemas_are_strict_and_complete() {
    for tool in builtin_tools(Duration::from_secs(60)) {
        let schema = tool.schema();
        assert!(!schema.description.is_empty(), "{}", schema.name);
        assert_eq!(schema.parameters["type"], "object", "{}", schema.name);
        assert_eq!(schema.parameters["additionalProperties"], false, "{}", schema.name);
        let properties = schema.parameters["properties"].as_object().unwrap();
        assert!(
            properties.values().all(|property| property["type"].is_string()),
            "{}",
            schema.name
        );
        for name in schema.parameters["required"].as_array().unwrap_or(&Vec::new()) {
            assert!(properties.contains_key(name.as_str().unwrap()), "{}: {name}", schema.name);
        }
    }
}

#[test]
fn schemas_are_short() {
    let schemas: Vec<Value> = builtin_tools(Duration::from_secs(60))
        .iter()
        .map(|tool| {
            let schema = tool.schema();
            json!({"name": schema.name, "description": schema.description, "input_schema": schema.parameters})
        })
        .collect();
    let bytes = serde_json::to_string(&schemas).unwrap().len();
    println!("the schemas take {bytes} bytes");
    assert!(bytes <= MAX_BYTES, "the schemas take {bytes} bytes");
}
