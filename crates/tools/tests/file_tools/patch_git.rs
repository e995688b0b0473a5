//! What `git diff` says about a change makes that change.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;

use crate::harness::Workspace;

fn git(workspace: &Workspace, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(&workspace.context.working_directory)
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "core.autocrlf=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn lines(word: &str, count: usize) -> String {
    (1..=count).map(|line| format!("{word} {line}\n")).collect()
}

/// The tree with modes and content, as git names it.
fn tree(workspace: &Workspace) -> String {
    git(workspace, &["add", "--all"]);
    git(workspace, &["write-tree"])
}

#[test]
fn a_diff_of_git_gives_the_tree_that_it_was_made_from() {
    if Command::new("git").arg("--version").output().is_err() {
        return;
    }
    let mut workspace = Workspace::new();
    workspace.put("plain.txt", lines("plain", 40));
    workspace.put("dir/crlf.txt", lines("crlf", 20).replace('\n', "\r\n"));
    workspace.put("ends.txt", "no newline\nhere");
    workspace.put("grüße \"x\"\t.txt", lines("odd name", 5));
    workspace.put("moved.txt", lines("moved", 30));
    workspace.put("copied.txt", lines("copied", 30));
    workspace.put("gone.txt", "-- a\n++ b\n@@ c\n\n");
    workspace.put("empty", "");
    workspace.put("tool.sh", "#!/bin/sh\n");
    git(&workspace, &["init", "--quiet"]);
    let before = tree(&workspace);
    git(&workspace, &["commit", "--quiet", "-m", "before"]);

    workspace.put(
        "plain.txt",
        lines("plain", 40).replace("plain 3\n", "").replace("plain 30\n", "-- a\n++ b\n\n\\\n"),
    );
    workspace.put(
        "dir/crlf.txt",
        lines("crlf", 20).replace('\n', "\r\n").replace("crlf 9\r", "nine\r\nten\r"),
    );
    workspace.put("ends.txt", "no newline\nnow\n");
    workspace.put("grüße \"x\"\t.txt", lines("odd name", 6).trim_end());
    std::fs::remove_file(workspace.path("moved.txt")).unwrap();
    workspace.put("some where/else.txt", lines("moved", 30).replace("moved 7\n", "seven\n"));
    workspace.put("copy of.txt", lines("copied", 31));
    std::fs::remove_file(workspace.path("gone.txt")).unwrap();
    std::fs::remove_file(workspace.path("empty")).unwrap();
    workspace.put("another empty", "");
    workspace.put("new/latin.txt", "ümläut\n");
    std::fs::set_permissions(workspace.path("tool.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let after = tree(&workspace);
    let rename = git(&workspace, &["diff", "--cached", "HEAD", "-M", "-C", "--find-copies-harder"]);
    for expected in ["rename from moved.txt", "copy to copy of.txt", "new mode 100755"] {
        assert!(rename.contains(expected), "{rename}");
    }
    let plain = git(
        &workspace,
        &["diff", "--cached", "HEAD", "--no-renames", "--no-prefix", "--unified=1"],
    );
    let mnemonic = git(
        &workspace,
        &["-c", "diff.mnemonicPrefix=true", "diff", "--cached", "HEAD", "--patience"],
    );
    for (session, patch) in [rename, plain, mnemonic].into_iter().enumerate() {
        git(&workspace, &["reset", "--quiet", "--hard", "HEAD"]);
        git(&workspace, &["clean", "--quiet", "-d", "--force"]);
        assert_eq!(tree(&workspace), before);
        // The model has not seen what git did: another session.
        workspace.context.artifact_directory = workspace.outside().join(session.to_string());
        workspace.ok("apply_patch", json!({"patch": patch}));
        assert_eq!(tree(&workspace), after, "{patch}");
    }
}
