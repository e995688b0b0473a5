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

#[tokio::test]
async fn names_that_would_look_like_others_are_written_out_and_can_be_given_so() {
    let name = "gpj.\u{202e}exe";
    let workspace = Workspace::new(&[(name, "inside"), ("new\nline", ""), ("d\u{61c}/x", "deep")]);
    symlink(name, workspace.path("link")).unwrap();
    let shown = text(&workspace, json!({})).await;
    let expected = "d\\u{61c}/\ngpj.\\u{202e}exe\nlink -> gpj.\\u{202e}exe\nnew\\nline";
    assert_eq!(shown, expected);
    let found = workspace.text(&crate::FindTool::new(), json!({"pattern": "*"})).await;
    assert_eq!(found, "d\\u{61c}/\nd\\u{61c}/x\ngpj.\\u{202e}exe\nlink\nnew\\nline");
    let found = workspace.text(&crate::GrepTool::new(), json!({"pattern": "inside"})).await;
    assert_eq!(found, "gpj.\\u{202e}exe:1: inside");
    // As it was listed, as it is, and a directory on the way.
    for path in ["gpj.\\u{202e}exe", name] {
        let read = workspace.text(&crate::ReadTool::new(), json!({"path": path})).await;
        assert!(read.contains("inside"), "{read}");
    }
    assert_eq!(text(&workspace, json!({"path": "d\\u{61c}"})).await, "x");
    // A file that is really called so comes first.
    std::fs::write(workspace.path("gpj.\\u{202e}exe"), "literally").unwrap();
    let read = workspace.text(&crate::ReadTool::new(), json!({"path": "gpj.\\u{202e}exe"})).await;
    assert!(read.contains("literally"), "{read}");
}
