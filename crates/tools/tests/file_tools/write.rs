use std::os::unix::fs::PermissionsExt;

use myclaw_engine::ToolError;
use serde_json::json;

use crate::harness::Workspace;

#[test]
fn creates_a_file_with_its_directories() {
    let workspace = Workspace::new();
    let output =
        workspace.call("write", json!({"path": "a/b/c.txt", "content": "one\ntwo"})).unwrap();
    assert_eq!(workspace.text("a/b/c.txt"), "one\ntwo");
    assert_eq!(
        output.details,
        Some(json!({
            "path": "a/b/c.txt", "action": "created", "bytes": 7, "lines": 2,
            "diff": "--- a/a/b/c.txt\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"
        }))
    );
    assert_eq!(
        workspace.ok("write", json!({"path": "d.txt", "content": "x\n"})),
        "Created d.txt (2 bytes, 1 line)"
    );
    let mode = std::fs::metadata(workspace.path("d.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o600, 0o600);
    assert_eq!(mode & 0o111, 0);
}

#[test]
fn overwrites_and_keeps_mode_and_link() {
    let workspace = Workspace::with(&[("real.sh", "old\n")]);
    std::fs::set_permissions(workspace.path("real.sh"), PermissionsExt::from_mode(0o751)).unwrap();
    std::os::unix::fs::symlink("real.sh", workspace.path("link.sh")).unwrap();
    assert_eq!(
        workspace.ok("write", json!({"file_path": "link.sh", "content": "new\n"})),
        "Overwrote real.sh (4 bytes, 1 line)"
    );
    assert_eq!(workspace.text("real.sh"), "new\n");
    assert!(workspace.path("link.sh").is_symlink());
    let mode = std::fs::metadata(workspace.path("real.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o751);
    assert_eq!(workspace.everything().len(), 2);
}

#[test]
fn writes_through_a_link_to_a_file_that_is_not_there_yet() {
    let workspace = Workspace::new();
    std::os::unix::fs::symlink("sub/real.txt", workspace.path("link.txt")).unwrap();
    workspace.ok("write", json!({"path": "link.txt", "content": "x"}));
    assert_eq!(workspace.text("sub/real.txt"), "x");
    assert!(workspace.path("link.txt").is_symlink());
}

#[test]
fn says_when_there_was_nothing_to_do() {
    let workspace = Workspace::with(&[("a.txt", "same\n")]);
    assert_eq!(
        workspace.ok("write", json!({"path": "a.txt", "content": "same\n"})),
        "a.txt had exactly this content already (5 bytes, 1 line)"
    );
}

#[test]
fn refuses_what_cannot_be_a_file() {
    let mut workspace = Workspace::with(&[("dir/x", ""), ("file", "")]);
    let refused = |path: &str| workspace.refused("write", json!({"path": path, "content": "x"}));
    assert_eq!(refused("dir"), "cannot write dir: it is a directory. See what is in it with ls");
    assert!(refused("new/").contains("names a directory"));
    assert!(refused("file/below").contains("is a file, so nothing can be put below it"));
    assert!(refused("file/below/more").contains("is a file, so nothing can be put below it"));
    assert!(refused("/dev/full").contains("special file"));
    assert!(refused("").contains("empty"));
    assert!(workspace.refused("write", json!({"path": "a"})).contains("content"));
    workspace.context.workspace_only = true;
    assert!(
        workspace.refused("write", json!({"path": "../b", "content": "x"})).contains("outside")
    );
    assert!(!workspace.outside().join("b").exists());
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    // A file system too small for the new content, if this machine lets us have one.
    let workspace = Workspace::new();
    let small = workspace.path("small");
    std::fs::create_dir(&small).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&small)
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        return;
    }
    let unmount = Unmount(small);
    workspace.put("small/a.txt", "old\n");
    let error =
        workspace.refused("write", json!({"path": "small/a.txt", "content": "x".repeat(200_000)}));
    assert!(error.contains("the disk is full"), "{error}");
    assert_eq!(workspace.text("small/a.txt"), "old\n");
    drop(unmount);
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn does_nothing_in_an_aborted_run() {
    let workspace = Workspace::new();
    workspace.cancel.cancel();
    assert_eq!(
        workspace.call("write", json!({"path": "a.txt", "content": "x"})),
        Err(ToolError::Aborted("aborted before a.txt was written".to_owned()))
    );
    assert_eq!(workspace.everything(), vec![]);
}
