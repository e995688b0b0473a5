//! The change of a call as it is shown before an approval.

use serde_json::{Value, json};

use crate::harness::Workspace;

fn shown(workspace: &Workspace, name: &str, arguments: &Value) -> Option<String> {
    let before = workspace.everything();
    let diff = workspace.preview(name, arguments);
    assert_eq!(workspace.everything(), before);
    diff
}

#[test]
fn it_is_the_diff_of_the_result_and_changes_nothing() {
    let patch = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n--- /dev/null\n+++ b/sub/new\n@@ -0,0 +1 @@\n+x\n";
    let calls = [
        ("write", json!({"path": "sub/b", "content": "new\n"})),
        ("write", json!({"path": "a", "content": "other\n"})),
        ("edit", json!({"path": "a", "oldText": "two", "newText": "2"})),
        ("apply_patch", json!({"patch": patch})),
    ];
    for (name, arguments) in calls {
        let workspace = Workspace::with(&[("a", "one\ntwo\n")]);
        let diff = shown(&workspace, name, &arguments).unwrap();
        let details = workspace.call(name, arguments).unwrap().details.unwrap();
        let made = match details.get("diffs") {
            Some(Value::Array(diffs)) => {
                diffs.iter().map(|entry| entry["diff"].as_str().unwrap()).collect()
            }
            _ => details["diff"].as_str().unwrap().to_owned(),
        };
        assert_eq!(diff, made, "{name}");
        assert!(diff.contains("+++ b/") && diff.contains("\n+"), "{diff}");
    }
}

#[test]
fn a_call_that_would_fail_and_other_tools_have_none() {
    let workspace = Workspace::with(&[("a", "one\n")]);
    for (name, arguments) in [
        ("edit", json!({"path": "a", "oldText": "absent", "newText": "x"})),
        ("write", json!({"path": "a/b", "content": "x"})),
        ("apply_patch", json!({"patch": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-absent\n+x\n"})),
        ("write", json!({"content": "no path"})),
        ("read", json!({"path": "a"})),
    ] {
        assert_eq!(shown(&workspace, name, &arguments), None, "{name} {arguments}");
    }
}
