use std::os::unix::fs::symlink;

use super::*;
use crate::support::testing::Workspace;
use myclaw_files::ClosedPaths;

fn walked(workspace: &Workspace, from: &str) -> Vec<String> {
    let root = workspace.path(from);
    let mut walker = Walker::new(&root, &ClosedPaths::default(), workspace.cancel.clone());
    let mut names = Vec::new();
    while let Some(entry) = walker.next_entry().unwrap() {
        names.push(entry.path().strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
    }
    names
}

#[test]
fn entries_come_in_order_with_hidden_and_without_ignored_ones() {
    let workspace = Workspace::new(&[
        (".gitignore", "*.log\nbuild/\n"),
        (".ignore", "private.txt\n"),
        ("b.txt", ""),
        ("a/z.txt", ""),
        ("a/y.log", ""),
        ("build/x", ""),
        ("private.txt", ""),
        (".env", ""),
        ("a/.gitignore", "q*\n"),
        ("a/q.txt", ""),
        ("q.txt", ""),
    ]);
    let all = [".env", ".gitignore", ".ignore", "a", "a/.gitignore", "a/z.txt", "b.txt", "q.txt"];
    assert_eq!(walked(&workspace, ""), all);
}

#[test]
fn git_is_never_entered_and_its_excludes_count() {
    let workspace = Workspace::new(&[
        (".git/HEAD", ""),
        (".git/info/exclude", "secret\n"),
        ("secret", ""),
        ("x", ""),
    ]);
    assert_eq!(walked(&workspace, ""), ["x"]);
}

#[test]
fn an_ignore_file_above_counts_only_within_one_repository() {
    let workspace = Workspace::new(&[("sub/a.txt", ""), ("sub/b.log", "")]);
    std::fs::write(workspace.base.join(".gitignore"), "*\n").unwrap();
    assert_eq!(walked(&workspace, ""), ["sub", "sub/a.txt", "sub/b.log"]);
    workspace.write(".gitignore", "*.log\n");
    workspace.write(".git/HEAD", "");
    assert_eq!(walked(&workspace, "sub"), ["a.txt"]);
}

#[test]
fn links_are_listed_and_not_followed() {
    let workspace = Workspace::new(&[("a/x", "")]);
    symlink("a", workspace.path("link")).unwrap();
    symlink(".", workspace.path("circle")).unwrap();
    assert_eq!(walked(&workspace, ""), ["a", "a/x", "circle", "link"]);
}

#[test]
fn a_cancelled_walk_ends() {
    let workspace = Workspace::new(&[("x", "")]);
    workspace.cancel.cancel();
    let mut walker = Walker::new(&workspace.path(""), &ClosedPaths::default(), workspace.cancel);
    assert!(matches!(walker.next_entry(), Err(ToolError::Aborted(_))));
}

#[test]
fn an_ignore_file_that_is_a_pipe_is_not_read() {
    let workspace = Workspace::new(&[("a/x", ""), ("b/y", "")]);
    crate::support::testing::make_pipe(&workspace.path("a/.gitignore"));
    let mut walker =
        Walker::new(&workspace.path(""), &ClosedPaths::default(), workspace.cancel.clone());
    let mut names = Vec::new();
    while let Some(entry) = walker.next_entry().unwrap() {
        names.push(entry.file_name().to_str().unwrap().to_owned());
    }
    assert_eq!(names, ["b", "y"]);
    assert_eq!(walker.unreadable(), 1);
    assert_eq!(walked(&workspace, "a"), [".gitignore", "x"], "a walk that begins there ignores it");
}
