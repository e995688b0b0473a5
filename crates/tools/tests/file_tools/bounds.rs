//! What a model can pass in is bounded, and an abort ends the work on it. Without the bounds these tests would take
//! minutes and gigabytes.

use myclaw_engine::ToolError;
use serde_json::json;

use crate::harness::Workspace;

fn many_lines(count: usize) -> String {
    (0..count).map(|number| format!("line {}\n", number % 7)).collect()
}

/// Lines of [`many_lines`], but for the one in the middle.
fn almost(count: usize) -> String {
    let text = many_lines(count);
    let lines: Vec<&str> = text.lines().collect();
    let mut wanted: Vec<&str> = lines.clone();
    wanted[count / 2] = lines[count / 2 + 1];
    wanted.join("\n")
}

#[test]
fn edit_seeks_many_lines_in_a_large_file() {
    let workspace = Workspace::with(&[("a.txt", &many_lines(200_000))]);
    let absent = format!("{}other", many_lines(20_000));
    let error =
        workspace.refused("edit", json!({"path": "a.txt", "oldText": absent, "newText": "x"}));
    assert!(error.starts_with("oldText was not found in a.txt"), "{error}");
    for wanted in [20_001, 100_000] {
        let error = workspace
            .refused("edit", json!({"path": "a.txt", "oldText": almost(wanted), "newText": "x"}));
        assert!(
            error.starts_with("oldText was not found in a.txt")
                || error.starts_with("nothing was changed: finding the places takes too much"),
            "{error}"
        );
    }
}

#[test]
fn edit_counts_overlapping_places_and_replaces_bounded_ones() {
    let workspace = Workspace::with(&[("a.txt", &"a".repeat(1_000_000))]);
    let half = "a".repeat(500_000);
    let error = workspace
        .refused("edit", json!({"path": "a.txt", "oldText": "a".repeat(100_000), "newText": "x"}));
    assert!(
        error.starts_with("oldText occurs at least 1000 times in a.txt (lines 1, 1"),
        "{error}"
    );
    let error = workspace
        .refused("edit", json!({"path": "a.txt", "oldText": "a", "newText": "b", "all": true}));
    assert!(error.contains("occurs at least 100000 times, which is too much"), "{error}");
    let long = "b".repeat(1_000_000);
    let error = workspace.refused(
        "edit",
        json!({"path": "a.txt", "oldText": "a".repeat(1000), "newText": long, "all": true}),
    );
    assert!(error.contains("occurs 1000 times, which is too much"), "{error}");
    workspace.ok("edit", json!({"path": "a.txt", "oldText": half, "newText": "b", "all": true}));
    assert_eq!(workspace.text("a.txt"), "bb");
}

#[test]
fn a_patch_with_many_lost_hunks_names_some() {
    let workspace = Workspace::with(&[("a.txt", &many_lines(200_000))]);
    let hunks: String =
        (0..5_000).map(|number| format!("@@\n line 3\n-lost {number}\n+found\n")).collect();
    let patch = format!("*** Begin Patch\n*** Update File: a.txt\n{hunks}*** End Patch\n");
    let error = workspace.refused("apply_patch", json!({"patch": patch}));
    assert!(error.contains("hunk 50 (") && !error.contains("hunk 51 ("), "{error}");
    assert!(error.contains("the 4950 hunks after it were not checked"), "{error}");
}

#[test]
fn a_patch_with_many_hunks_is_applied() {
    let old: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    let workspace = Workspace::with(&[("a.txt", &old)]);
    let hunks: String =
        (0..10_000).map(|number| format!("@@\n-line {}\n+new {number}\n", number * 2)).collect();
    let patch = format!("*** Begin Patch\n*** Update File: a.txt\n{hunks}*** End Patch\n");
    workspace.ok("apply_patch", json!({"patch": patch}));
    let text = workspace.text("a.txt");
    assert!(text.starts_with("new 0\nline 1\nnew 1\n") && text.ends_with("new 9999\nline 19999\n"));
}

#[test]
fn a_patch_that_fits_almost_everywhere_is_too_much_work() {
    let workspace = Workspace::with(&[("a.txt", &"}\n".repeat(100_000))]);
    let patch = format!("--- a/a.txt\n+++ b/a.txt\n{}", "@@\n-}\n+]\n".repeat(100_000));
    let error = workspace.refused("apply_patch", json!({"patch": patch}));
    assert!(
        error.contains("takes too much work") || error.contains("hunks after it were not checked"),
        "{error}"
    );
}

