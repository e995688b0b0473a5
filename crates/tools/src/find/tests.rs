use serde_json::Value;

use super::*;
use crate::support::testing::{Workspace, text_of};

fn workspace() -> Workspace {
    Workspace::new(&[
        ("Cargo.toml", ""),
        ("src/main.rs", ""),
        ("src/deep/lib.rs", ""),
        ("src/deep/notes.md", ""),
        (".github/workflows/ci.yml", ""),
        (".env", ""),
        ("target/debug/out.rs", ""),
        (".gitignore", "target\n"),
    ])
}

async fn text(workspace: &Workspace, arguments: Value) -> String {
    workspace.text(&FindTool::new(), arguments).await
}

#[tokio::test]
async fn patterns_find_names_and_paths() {
    let workspace = workspace();
    for (arguments, expected) in [
        (json!({"pattern": "*.rs"}), "src/deep/lib.rs\nsrc/main.rs"),
        (json!({"pattern": "\"*.rs\""}), "src/deep/lib.rs\nsrc/main.rs"),
        (json!({"pattern": "*.rs", "path": "src/deep"}), "src/deep/lib.rs"),
        (json!({"pattern": "src/*.rs", "path": "src"}), "src/main.rs"),
        (json!({"pattern": "**/*.rs", "path": null}), "src/deep/lib.rs\nsrc/main.rs"),
        (json!({"pattern": "src/*"}), "src/deep/\nsrc/main.rs"),
        (json!({"pattern": "deep"}), "src/deep/"),
        (json!({"pattern": "deep/"}), "src/deep/"),
        (json!({"pattern": "*.{md,toml}"}), "Cargo.toml\nsrc/deep/notes.md"),
        (json!({"pattern": ".env"}), ".env"),
        (json!({"pattern": "*.yaml"}), "nothing matches *.yaml in . (ignored entries are skipped)"),
        (json!({"pattern": "*.yml"}), ".github/workflows/ci.yml"),
        (json!({"pattern": ".github/**/*.yml"}), ".github/workflows/ci.yml"),
        (json!({"pattern": "*.yml", "path": ".github"}), ".github/workflows/ci.yml"),
        (json!({"pattern": "*.rs", "path": "target"}), "target/debug/out.rs"),
        (
            json!({"pattern": "main"}),
            "nothing matches main in .; try *main* (ignored entries are skipped)",
        ),
    ] {
        assert_eq!(text(&workspace, arguments.clone()).await, expected, "{arguments}");
    }
}

#[tokio::test]
async fn a_directory_may_be_written_into_the_pattern() {
    let mut workspace = workspace();
    std::fs::create_dir_all(workspace.base.join("other/deep")).unwrap();
    std::fs::write(workspace.base.join("other/a.conf"), "").unwrap();
    std::fs::write(workspace.base.join("other/deep/b.conf"), "").unwrap();
    let other = workspace.base.join("other").to_str().unwrap().to_owned();
    let inside = workspace.path("src").to_str().unwrap().to_owned();
    for (arguments, expected) in [
        (json!({"pattern": format!("{other}/*.conf")}), format!("{other}/a.conf")),
        (json!({"pattern": format!("{other}/**/b.*")}), format!("{other}/deep/b.conf")),
        (json!({"pattern": format!("{other}/a.conf")}), format!("{other}/a.conf")),
        (json!({"pattern": "../other/*.conf"}), format!("{other}/a.conf")),
        (json!({"pattern": "../*.toml", "path": "src"}), "Cargo.toml".to_owned()),
        (json!({"pattern": format!("{inside}/*.rs")}), "src/main.rs".to_owned()),
        (json!({"pattern": "/src/*.rs"}), "src/main.rs".to_owned()),
    ] {
        assert_eq!(text(&workspace, arguments.clone()).await, expected, "{arguments}");
    }
    workspace.context.workspace_only = true;
    let outside =
        workspace.failure(&FindTool::new(), json!({"pattern": format!("{other}/*.conf")})).await;
    assert!(outside.contains("outside the workspace"), "{outside}");
}

#[tokio::test]
async fn more_entries_than_the_limit_are_said() {
    let workspace = workspace();
    let output =
        workspace.call(&FindTool::new(), json!({"pattern": "*", "limit": 2})).await.unwrap();
    let note = "[2 entries shown, there are more; narrow the pattern or path, or raise limit]";
    assert_eq!(text_of(&output), format!(".env\n.github/\n{note}"));
    assert_eq!(output.details, Some(json!({"entries": 2, "truncated": true})));
    let exactly =
        workspace.call(&FindTool::new(), json!({"pattern": "*.rs", "limit": 2})).await.unwrap();
    assert_eq!(exactly.details, Some(json!({"entries": 2, "truncated": false})));
}

#[tokio::test]
async fn a_thousand_entries_by_default() {
    let workspace = Workspace::new(&[]);
    for number in 0..1005 {
        workspace.write(&format!("{number}.txt"), "");
    }
    let text = text(&workspace, json!({"pattern": "*.txt"})).await;
    assert_eq!(text.lines().count(), 1001);
    assert!(
        text.ends_with(
            "[1000 entries shown, there are more; narrow the pattern or path, or raise limit]"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn what_cannot_be_searched_says_why() {
    let mut workspace = workspace();
    let tool = FindTool::new();
    let missing = workspace.failure(&tool, json!({"pattern": "*", "path": "srcs"})).await;
    assert!(
        missing.starts_with("srcs does not exist; in ") && missing.ends_with("there is src"),
        "{missing}"
    );
    let file = workspace.failure(&tool, json!({"pattern": "*", "path": "Cargo.toml"})).await;
    assert_eq!(file, "Cargo.toml is a file; give the directory to search in as path");
    let glob = workspace.failure(&tool, json!({"pattern": "{a"})).await;
    assert!(glob.contains("is not a valid glob"), "{glob}");
    let none = workspace.failure(&tool, json!({})).await;
    assert!(none.contains("`pattern` is missing"), "{none}");
    workspace.context.workspace_only = true;
    let outside = workspace.failure(&tool, json!({"pattern": "*", "path": "/etc"})).await;
    assert!(outside.contains("outside the workspace"), "{outside}");
}

#[tokio::test]
async fn a_cancelled_call_is_aborted() {
    let workspace = workspace();
    workspace.cancel.cancel();
    let error = workspace.call(&FindTool::new(), json!({"pattern": "*"})).await.unwrap_err();
    assert!(matches!(error, ToolError::Aborted(_)), "{error:?}");
}

#[tokio::test]
async fn names_are_found_in_every_spelling() {
    let workspace = Workspace::new(&[
        ("re\u{301}sume\u{301}/cafe\u{301}.txt", ""),
        ("na\u{ef}ve.md", ""),
        ("\u{201C}draft\u{201D} \u{2013} 2.md", ""),
    ]);
    let file = "re\u{301}sume\u{301}/cafe\u{301}.txt";
    for (pattern, expected) in [
        ("caf\u{e9}.txt", file),
        ("r\u{e9}sum\u{e9}/*", file),
        ("*f\u{e9}.txt", file),
        ("nai\u{308}ve*", "na\u{ef}ve.md"),
        ("\"draft\" - ?.md", "\u{201C}draft\u{201D} \u{2013} 2.md"),
    ] {
        assert_eq!(text(&workspace, json!({"pattern": pattern})).await, expected, "{pattern}");
    }
    let below = json!({"pattern": "*", "path": "r\u{e9}sum\u{e9}"});
    assert_eq!(text(&workspace, below).await, file);
}
