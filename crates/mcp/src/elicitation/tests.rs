use super::*;

fn form(properties: &Value, required: &Value) -> Option<Value> {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let read = Elicitation::read(&json!({"message": "m", "requestedSchema": schema}))?;
    match read.yes {
        Yes::Sends(values) => Some(Value::Object(values)),
        Yes::Opens(_) => None,
    }
}

#[test]
fn a_yes_sends_what_the_form_says_or_means() {
    for (properties, required, sent) in [
        (json!({}), json!([]), Some(json!({}))),
        (json!({"sure": {"type": "boolean"}}), json!(["sure"]), Some(json!({"sure": true}))),
        (
            json!({"sure": {"type": "boolean", "default": false}}),
            json!([]),
            Some(json!({"sure": false})),
        ),
        (json!({"n": {"type": "number", "default": 3}}), json!(["n"]), Some(json!({"n": 3}))),
        (json!({"c": {"type": "string", "enum": ["a"]}}), json!(["c"]), Some(json!({"c": "a"}))),
        (
            json!({"c": {"oneOf": [{"const": "a", "title": "A"}]}}),
            json!(["c"]),
            Some(json!({"c": "a"})),
        ),
        // What is not needed is left out.
        (
            json!({"sure": {"type": "boolean"}, "why": {"type": "string"}}),
            json!(["sure"]),
            Some(json!({"sure": true})),
        ),
        // These want an answer in words, or a choice.
        (json!({"why": {"type": "string"}}), json!(["why"]), None),
        (json!({"why": {"type": "string"}}), json!([]), None),
        (json!({"c": {"type": "string", "enum": ["a", "b"]}}), json!(["c"]), None),
        (json!({"sure": {"type": "boolean"}, "n": {"type": "integer"}}), json!(["n"]), None),
        (json!({"x": {"type": "string", "default": "x".repeat(3_000)}}), json!([]), None),
    ] {
        assert_eq!(form(&properties, &required), sent, "{properties}");
    }
}

#[test]
fn only_pages_are_opened() {
    for (url, is_page) in [
        ("https://example.com/pay?x=1", true),
        ("http://127.0.0.1:8080/", true),
        ("file:///etc/passwd", false),
        ("javascript:alert(1)", false),
        ("example.com", false),
    ] {
        let read = Elicitation::read(
            &json!({"mode": "url", "message": "m", "url": url, "elicitationId": "1"}),
        );
        assert_eq!(read.is_some(), is_page, "{url}");
    }
    assert_eq!(Elicitation::read(&json!({"message": "m"})), None);
}