#[test]
fn a_patch_changes_a_bounded_number_of_files() {
    let workspace = Workspace::new();
    let sections: String =
        (0..1_001).map(|number| format!("*** Add File: {number}\n+x\n")).collect();
    let patch = format!("*** Begin Patch\n{sections}*** End Patch\n");
    let error = workspace.refused("apply_patch", json!({"patch": patch}));
    assert!(error.contains("1001 files, more than the limit of 1000"), "{error}");
}

#[test]
fn a_patch_holds_a_bounded_amount_of_memory() {
    let workspace = Workspace::with(&[("a.txt", &many_lines(2_000_000))]);
    let copies: String = (0..100)
        .map(|number| {
            format!("diff --git a/a.txt b/{number}\nsimilarity index 100%\ncopy from a.txt\ncopy to {number}\n")
        })
        .collect();
    let error = workspace.refused("apply_patch", json!({"patch": copies}));
    assert!(error.contains("more than 256.0 MB of files. Send it in parts"), "{error}");
}

#[test]
fn an_abort_ends_a_search_that_finds_nothing() {
    let workspace = Workspace::with(&[("a.txt", &many_lines(1_000))]);
    workspace.cancel.cancel();
    let edit =
        workspace.call("edit", json!({"path": "a.txt", "oldText": "nothing", "newText": "x"}));
    assert!(matches!(edit, Err(ToolError::Aborted(_))), "{edit:?}");
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@\n-nothing\n+x\n";
    let patched = workspace.call("apply_patch", json!({"patch": patch}));
    assert!(matches!(patched, Err(ToolError::Aborted(_))), "{patched:?}");
}

#[test]
fn paths_files_and_numbers_are_bounded() {
    /// Above it not every whole number has a float of its own, and the schema takes none.
    const MOST: u64 = (1 << 53) - 1;
    let workspace =
        Workspace::with(&[("a.txt", "a\nb\n"), ("newlines.txt", &"\n".repeat(4_000_001))]);
    for (name, arguments) in [
        ("read", json!({"path": "a/".repeat(100_000)})),
        ("ls", json!({"path": "a/".repeat(100_000)})),
        ("write", json!({"path": "a/".repeat(100_000), "content": ""})),
        ("find", json!({"pattern": "*", "path": "../".repeat(100_000)})),
        ("find", json!({"pattern": "../".repeat(100_000) + "*"})),
    ] {
        let error = workspace.refused(name, arguments);
        assert!(error.contains("are possible") || error.contains("is too long"), "{name}: {error}");
    }
    let braces = "{".repeat(20_000) + &"}".repeat(20_000);
    let error = workspace.refused("find", json!({"pattern": braces}));
    assert!(error.contains("is too long"), "{error}");
    let error = workspace.refused("grep", json!({"pattern": "a", "glob": "{".repeat(1_000)}));
    assert!(error.contains("has braces within braces more than 8 deep"), "{error}");
    let error =
        workspace.refused("edit", json!({"path": "newlines.txt", "oldText": "a", "newText": "b"}));
    assert!(error.contains("has 4000001 lines, more than the limit of 4000000"), "{error}");
    let error = workspace.refused("read", json!({"path": "a.txt", "offset": MOST, "limit": MOST}));
    assert!(error.contains("a.txt"), "{error}");
    let listed = workspace.ok("ls", json!({"limit": MOST}));
    assert_eq!(listed, "a.txt\nnewlines.txt");
}

#[test]
fn pipes_and_devices_are_never_waited_for() {
    let workspace = Workspace::new();
    let made = std::process::Command::new("mkfifo").arg(workspace.path("pipe")).status().unwrap();
    assert!(made.success());
    for path in ["pipe", "/dev/tty", "/dev/zero"] {
        for (name, arguments) in [
            ("read", json!({"path": path})),
            ("grep", json!({"pattern": "x", "path": path})),
            ("edit", json!({"path": path, "oldText": "a", "newText": "b"})),
            ("write", json!({"path": path, "content": "a"})),
        ] {
            let error = workspace.refused(name, arguments);
            assert!(
                error.contains("special file") || error.contains("neither a file nor a directory"),
                "{name} {path}: {error}"
            );
        }
    }
    let patch = "--- a/pipe\n+++ b/pipe\n@@\n-a\n+b\n";
    let error = workspace.refused("apply_patch", json!({"patch": patch}));
    assert!(error.contains("special file"), "{error}");
    // Among other files they are passed over.
    workspace.put("a.txt", "x\n");
    assert_eq!(workspace.ok("grep", json!({"pattern": "x"})), "a.txt:1: x");
}
