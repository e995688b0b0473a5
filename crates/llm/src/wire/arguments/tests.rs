use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parsed(raw: &str) -> Option<Value> {
    parse(raw).map(Value::Object)
}

#[test]
fn reads_a_whole_object() {
    assert_eq!(
        parsed(r#"{"path":"a","n":[1,{"x":null}]}"#),
        Some(json!({"path": "a", "n": [1, {"x": null}]}))
    );
    assert_eq!(parsed(" \n{}\t"), Some(json!({})));
}

#[test]
fn nothing_means_no_arguments() {
    for raw in ["", "  ", "null", "\"\"", "\"{}\""] {
        assert_eq!(parsed(raw), Some(json!({})), "{raw:?}");
    }
}

#[test]
fn reads_what_is_harmlessly_wrong() {
    let meant = json!({"path": "a.txt"});
    for raw in [
        r#""{\"path\":\"a.txt\"}""#,
        "```json\n{\"path\":\"a.txt\"}\n```",
        "```{\"path\":\"a.txt\"}```",
        r#"{"path":"a.txt",}"#,
        "{\"path\":\"a.txt\" ,\n }",
        "{'path': 'a.txt'}",
        r#"{}{"path":"a.txt"}"#,
    ] {
        assert_eq!(parsed(raw), Some(meant.clone()), "{raw:?}");
    }
    assert_eq!(parsed("{\"text\":\"a\n\tb\"}"), Some(json!({"text": "a\n\tb"})));
    assert_eq!(parsed(r#"{"pattern":"\d+\.rs"}"#), Some(json!({"pattern": "\\d+\\.rs"})));
    assert_eq!(
        parsed(r#"{"a": True, "b": None, "c": [False,], "d": "None, ]"}"#).unwrap()["d"],
        "None, ]"
    );
    assert_eq!(parsed("{'say': 'he said \"hi\"'}"), Some(json!({"say": "he said \"hi\""})));
}

#[test]
fn refuses_what_is_no_object() {
    for raw in [
        "[1]",
        "3",
        "true",
        "\"text\"",
        "ls -la",
        "{path: }",
        "{\"a\":1}}",
        "\"\\\"\\\\\\\"x\\\\\\\"\\\"\"",
    ] {
        assert_eq!(parsed(raw), None, "{raw:?}");
    }
}

#[test]
fn deep_nesting_is_refused_not_followed() {
    assert_eq!(parsed(&"[".repeat(200_000)), None);
    assert_eq!(parsed(&format!("{}{}", "{\"a\":".repeat(100_000), "}".repeat(100_000))), None);
}

#[test]
fn never_completes_a_cut_object() {
    let whole = r#"{"path":"notes/a.txt","content":"line one\nline \"two\"","options":{"mode":["x",true,null,1.5]}}"#;
    for cut in 1..whole.len() {
        assert_eq!(parsed(&whole[..cut]), None, "{}", &whole[..cut]);
    }
}

proptest! {
    #[test]
    fn never_panics_and_keeps_whole_objects(text in "\\PC{0,40}", raw in "[\\[\\]{}\"',:\\\\ntTFN`\n é1]{0,24}") {
        let object = json!({ "text": text });
        prop_assert_eq!(parsed(&object.to_string()), Some(object));
        let _ = parse(&raw);
    }
}
