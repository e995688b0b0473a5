use std::os::unix::fs::symlink;

use serde_json::Value;

use super::*;
use crate::support::testing::{Workspace, text_of};

async fn text(workspace: &Workspace, arguments: Value) -> String {
    workspace.text(&LsTool::new(), arguments).await
}

#[tokio::test]
async fn entries_are_sorted_and_marked() {
    let workspace = Workspace::new(&[
        ("b.txt", ""),
        ("Alpha/x", ""),
        (".hidden", ""),
        ("zoo/y", ""),
        ("a.txt", ""),
    ]);
    symlink("a.txt", workspace.path("link")).unwrap();
    symlink("zoo", workspace.path("linked")).unwrap();
    symlink("nowhere", workspace.path("lost")).unwrap();
    let expected = ".hidden\na.txt\nAlpha/\nb.txt\nlink -> a.txt\nlinked/ -> zoo\nlost -> nowhere (broken link)\nzoo/";
    for arguments in
        [json!({}), json!({"path": "."}), json!({"path": null}), json!({"path": "zoo/.."})]
    {
        assert_eq!(text(&workspace, arguments).await, expected);
    }
    assert_eq!(text(&workspace, json!({"path": "Alpha"})).await, "x");
}

#[tokio::test]
async fn more_entries_than_the_limit_are_said() {
    let names: Vec<String> = (0..7).map(|number| format!("f{number}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let workspace = Workspace::new(&files);
    let output = workspace.call(&LsTool::new(), json!({"limit": 2})).await.unwrap();
    assert_eq!(
        text_of(&output),
        "f0\nf1\n[2 of 7 entries shown; raise limit, or use find with a pattern]"
    );
    assert_eq!(output.details, Some(json!({"entries": 7, "truncated": true})));
    assert_eq!(text(&workspace, json!({"limit": "7"})).await.lines().count(), 7);
}

#[tokio::test]
async fn the_result_never_exceeds_its_limit() {
    let names: Vec<String> =
        (0..200).map(|number| format!("a-rather-long-name-{number:03}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let mut workspace = Workspace::new(&files);
    workspace.context.max_result_chars = 1000;
    let text = text(&workspace, json!({})).await;
    assert!(text.chars().count() <= 1000, "{}", text.chars().count());
    assert!(text.contains("of 200 entries shown"), "{text}");
}

#[tokio::test]
async fn what_cannot_be_listed_says_why() {
    let mut workspace = Workspace::new(&[("src/a.txt", "")]);
    let tool = LsTool::new();
    assert_eq!(text(&workspace, json!({"path": "src/../src"})).await, "a.txt");
    let file = workspace.failure(&tool, json!({"path": "src/a.txt"})).await;
    assert_eq!(file, "src/a.txt is a file, not a directory; use read to see what is in it");
    let missing = workspace.failure(&tool, json!({"path": "scr"})).await;
    assert!(
        missing.starts_with("scr does not exist; in ") && missing.ends_with("there is src"),
        "{missing}"
    );
    workspace.context.workspace_only = true;
    let outside = workspace.failure(&tool, json!({"path": ".."})).await;
    assert!(outside.contains("outside the workspace"), "{outside}");
}

#[tokio::test]
async fn empty_directories_and_odd_names() {
    let workspace = Workspace::new(&[]);
    assert_eq!(text(&workspace, json!({})).await, "(empty directory)");
    workspace.write("two\nlines", "");
    assert_eq!(text(&workspace, json!({})).await, "two\\nlines");
}

#[tokio::test]
async fn a_cancelled_call_is_aborted() {
    let workspace = Workspace::new(&[("a", "")]);
    workspace.cancel.cancel();
    let error = workspace.call(&LsTool::new(), json!({})).await.unwrap_err();
    assert_eq!(error, ToolError::Aborted("aborted while listing .".into()));
}
