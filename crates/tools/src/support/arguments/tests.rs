use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
struct Sample {
    path: String,
    #[serde(default, deserialize_with = "lenient_u64")]
    limit: Option<u64>,
    #[serde(default, deserialize_with = "lenient_bool")]
    literal: bool,
}

fn parse(value: Value) -> Result<Sample, ToolError> {
    match value {
        Value::Object(arguments) => parse_arguments(ToolAliases::default(), arguments),
        other => panic!("not an object: {other}"),
    }
}

#[test]
fn numbers_and_flags_may_be_text() {
    let expected = Sample { path: "a".into(), limit: Some(3), literal: true };
    for limit in [json!(3), json!(3.0), json!("3"), json!(" 3 ")] {
        for literal in [json!(true), json!("true"), json!("True")] {
            assert_eq!(
                parse(json!({"path": "a", "limit": limit, "literal": literal})).as_ref(),
                Ok(&expected)
            );
        }
    }
}

#[test]
fn null_counts_as_not_given() {
    let expected = Sample { path: "a".into(), limit: None, literal: false };
    assert_eq!(parse(json!({"path": "a", "limit": null, "literal": null})), Ok(expected));
}

#[test]
fn errors_name_the_argument_or_value() {
    for (arguments, needle) in [
        (json!({}), "missing field `path`"),
        (json!({"path": null}), "missing field `path`"),
        (json!({"path": "a", "limit": -1}), "expected a whole number, got -1"),
        (json!({"path": "a", "limit": 1.5}), "expected a whole number, got 1.5"),
        (json!({"path": "a", "limit": "many"}), "expected a whole number, got \"many\""),
        (json!({"path": "a", "literal": 1}), "expected true or false, got 1"),
    ] {
        let error = parse(arguments).unwrap_err().to_string();
        assert!(error.contains(needle), "{error}");
    }
}
