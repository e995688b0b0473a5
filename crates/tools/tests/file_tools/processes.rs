//! Paths that name an open file, the memory or a variable of a process, and files that are devices.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::harness::Workspace;

/// The calls by which each file tool could show or change what is at `path`.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch");
    vec![
        ("read", json!({"path": path})),
        ("write", json!({"path": path, "content": "x"})),
        ("edit", json!({"path": path, "oldText": "a", "newText": "b"})),
        ("apply_patch", json!({"patch": patch})),
        ("grep", json!({"pattern": ".", "path": path})),
        ("ls", json!({"path": path})),
        ("find", json!({"pattern": "*", "path": path})),
    ]
}

#[test]
fn no_tool_reaches_what_a_process_has_open() {
    let workspace = Workspace::with(&[("a.txt", "a\n")]);
    symlink("/proc/self", workspace.path("process")).unwrap();
    symlink("/dev/fd", workspace.path("open")).unwrap();
    symlink("open/0", workspace.path("first")).unwrap();
    let (process, work) = (std::process::id(), workspace.path("a.txt").display().to_string());
    for path in [
        "/dev/fd/3".to_owned(),
        "/dev/fd/99".to_owned(),
        "/dev/fd".to_owned(),
        "/dev/stdin".to_owned(),
        "/dev/stdout".to_owned(),
        "/dev/stderr".to_owned(),
        "/proc/self".to_owned(),
        "/proc/self/fd/0".to_owned(),
        "/proc/self/fdinfo/0".to_owned(),
        "/proc/self/environ".to_owned(),
        "/proc/self/mem".to_owned(),
        "/proc/self/maps".to_owned(),
        "/proc/self/exe".to_owned(),
        "/proc/self/cwd".to_owned(),
        "/proc/mounts".to_owned(),
        format!("/proc/self/root{work}"),
        format!("/proc/{process}/environ"),
        format!("/proc/{process}/root{work}"),
        format!("/proc/self/task/{process}/environ"),
        format!("/proc/thread-self/root{work}"),
        "/proc/thread-self/fd/0".to_owned(),
        "/proc/1/environ".to_owned(),
        "/proc/sys/../self/environ".to_owned(),
        "/proc/self/../self/mem".to_owned(),
        format!("/proc/self/root/..{work}"),
        "process/environ".to_owned(),
        "open/0".to_owned(),
        "first".to_owned(),
        "file:///proc//self/./mem".to_owned(),
    ] {
        for (tool, arguments) in calls(&path) {
            let error = workspace.refused(tool, arguments);
            assert!(error.contains("open files, memory and variables"), "{tool} {path}: {error}");
            assert!(error.contains("use the file's own path"), "{tool} {path}: {error}");
        }
    }
}

#[test]
fn walks_go_past_processes() {
    let workspace = Workspace::new();
    let found = workspace.ok("find", json!({"pattern": "*/environ", "path": "/proc"}));
    assert!(found.starts_with("nothing matches"), "{found}");
    let found =
        workspace.ok("grep", json!({"pattern": "PATH=", "path": "/proc", "glob": "*/environ"}));
    assert!(!found.lines().any(|line| line.starts_with("/proc/")), "{found}");
    assert!(workspace.ok("read", json!({"path": "/proc/meminfo"})).contains("MemTotal"));
}

#[test]
fn devices_are_no_files() {
    let workspace = Workspace::new();
    for path in ["/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/tty", "/dev/ptmx"] {
        for (tool, arguments) in calls(path) {
            let error = workspace.refused(tool, arguments);
            assert!(error.contains(path), "{tool} {path}: {error}");
        }
    }
}
