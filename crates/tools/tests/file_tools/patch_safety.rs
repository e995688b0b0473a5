//! What a patch must not do.

use myclaw_engine::ToolError;
use serde_json::json;

use crate::harness::Workspace;

fn refused(workspace: &Workspace, patch: &str) -> String {
    workspace.refused("apply_patch", json!({"patch": patch}))
}

const CHANGE: &str = "@@ -1 +1 @@\n-x\n+y\n";

#[test]
fn one_file_that_does_not_fit_stops_the_whole_patch() {
    let workspace = Workspace::with(&[("a", "x\n"), ("b", "one\ntwo\nthree\n"), ("c", "x\n")]);
    let patch = format!(
        "--- a/a\n+++ b/a\n{CHANGE}--- a/b\n+++ b/b\n@@ -1,3 +1,3 @@\n one\n-tow\n+zwei\n three\n@@ -3 +3 @@\n-four\n+vier\n\
         --- a/missing\n+++ b/missing\n{CHANGE}--- /dev/null\n+++ b/new/d\n@@ -0,0 +1 @@\n+d\n"
    );
    assert_eq!(
        refused(&workspace, &patch),
        "Nothing was changed, because 2 of 4 files in the patch did not fit:\n\
         - a: fits\n\
         - b: hunk 1 (line 8 of the patch): these lines are not in the file:\n     1 | one\n     2 | tow\n     3 | \
         three\nThe closest place is line 1:\n     1 | one\n     2 | two\n     3 | three\n\
         - b: hunk 2 (line 13 of the patch): these lines are not in the file:\n     1 | four\nNothing in the file is \
         like them.\n\
         - missing: missing does not exist; no name near it is similar\n\
         - new/d: fits\n\
         Correct what did not fit and send the whole patch again."
    );
}

#[test]
fn never_leaves_the_working_directory() {
    let workspace = Workspace::with(&[("in", "x\n")]);
    let outside = workspace.outside().join("secret");
    std::fs::write(&outside, "x\n").unwrap();
    std::os::unix::fs::symlink(&outside, workspace.path("link")).unwrap();
    std::os::unix::fs::symlink(workspace.outside(), workspace.path("directory")).unwrap();
    let absolute = outside.display().to_string();
    for name in [
        "../secret",
        "a/../../secret",
        "link",
        "directory/secret",
        &absolute,
        "~/secret",
        "/etc/passwd",
    ] {
        for patch in [
            format!("--- {name}\n+++ {name}\n{CHANGE}"),
            format!("--- /dev/null\n+++ {name}.new\n@@ -0,0 +1 @@\n+x\n")
                .replace("link.new", "directory/new"),
            format!("*** Begin Patch\n*** Delete File: {name}\n*** End Patch"),
            format!("*** Begin Patch\n*** Update File: in\n*** Move to: {name}\n*** End Patch")
                .replace(": link", ": directory/x"),
        ] {
            let error = refused(&workspace, &patch);
            assert!(error.contains("is outside the workspace"), "{patch}\n{error}");
        }
    }
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "x\n");
    assert_eq!(std::fs::read_dir(workspace.outside()).unwrap().count(), 2);
}

#[test]
fn never_overwrites_or_deletes_what_it_does_not_know() {
    let workspace = Workspace::with(&[("a", "x\nmore\n"), ("b", "x\n"), ("dir/c", "")]);
    let create = "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n";
    assert!(refused(&workspace, create).contains("it exists already with other content"));
    let delete = "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    assert!(
        refused(&workspace, delete).contains("it holds more than the lines that the patch removes")
    );
    let delete = "diff --git a/a b/a\ndeleted file mode 100644\n";
    assert!(refused(&workspace, delete).contains("it holds more"));
    let rename = "diff --git a/a b/b\nrename from a\nrename to b\n";
    assert!(refused(&workspace, rename).contains("b exists already; delete or rename that first"));
    assert!(
        refused(&workspace, "--- /dev/null\n+++ b/dir\n@@ -0,0 +1 @@\n+x\n")
            .contains("it is a directory")
    );
    assert!(
        refused(&workspace, "--- /dev/null\n+++ b/b/below\n@@ -0,0 +1 @@\n+x\n")
            .contains("b is a file")
    );
    let again = "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(
        workspace.ok("apply_patch", json!({"patch": again})),
        "Applied to 1 file:\n- b: is there already with this content"
    );
}

