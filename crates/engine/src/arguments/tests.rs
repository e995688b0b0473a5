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
    fit_arguments(&schema(), &ToolAliases::default(), arguments).map(Value::Object)
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
fn unknown_names_are_refused_with_the_known_ones() {
    let known = "`path`, `startLine`, `limit`, `all`, `mode`, `names`, `nested`";
    assert_eq!(
        fit_json(json!({"path": "x", "command": "ls", "file": "y"})).unwrap_err(),
        [format!("`command`, `file`: not known here; there are {known}")]
    );
    assert_eq!(
        fit_json(json!({"path": "x", "nested": {"n": 1, "m": 2}})).unwrap_err(),
        ["`nested.m`: not known here; there are `n`"]
    );
}

#[test]
fn an_object_has_other_fields_only_where_the_schema_permits_them() {
    let fit = |schema: Value, fields: Value| {
        let Value::Object(fields) = fields else { panic!("an object") };
        fit_arguments(&schema, &ToolAliases::default(), fields).map(Value::Object)
    };
    let fields = json!({"A": "1", "B": 2});
    for open in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}, "additionalProperties": true}),
        json!({"type": "object", "properties": {"A": {"type": "string"}}, "additionalProperties": {}}),
    ] {
        assert_eq!(fit(open, fields.clone()), Ok(fields.clone()));
    }
    let texts = json!({"additionalProperties": {"type": "string"}});
    assert_eq!(fit(texts, fields.clone()), Ok(json!({"A": "1", "B": "2"})));
    let none = json!({"type": "object", "properties": {}});
    assert_eq!(fit(none, fields).unwrap_err(), ["`A`, `B`: there are no arguments here"]);
}

const ALIASES: ToolAliases = ToolAliases {
    names: &[],
    arguments: &[
        ("file", "path"),
        ("from", "startLine"),
        ("first", "startLine"),
        ("nested.number", "n"),
    ],
    unlisted: &[("count", "integer")],
};

#[test]
fn other_names_are_converted_and_must_not_contradict() {
    let fit = |fields: Value| {
        let Value::Object(fields) = fields else { panic!("an object") };
        fit_arguments(&schema(), &ALIASES, fields).map(Value::Object)
    };
    assert_eq!(
        fit(json!({"file": "x", "first": "2", "nested": {"number": 3}, "count": "4"})),
        Ok(json!({"path": "x", "startLine": 2, "nested": {"n": 3}, "count": 4}))
    );
    assert_eq!(
        fit(json!({"file": "x", "path": "x", "from": null, "startLine": 2})),
        Ok(json!({"path": "x", "startLine": 2}))
    );
    assert_eq!(
        fit(json!({"file": "x", "path": "y", "nested": {"number": 3, "n": 4}})).unwrap_err(),
        [
            "`file` and `path` are the same argument and have different values; give one of them",
            "`nested.number` and `nested.n` are the same argument and have different values; give one of them",
        ]
    );
    assert_eq!(
        fit(json!({"path": "x", "from": 1, "first": 2})).unwrap_err(),
        [
            "`first` and `startLine` are the same argument and have different values; give one of them"
        ]
    );
    let unknown = fit(json!({"path": "x", "number": 3})).unwrap_err();
    assert!(unknown[0].starts_with("`number`: not known here"), "{unknown:?}");
}

#[test]
fn long_values_are_quoted_in_part() {
    let problem = fit_json(json!({"path": "x", "all": "ä".repeat(500)})).unwrap_err().remove(0);
    assert!(problem.chars().count() < 120, "{problem}");
}
