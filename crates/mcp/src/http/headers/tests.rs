use serde_json::json;

use super::*;

#[test]
fn arguments_become_headers_as_their_schema_says() {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "plain": {"type": "string"},
        "deep": {"type": "object", "properties": {"number": {"type": "integer", "x-mcp-header": "Count"}}},
        "sure": {"type": "boolean", "x-mcp-header": "Sure"},
        "left": {"type": "string", "x-mcp-header": "Left"},
    }});
    let given = |region: &str| {
        let arguments = json!({"region": region, "plain": "x", "deep": {"number": 42.0}, "sure": true, "left": null});
        parameter_values(&schema, arguments.as_object().unwrap())
    };
    let pair = |name: &str, value: &str| (format!("Mcp-Param-{name}"), value.to_owned());
    let rest = [pair("Count", "42"), pair("Sure", "true")];
    for (region, header) in [
        ("us-west1", "us-west1"),
        ("", ""),
        ("a b", "a b"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ] {
        let expected = [vec![pair("Region", header)], rest.to_vec()].concat();
        assert_eq!(given(region), expected, "{region}");
    }
}

#[test]
fn a_schema_that_wants_an_impossible_header_is_refused() {
    for (schema, words) in [
        (json!({"a": {"type": "string", "x-mcp-header": ""}}), "cannot be the name"),
        (json!({"a": {"type": "string", "x-mcp-header": "a\r\nb"}}), "cannot be the name"),
        (json!({"a": {"type": "string", "x-mcp-header": 7}}), "cannot be the name"),
        (json!({"a": {"type": "number", "x-mcp-header": "A"}}), "an integer or a boolean"),
        (
            json!({"a": {"type": "object", "properties": {"b": {"type": "array", "x-mcp-header": "A"}}}}),
            "an integer or a boolean",
        ),
        (
            json!({"a": {"type": "string", "x-mcp-header": "Ab"}, "b": {"type": "string", "x-mcp-header": "aB"}}),
            "two of its arguments",
        ),
    ] {
        let problem = parameter_headers(&json!({"properties": schema})).unwrap_err();
        assert!(problem.contains(words), "{schema}: {problem}");
    }
}