#[test]
fn links_are_followed_but_not_removed() {
    let workspace = Workspace::with(&[("real", "x\n")]);
    std::os::unix::fs::symlink("real", workspace.path("link")).unwrap();
    let error = refused(&workspace, "--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
    assert!(error.contains("it is a symbolic link"), "{error}");
    workspace.ok("apply_patch", json!({"patch": format!("--- a/link\n+++ b/link\n{CHANGE}")}));
    assert_eq!(workspace.text("real"), "y\n");
    assert!(workspace.path("link").is_symlink());
}

#[test]
fn says_what_is_wrong_with_a_text_that_is_no_patch() {
    let workspace = Workspace::with(&[("f", "x\n"), ("bin", "x\0y")]);
    let cases = [
        ("", "there is no change in it"),
        ("please change the file", "there is no change in it"),
        ("@@ -1 +1 @@\n-x\n+y\n", "line 1 of the patch: no file is named above this hunk"),
        ("--- a/f\n+++ b/f\n", "there is no hunk (@@)"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n", "this hunk has no lines"),
        ("--- a/f\n+++ b/f\n@@@ -1 -1 +1 @@@\n", "diffs of merges"),
        ("diff --git a/f b/f\nGIT binary patch\nliteral 1\n", "changes of binary files"),
        (
            "diff --git a/f b/f\nindex 1..2\nBinary files a/f and b/f differ\n",
            "changes of binary files",
        ),
        (
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+f\n",
            "symbolic links",
        ),
        ("diff --git a/s b/s\nnew file mode 160000\n", "submodules"),
        ("--- a/bin\n+++ b/bin\n@@ -1 +1 @@\n-x\n+y\n", "cannot patch bin: it is a binary file"),
        (
            "--- /dev/null\n+++ b/n\n@@ -1 +1,2 @@\n x\n+y\n",
            "a new file can only have lines that start with +",
        ),
        ("*** Begin Patch\n*** Update File: f\n*** End Patch", "there is no change for f"),
        (
            "*** Begin Patch\n*** Add File: n\nx\n*** End Patch",
            "each line of an added file starts with +",
        ),
        ("--- a/f\n+++ b/f\n@@ -7,0 +8 @@\n+y\n", "it adds lines after line 7, but the file has 1"),
        ("--- a/f\n+++ b/f\n@@\n+y\n", "it only adds lines and does not say where"),
    ];
    for (patch, expected) in cases {
        let error = refused(&workspace, patch);
        assert!(
            error.contains(expected) && error.to_lowercase().starts_with("nothing was changed"),
            "{patch}\n{error}"
        );
    }
    assert!(workspace.refused("apply_patch", json!({})).contains("patch"));
}

#[test]
fn does_nothing_in_an_aborted_run() {
    let workspace = Workspace::with(&[("f", "x\n")]);
    workspace.cancel.cancel();
    assert_eq!(
        workspace.call("apply_patch", json!({"patch": format!("--- a/f\n+++ b/f\n{CHANGE}")})),
        Err(ToolError::Aborted("aborted before anything was changed".to_owned()))
    );
    assert_eq!(workspace.text("f"), "x\n");
}

/// The third change passes every check but cannot be made: the file system takes no more names of that length.
#[test]
fn a_change_that_fails_midway_is_taken_back() {
    let workspace = Workspace::with(&[("a", "x\n"), ("gone", "x\n")]);
    let name = "n".repeat(300);
    let patch = format!(
        "--- a/a\n+++ b/a\n{CHANGE}--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n--- /dev/null\n+++ b/deep/new/b\n@@ -0,0 \
         +1 @@\n+x\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
    );
    let error = refused(&workspace, &patch);
    assert!(error.contains("could not be written"), "{error}");
    assert!(
        error.contains("Nothing was changed: what had been written before was taken back."),
        "{error}"
    );
}

#[test]
fn mode_and_owner_stay() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = Workspace::with(&[("f", "x\n")]);
    std::fs::set_permissions(workspace.path("f"), PermissionsExt::from_mode(0o640)).unwrap();
    workspace.ok("apply_patch", json!({"patch": format!("diff --git a/f b/g\nrename from f\nrename to g\n--- a/f\n+++ b/g\n{CHANGE}")}));
    assert_eq!(std::fs::metadata(workspace.path("g")).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(workspace.everything(), vec![("g".to_owned(), Some(b"y\n".to_vec()))]);
}

#[test]
fn says_when_a_patch_was_applied_before_or_changes_nothing() {
    let workspace = Workspace::with(&[("f", "one\nzwei\nthree\n")]);
    let again = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n";
    let error = refused(&workspace, again);
    assert!(
        error.contains("is there already, at line 1: was the patch applied before?"),
        "{error}"
    );
    let nothing = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n zwei\n three\n";
    assert!(refused(&workspace, nothing).contains("the patch changes nothing in it"));
}

#[test]
fn a_read_only_file_stays() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = Workspace::with(&[("f", "x\n")]);
    std::fs::set_permissions(workspace.path("f"), PermissionsExt::from_mode(0o444)).unwrap();
    for patch in [
        format!("--- a/f\n+++ b/f\n{CHANGE}"),
        "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n".to_owned(),
        "diff --git a/f b/g\nrename from f\nrename to g\n".to_owned(),
    ] {
        assert!(refused(&workspace, &patch).contains("f is read-only"));
    }
    assert!(
        workspace
            .refused("edit", json!({"path": "f", "oldText": "x", "newText": "y"}))
            .contains("f is read-only")
    );
    assert!(
        workspace.refused("write", json!({"path": "f", "content": "y"})).contains("f is read-only")
    );
    workspace.ok("apply_patch", json!({"patch": "diff --git a/f b/g\ncopy from f\ncopy to g\n"}));
    assert_eq!(workspace.text("g"), "x\n");
}

#[test]
fn a_report_of_many_misfits_stays_within_its_limit() {
    let mut workspace = Workspace::new();
    workspace.context.max_result_chars = 5_000;
    let file: String = (0..5_000).map(|line| format!("let value_{line} = {line};\n")).collect();
    workspace.put("f", file);
    let hunks: String = (0..300)
        .map(|hunk| format!("@@ -{hunk},1 +{hunk},1 @@\n-let velue_{hunk} = 0;\n+x\n"))
        .collect();
    let error = refused(&workspace, &format!("--- a/f\n+++ b/f\n{hunks}"));
    assert!(error.chars().count() <= 5_000, "{}", error.len());
    assert!(error.contains("characters cut"));
}
