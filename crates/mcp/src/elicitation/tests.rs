use super::*;

fn read(properties: &Value, required: &Value) -> Option<Wants> {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let read = Elicitation::read(&json!({"message": "m", "requestedSchema": schema}))?;
    Some(read.wants)
}

#[test]
fn a_yes_sends_a_form_that_has_nothing_to_choose() {
    for (properties, required, sent) in [
        (json!({}), json!([]), Some(json!({}))),
        (json!({"sure": {"type": "boolean"}}), json!(["sure"]), Some(json!({"sure": true}))),
        (
            json!({"sure": {"type": "boolean", "default": false}}),
            json!([]),
            Some(json!({"sure": false})),
        ),
        (json!({"c": {"type": "string", "enum": ["a"]}}), json!(["c"]), Some(json!({"c": "a"}))),
        (
            json!({"c": {"oneOf": [{"const": "a", "title": "A"}]}}),
            json!(["c"]),
            Some(json!({"c": "a"})),
        ),
        (
            json!({"sure": {"type": "boolean"}, "note": {"type": "string", "default": "none"}}),
            json!(["sure"]),
            Some(json!({"sure": true, "note": "none"})),
        ),
        // These are asked for.
        (json!({"n": {"type": "number", "default": 3}}), json!(["n"]), None),
        (json!({"sure": {"type": "boolean"}, "why": {"type": "string"}}), json!(["sure"]), None),
        (json!({"why": {"type": "string"}}), json!([]), None),
        (json!({"c": {"type": "string", "enum": ["a", "b"]}}), json!(["c"]), None),
        (json!({"x": {"type": "string", "default": "x".repeat(3_000)}}), json!([]), None),
    ] {
        let found = match read(&properties, &required) {
            Some(Wants::Yes(values)) => Some(Value::Object(values)),
            Some(Wants::Fields(fields)) => {
                assert_eq!(fields.len(), properties.as_object().unwrap().len());
                None
            }
            other => panic!("{properties}: {other:?}"),
        };
        assert_eq!(found, sent, "{properties}");
    }
}

#[test]
fn a_form_with_a_field_that_nobody_can_fill_in_is_none() {
    assert_eq!(read(&json!({"x": {"type": "object"}}), &json!(["x"])), None);
    assert_eq!(read(&json!({"x": {"type": "object"}}), &json!([])), Some(Wants::Yes(Map::new())));
    let many: Map<String, Value> =
        (0..=MAX_FIELDS).map(|number| (format!("f{number}"), json!({"type": "string"}))).collect();
    assert_eq!(read(&Value::Object(many), &json!([])), None);
    assert_eq!(Elicitation::read(&json!({"message": "m"})), None);
}

/// The value that words mean for a field, or `None` where they do not fit.
fn value(schema: &Value, is_required: bool, words: &str) -> Option<Option<Value>> {
    Field::read("f", schema, is_required).expect("a field").value(words).ok()
}

#[test]
fn words_are_checked_by_the_schema_of_their_field() {
    let titled = json!({"type": "string", "oneOf": [{"const": "r", "title": "Red, dark"}, {"const": "g", "title": "Green"}]});
    let several =
        json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": ["a", "b", "c"]}});
    let named = json!({"type": "array", "items": {"anyOf": [{"const": "x", "title": "The X"}]}});
    let old = json!({"type": "string", "enum": ["1", "2"], "enumNames": ["One", "Two"]});
    let (text, number) =
        (json!({"type": "string", "minLength": 2, "maxLength": 3}), json!({"type": "number"}));
    let range = json!({"type": "integer", "minimum": 1, "maximum": 5});
    let format = |name: &str| json!({"type": "string", "format": name});
    for (schema, words, expected) in [
        (&text, " ab ", Some(json!("ab"))),
        (&text, "äöü", Some(json!("äöü"))),
        (&text, "a", None),
        (&text, "abcd", None),
        (&json!({"type": "string", "pattern": "^[a-z]+$"}), "abc", Some(json!("abc"))),
        (&json!({"type": "string", "pattern": "^[a-z]+$"}), "ABC", None),
        // Not a pattern of this kind: the server checks it.
        (&json!({"type": "string", "pattern": "(?<=a)b"}), "x", Some(json!("x"))),
        (&format("email"), "me@example.org", Some(json!("me@example.org"))),
        (&format("email"), "me at example.org", None),
        (&format("uri"), "https://example.org/x", Some(json!("https://example.org/x"))),
        (&format("uri"), "example", None),
        (&format("date"), "2026-02-28", Some(json!("2026-02-28"))),
        (&format("date"), "2026-02-30", None),
        (
            &format("date-time"),
            "2026-02-28T10:00:00+02:00",
            Some(json!("2026-02-28T10:00:00+02:00")),
        ),
        (&format("date-time"), "2026-02-28", None),
        (&range, "5", Some(json!(5))),
        (&range, "6", None),
        (&range, "0", None),
        (&range, "1.5", None),
        (&range, "five", None),
        (&number, "2.5", Some(json!(2.5))),
        (&number, "-3", Some(json!(-3))),
        (&number, "NaN", None),
        (&number, "inf", None),
        (&json!({"type": "boolean"}), "Yes", Some(json!(true))),
        (&json!({"type": "boolean"}), "no", Some(json!(false))),
        (&json!({"type": "boolean"}), "perhaps", None),
        (&titled, "red, dark", Some(json!("r"))),
        (&titled, "g", Some(json!("g"))),
        (&titled, "blue", None),
        (&old, "two", Some(json!("2"))),
        (&several, "a, C", Some(json!(["a", "c"]))),
        (&several, "a, a", Some(json!(["a"]))),
        (&several, "a, b, c", None),
        (&several, "a, d", None),
        (&named, "the x", Some(json!(["x"]))),
    ] {
        assert_eq!(value(schema, true, words), expected.map(Some), "{schema} {words}");
    }
}

#[test]
fn no_words_are_the_default_or_leave_the_field_out() {
    let with_default = json!({"type": "integer", "default": 3});
    assert_eq!(value(&with_default, true, ""), Some(Some(json!(3))));
    assert_eq!(value(&json!({"type": "integer"}), false, ""), Some(None));
    assert_eq!(value(&json!({"type": "integer"}), true, ""), None);
    let without =
        |schema: Value, is_required| Field::read("f", &schema, is_required).unwrap().without();
    assert_eq!(without(with_default, true).as_deref(), Some("the default: 3"));
    assert_eq!(without(json!({"type": "string"}), false).as_deref(), Some("no value"));
    assert_eq!(without(json!({"type": "string"}), true), None);
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
}
