use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "startLine": {"type": "integer", "minimum": 1},
            "limit": {"type": "number", "maximum": 10},
            "all": {"type": "boolean"},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "names": {"type": "array", "items": {"type": "string"}},
            "nested": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        },
        "required": ["path"],
    })
}

fn fit_json(arguments: Value) -> Result<Value, Vec<String>> {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    fit_arguments(&schema(), arguments).map(Value::Object)
}

#[test]
fn fitting_arguments_pass_unchanged() {
    let arguments = json!({"path": "x", "startLine": 3, "limit": 1.5, "all": true, "mode": "a", "names": ["n"], "nested": {"n": 1}});
    assert_eq!(fit_json(arguments.clone()), Ok(arguments));
}

#[test]
fn harmless_mistakes_are_corrected() {
    let careless = json!({"path": 7, "startLine": "3", "limit": "1.5", "all": "True", "names": "n", "mode": null, "nested": {"n": 2.0}});
    let fitted = json!({"path": "7", "startLine": 3, "limit": 1.5, "all": true, "names": ["n"], "nested": {"n": 2}});
    assert_eq!(fit_json(careless), Ok(fitted));
}

#[test]
fn each_problem_names_its_argument() {
    let wrong = json!({"startLine": 0, "limit": 11, "all": "perhaps", "mode": "c", "names": [{"x": 1}], "nested": {}});
    assert_eq!(
        fit_json(wrong).unwrap_err(),
        [
            "`startLine` must be at least 1, not 0",
            "`limit` must be at most 10, not 11",
            "`all` must be a boolean, not \"perhaps\"",
            "`mode` must be one of \"a\", \"b\", not \"c\"",
            "`names[0]` must be a string, not {\"x\":1}",
            "`nested.n` is missing",
            "`path` is missing",
        ]
    );
}

#[test]
fn a_fraction_is_not_an_integer() {
    assert_eq!(
        fit_json(json!({"path": "x", "startLine": 1.5})).unwrap_err(),
        ["`startLine` must be an integer, not 1.5"]
    );
}

#[test]
fn unknown_names_are_left_to_the_tool() {
    let arguments = json!({"file_path": "x"});
    assert_eq!(fit_json(arguments.clone()), Ok(arguments));
}

#[test]
fn long_values_are_quoted_in_part() {
    let problem = fit_json(json!({"path": "x", "all": "ä".repeat(500)})).unwrap_err().remove(0);
    assert!(problem.chars().count() < 120, "{problem}");
}
