use proptest::prelude::*;
use serde_json::json;

use super::*;

fn path(text: &str) -> ConfigPath {
    text.parse().unwrap()
}

fn set(at: &str, value: Value) -> ConfigChange {
    ConfigChange::Set { path: path(at), value }
}

fn unset(at: &str) -> ConfigChange {
    ConfigChange::Unset { path: path(at) }
}

fn append(at: &str, value: Value) -> ConfigChange {
    ConfigChange::Append { path: path(at), value }
}

const TEXT: &str = r#"// The head.
{
  // Who answers.
  provider: {
    name: 'anthropic', // said so
    authProfiles: [
      { id: "primary", apiKey: "${KEY}" },
      // { id: "backup" },
    ],
  },

  logging: { level: "info" } /* the end */
}
"#;

#[test]
fn a_change_keeps_everything_else() {
    let changes = [
        set("provider.name", json!("openai")),
        append("provider.authProfiles", json!({"id": "second", "apiKey": "a\"b\\c\n"})),
        set("gateway.port", json!(18_790)),
        set("models.providers[\"my.host\"].baseUrl", json!("https://example.com")),
        set("logging.level", json!("debug")),
    ];
    let expected = r#"// The head.
{
  // Who answers.
  provider: {
    name: "openai", // said so
    authProfiles: [
      { id: "primary", apiKey: "${KEY}" },
      {
        id: "second",
        apiKey: "a\"b\\c\n",
      },
      // { id: "backup" },
    ],
  },

  logging: { level: "debug" }, /* the end */
  gateway: {
    port: 18790
  },
  models: {
    providers: {
      "my.host": {
        baseUrl: "https://example.com"
      }
    }
  }
}
"#;
    let edited = edit_config(TEXT, &changes).unwrap();
    assert_eq!(edited, expected);
    // The values of what was not changed are as they were, and a file of JSON stays one.
    assert_eq!(
        edit_config(r#"{"a": 1}"#, &[set("b", json!([1]))]).unwrap(),
        "{\n  \"a\": 1,\n  \"b\": [1]\n}"
    );
}

#[test]
fn what_is_removed_leaves_the_comments_around_it() {
    let changes = [unset("provider.authProfiles[0]"), unset("logging"), unset("never.there")];
    let edited = edit_config(TEXT, &changes).unwrap();
    for kept in ["// The head.", "// Who answers.", "// said so", "// { id: \"backup\" },"] {
        assert!(edited.contains(kept), "{kept} in {edited}");
    }
    let left = json!({"provider": {"name": "anthropic", "authProfiles": []}});
    assert_eq!(tree::parse(&edited), Ok(left));
}

#[test]
fn a_change_that_says_the_same_leaves_the_text() {
    assert_eq!(edit_config(TEXT, &[set("provider.name", json!("anthropic"))]).unwrap(), TEXT);
    assert_eq!(edit_config(TEXT, &[]).unwrap(), TEXT);
}

#[test]
fn a_change_that_does_not_fit_says_where() {
    let problem = |text: &str, change| edit_config(text, &[change]).unwrap_err().problem;
    assert_eq!(problem(TEXT, set("provider.name.x", json!(1))), EditProblem::NoSuchPlace);
    assert_eq!(problem(TEXT, set("provider.authProfiles[5]", json!(1))), EditProblem::NoSuchPlace);
    assert_eq!(problem(TEXT, set("provider[0]", json!(1))), EditProblem::NoSuchPlace);
    assert_eq!(problem(TEXT, append("provider", json!(1))), EditProblem::NotAList);
    assert_eq!(problem(TEXT, set("", json!(1))), EditProblem::NotAValue);
    assert_eq!(problem(TEXT, unset("")), EditProblem::NotAValue);
    assert_eq!(problem("{a: ", set("a", json!(1))), EditProblem::Unreadable);
    assert_eq!(problem("", set("a", json!(1))), EditProblem::Unreadable);
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(problem(TEXT, set("x", deep)), EditProblem::NotAValue);
}

/// A value, and spacing and comments in every place that allows them.
fn written(value: Value) -> BoxedStrategy<String> {
    let space =
        || prop_oneof![Just(""), Just(" "), Just("\n  "), Just(" /* c */ "), Just(" // d\n")];
    match value {
        Value::Object(map) => {
            let parts: Vec<_> = map
                .into_iter()
                .map(|(key, value)| (space(), Just(key), space(), written(value), space()).boxed())
                .collect();
            (parts, space(), any::<bool>())
                .prop_map(|(parts, end, is_trailing)| {
                    let parts: Vec<String> = parts
                        .into_iter()
                        .map(|(a, key, b, value, c)| format!("{a}{key}:{b}{value}{c}"))
                        .collect();
                    let comma = if is_trailing && !parts.is_empty() { "," } else { "" };
                    format!("{{{}{comma}{end}}}", parts.join(","))
                })
                .boxed()
        }
        Value::Array(items) => {
            let parts: Vec<_> =
                items.into_iter().map(|value| (space(), written(value), space()).boxed()).collect();
            (parts, space())
                .prop_map(|(parts, end)| {
                    let parts: Vec<String> =
                        parts.into_iter().map(|(a, value, b)| format!("{a}{value}{b}")).collect();
                    format!("[{}{end}]", parts.join(","))
                })
                .boxed()
        }
        scalar => Just(scalar.to_string()).boxed(),
    }
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    scalar.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abc]", value(), 0..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn change() -> impl Strategy<Value = ConfigChange> {
    let step = prop_oneof![
        3 => "[abcd]".prop_map(Step::Key),
        1 => (0..3_usize).prop_map(Step::Index),
    ];
    let steps = prop::collection::vec(step, 1..4).prop_map(|steps| {
        steps.into_iter().fold(ConfigPath::default(), |path, step| match step {
            Step::Key(key) => path.key(&key),
            Step::Index(index) => path.index(index),
        })
    });
    (steps, value(), 0..3).prop_map(|(path, value, kind)| match kind {
        0 => ConfigChange::Set { path, value },
        1 => ConfigChange::Append { path, value },
        _ => ConfigChange::Unset { path },
    })
}

fn comments(text: &str) -> usize {
    text.matches("/* c */").count() + text.matches("// d\n").count()
}

proptest! {
    /// Whatever the file looks like: a change that fits is made, and no change but `unset` and the replacement of
    /// objects and lists loses a comment.
    #[test]
    fn every_change_that_fits_is_made(
        (before, text) in object().prop_flat_map(|value| (Just(value.clone()), written(value))),
        change in change(),
    ) {
        match edit_config(&text, std::slice::from_ref(&change)) {
            Ok(edited) => {
                let old = find(&before, change.path().steps());
                let is_scalar = old.is_none_or(|old| !old.is_object() && !old.is_array());
                if is_scalar && !matches!(change, ConfigChange::Unset { .. }) {
                    prop_assert_eq!(comments(&edited), comments(&text));
                }
            }
            Err(error) => prop_assert_ne!(error.problem, EditProblem::NotAlone, "{}", text),
        }
    }
}
