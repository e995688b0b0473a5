use serde_json::json;

use super::*;

fn call(name: &str, arguments: &Value) -> Value {
    let call = started(Path::new("/project"), "call_1", name, arguments.as_object().unwrap());
    serde_json::to_value(call).unwrap()
}

fn end(is_error: bool, text: &str, details: Option<&Value>) -> Value {
    let ending = Ending { is_error, text, details };
    serde_json::to_value(ended(Path::new("/project"), "call_1", &ending)).unwrap()
}

#[test]
fn a_call_says_what_it_is_about_and_where() {
    let read = call("read", &json!({"path": "./src/a.rs", "startLine": 7, "endLine": 9}));
    assert_eq!(
        read,
        json!({
            "toolCallId": "call_1", "title": "Read `./src/a.rs` (lines 7-9)", "name": "read", "kind": "read",
            "status": "in_progress", "locations": [{"path": "/project/src/a.rs", "line": 7}],
            "rawInput": {"path": "./src/a.rs", "startLine": 7, "endLine": 9},
        })
    );
    for (name, arguments, kind, title) in [
        ("bash", json!({"command": "cargo test\necho"}), "execute", "`cargo test …`"),
        ("ls", json!({}), "read", "List a directory"),
        ("ls", json!({"path": "a\u{202e}b"}), "read", r"List `a\u{202e}b`"),
        ("grep", json!({"pattern": "fn", "path": "src"}), "search", "Search `fn` in `src`"),
        ("web_fetch", json!({"url": "https://h/"}), "fetch", "Fetch `https://h/`"),
        ("web_search", json!({"query": "q"}), "search", "Search the web for `q`"),
        ("image", json!({"image": "a.png"}), "read", "Look at `a.png`"),
        ("find", json!({"pattern": "*.rs"}), "search", "Find `*.rs`"),
        ("write", json!({"path": "/tmp/x", "content": "x"}), "edit", "Write `/tmp/x`"),
        ("edit", json!({"path": "x"}), "edit", "Edit `x`"),
        ("weather", json!({"city": "Rome"}), "other", "weather {\"city\":\"Rome\"}"),
    ] {
        let call = call(name, &arguments);
        // The kind of other tools is the default, which goes without saying.
        let found = call.get("kind").and_then(Value::as_str).unwrap_or("other");
        assert_eq!((found, call["title"].as_str().unwrap()), (kind, title));
    }
}

#[test]
fn a_patch_names_its_files() {
    let title = |patch: &str| call("apply_patch", &json!({"patch": patch}))["title"].clone();
    assert_eq!(title("--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n-a\n+b\n"), "Patch `x.rs`");
    assert_eq!(
        title(
            "*** Begin Patch\n*** Add File: a\n+1\n*** Delete File: b\n*** Update File: c\n*** Update File: d\n"
        ),
        "Patch `a`, `b`, `c` and 1 more"
    );
    assert_eq!(title(""), "Apply a patch");
}

#[test]
fn the_end_of_a_call_shows_its_text() {
    let details = json!({"exitCode": 1});
    assert_eq!(
        end(true, "no ``` here", Some(&details)),
        json!({
            "toolCallId": "call_1", "status": "failed", "rawOutput": details,
            "content": [{"type": "content", "content": {"type": "text", "text": "````\nno ``` here\n````"}}],
        })
    );
    assert_eq!(
        end(false, "", None),
        json!({"toolCallId": "call_1", "status": "completed", "content": []})
    );
}

#[test]
fn the_end_of_an_edit_shows_its_diff() {
    let one = json!({"path": "a.rs", "diff": "--- a/a.rs\n+++ b/a.rs\n@@ -4 +4 @@\n-a\n+b\n"});
    let shown = json!({
        "toolCallId": "call_1", "status": "completed",
        "content": [{"type": "diff", "path": "/project/a.rs", "oldText": "a\n", "newText": "b\n"}],
        "locations": [{"path": "/project/a.rs", "line": 4}],
    });
    assert_eq!(end(false, "Edited a.rs", Some(&one)), shown);
    assert_eq!(
        end(false, "Patched", Some(&json!({"diffs": [one, {"path": "b", "diff": null}]}))),
        shown
    );
}

#[test]
fn the_progress_of_a_command_is_its_last_lines() {
    let mut printed = String::new();
    let update = serde_json::to_value(progress("call_1", &mut printed, "one\n")).unwrap();
    assert_eq!(update["content"][0]["content"]["text"], "```\none\n```");
    progress("call_1", &mut printed, &"é".repeat(MOST_PROGRESS_BYTES));
    assert!(printed.len() <= MOST_PROGRESS_BYTES && printed.starts_with('é'));
}
