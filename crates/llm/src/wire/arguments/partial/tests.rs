use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn what_has_come_is_shown() {
    for (text, expected) in [
        ("", json!({})),
        ("{", json!({})),
        (r#"{"pa"#, json!({})),
        (r#"{"path"#, json!({})),
        (r#"{"path":"#, json!({})),
        (r#"{"path":"src/ma"#, json!({"path": "src/ma"})),
        (r#"{"path":"a\"#, json!({"path": "a"})),
        (r#"{"path":"a\\"#, json!({"path": "a\\"})),
        (r#"{"path":"a\u00"#, json!({"path": "a"})),
        (r#"{"path":"a\ud83d"#, json!({"path": "a"})),
        (r#"{"path":"a\ud83d\ude0"#, json!({"path": "a"})),
        (r#"{"path":"a\ud83d\ude00"#, json!({"path": "a😀"})),
        (r#"{"path":"a","li"#, json!({"path": "a"})),
        (r#"{"path":"a","limit":1"#, json!({"path": "a"})),
        (r#"{"path":"a","limit":12,"#, json!({"path": "a", "limit": 12})),
        (r#"{"path":"a","all":tru"#, json!({"path": "a"})),
        (
            r#"{"edits":[{"old":"x","new":"y"},{"old":"z"#,
            json!({"edits": [{"old": "x", "new": "y"}, {"old": "z"}]}),
        ),
        (r#"{"a":[1,2"#, json!({"a": [1]})),
        (r#"{"a":{}}"#, json!({"a": {}})),
        // What models and gateways write that is no JSON.
        ("{}{\"path\":\"a\nb", json!({"path": "a\nb"})),
        ("[1,2", json!({})),
        ("no JSON", json!({})),
        ("\"{", json!({})),
    ] {
        assert_eq!(Value::Object(partial_arguments(text)), expected, "{text}");
    }
}

#[test]
fn many_brackets_are_no_danger() {
    assert_eq!(partial_arguments(&"{\"a\":".repeat(100_000)), Map::new());
    assert_eq!(partial_arguments(&"[".repeat(1_000_000)), Map::new());
}

proptest! {
    /// Every prefix of a whole object gives only what the object holds: no other key, and no value but the beginning of
    /// a string.
    #[test]
    fn a_prefix_says_nothing_that_the_whole_does_not(
        members in prop::collection::btree_map("[a-z\"\\\\é😀]{0,4}", "\\PC{0,12}", 0..4),
        cut in 0.0..1.0_f64,
    ) {
        let whole = serde_json::to_string(&members).unwrap();
        let mut end = (whole.len() as f64 * cut) as usize;
        while !whole.is_char_boundary(end) {
            end -= 1;
        }
        for (name, value) in partial_arguments(&whole[..end]) {
            let expected = members.get(&name).expect("a member of the whole");
            prop_assert!(expected.starts_with(value.as_str().unwrap()));
        }
        let all = partial_arguments(&whole);
        prop_assert_eq!(all.len(), members.len());
    }
}
