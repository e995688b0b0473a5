//! The forms that a patch may come in, and how it finds its place.

use serde_json::json;

use crate::harness::Workspace;

const FRUIT: &str = "apple\nbanana\ncherry\ndate\nelder\nfig\ngrape\n";

fn apply(workspace: &Workspace, patch: &str) -> String {
    workspace.ok("apply_patch", json!({"patch": patch}))
}

/// What a file `f` with `content` is after the patch.
fn patched(content: &str, patch: &str) -> String {
    let workspace = Workspace::with(&[("f", content)]);
    apply(&workspace, patch);
    workspace.text("f")
}

fn refused(content: &str, patch: &str) -> String {
    Workspace::with(&[("f", content)]).refused("apply_patch", json!({"patch": patch}))
}

#[test]
fn creates_changes_renames_and_deletes_in_one_go() {
    let workspace = Workspace::with(&[
        ("src/a.txt", FRUIT),
        ("old name.txt", "one\ntwo\nthree\n"),
        ("gone.txt", "x\ny\n"),
    ]);
    let patch = "\
diff --git a/src/a.txt b/src/a.txt
index 1234567..89abcde 100644
--- a/src/a.txt
+++ b/src/a.txt
@@ -1,3 +1,3 @@
 apple
-banana
+blueberry
 cherry
@@ -6,2 +6,3 @@ some heading
 fig
 grape
+honeydew
diff --git a/new/b.sh b/new/b.sh
new file mode 100755
--- /dev/null
+++ b/new/b.sh
@@ -0,0 +1,2 @@
+#!/bin/sh
+echo hi
diff --git a/old name.txt b/new name.txt
similarity index 66%
rename from old name.txt
rename to new name.txt
--- a/old name.txt
+++ b/new name.txt
@@ -1,3 +1,3 @@
 one
-two
+zwei
 three
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1,2 +0,0 @@
-x
-y
";
    assert_eq!(
        apply(&workspace, patch),
        "Applied to 4 files:\n- src/a.txt: updated (+2 -1)\n- new/b.sh: created (+2)\n- old name.txt: renamed to new \
         name.txt (+1 -1)\n- gone.txt: deleted"
    );
    assert_eq!(
        workspace.everything(),
        vec![
            ("new".to_owned(), None),
            ("new name.txt".to_owned(), Some(b"one\nzwei\nthree\n".to_vec())),
            ("new/b.sh".to_owned(), Some(b"#!/bin/sh\necho hi\n".to_vec())),
            ("src".to_owned(), None),
            (
                "src/a.txt".to_owned(),
                Some(b"apple\nblueberry\ncherry\ndate\nelder\nfig\ngrape\nhoneydew\n".to_vec())
            ),
        ]
    );
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(workspace.path("new/b.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o100, 0o100);
}

#[test]
fn reads_the_begin_patch_form() {
    let workspace = Workspace::with(&[
        (
            "f.py",
            "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n",
        ),
        ("gone", "x"),
        ("m", "1\n2\n"),
    ]);
    let patch = "\
*** Begin Patch
*** Update File: f.py
@@ class B:
     def f(self):
-        return 1
+        return 2
*** Add File: docs/new.md
+# Title
+
+text
*** Delete File: gone
*** Update File: m
*** Move to: moved/m
@@
 1
-2
+zwei
*** End of File
*** End Patch
";
    assert_eq!(
        apply(&workspace, patch),
        "Applied to 4 files:\n- f.py: updated (+1 -1)\n- docs/new.md: created (+3)\n- gone: deleted\n- m: renamed to \
         moved/m (+1 -1)"
    );
    assert_eq!(
        workspace.text("f.py"),
        "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 2\n"
    );
    assert_eq!(workspace.text("docs/new.md"), "# Title\n\ntext\n");
    assert_eq!(workspace.text("moved/m"), "1\nzwei\n");
    assert!(!workspace.path("gone").exists() && !workspace.path("m").exists());
}

#[test]
fn takes_a_patch_out_of_prose_and_fences() {
    let patch = "Here is the patch:\n\n```diff\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n apple\n-banana\n+blueberry\n```\n\n- It \
                 changes a fruit.\n";
    assert_eq!(patched(FRUIT, patch), FRUIT.replace("banana", "blueberry"));
}

#[test]
fn counts_again_where_counts_are_wrong() {
    let body = " apple\n-banana\n+blueberry\n cherry\n";
    for header in [
        "@@ -1,9 +1,9 @@",
        "@@ -1,1 +1,1 @@",
        "@@ -1 +1 @@",
        "@@ -1,3 +1,2 @@ x",
        "@@ -1,3 @@",
        "@@-1,3 +1,3@@",
    ] {
        let patch =
            format!("--- a/f\n+++ b/f\n{header}\n{body}@@ -5,2 +5,2 @@\n elder\n-fig\n+fennel\n");
        assert_eq!(
            patched(FRUIT, &patch),
            FRUIT.replace("banana", "blueberry").replace("fig", "fennel"),
            "{header}"
        );
    }
}

#[test]
fn too_large_counts_do_not_swallow_the_next_file() {
    let workspace = Workspace::with(&[("f", FRUIT), ("g", FRUIT)]);
    let patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n apple\n-banana\n+blueberry\n--- a/g\n+++ b/g\n@@ -1,2 +1,2 @@\n apple\n-banana\n+boysenberry\n";
    apply(&workspace, patch);
    assert_eq!(workspace.text("f"), FRUIT.replace("banana", "blueberry"));
    assert_eq!(workspace.text("g"), FRUIT.replace("banana", "boysenberry"));
}

#[test]
fn lines_that_look_like_names_belong_to_a_hunk_that_counts_them() {
    let old = "-- comment\nselect 1\n";
    let patch = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- comment\n+++ plus\n select 1\n";
    assert_eq!(patched(old, patch), "++ plus\nselect 1\n");
}

#[test]
fn finds_its_place_without_line_numbers() {
    for header in ["@@", "@@ @@", "@@ ... @@", "@@ cherry @@"] {
        let patch = format!("--- a/f\n+++ b/f\n{header}\n date\n-elder\n+endive\n fig\n");
        assert_eq!(patched(FRUIT, &patch), FRUIT.replace("elder", "endive"), "{header}");
    }
}

#[test]
fn finds_its_place_from_wrong_line_numbers() {
    let workspace = Workspace::with(&[("f", FRUIT)]);
    let patch = "--- a/f\n+++ b/f\n@@ -90,3 +90,3 @@\n date\n-elder\n+endive\n fig\n";
    assert_eq!(
        apply(&workspace, patch),
        "Applied to 1 file:\n- f: updated (+1 -1)\n  hunk 1 applied at line 4 instead of 90"
    );
    assert_eq!(workspace.text("f"), FRUIT.replace("elder", "endive"));
}

#[test]
fn of_several_places_takes_the_clearly_nearer_one() {
    let file = "start\nx\nend\n".repeat(10);
    let patch = |line: usize| {
        format!("--- a/f\n+++ b/f\n@@ -{line},3 +{line},3 @@\n start\n-x\n+y\n end\n")
    };
    let expected = |index: usize| {
        let mut blocks = ["start\nx\nend\n"; 10];
        blocks[index] = "start\ny\nend\n";
        blocks.concat()
    };
    assert_eq!(patched(&file, &patch(4)), expected(1));
    assert_eq!(patched(&file, &patch(5)), expected(1));
    assert_eq!(
        patched("a\nx\nb\nb\nx\nb\n", "--- f\n+++ f\n@@ -1,2 +1,2 @@\n b\n-x\n+y\n"),
        "a\nx\nb\nb\ny\nb\n"
    );
    let error = refused("x\na\nb\nc\nx\n", "--- a/f\n+++ b/f\n@@ -3 +3 @@\n-x\n+y\n");
    assert!(error.contains("it fits in 2 places (lines 1, 5). Add context lines"), "{error}");
    let error = refused(&file, "--- a/f\n+++ b/f\n@@\n start\n-x\n+y\n end\n");
    assert!(
        error.contains("it fits in 10 places (lines 1, 4, 7, 10, 13, 16, 19, 22, ...)"),
        "{error}"
    );
}

#[test]
fn a_hunk_moves_as_far_as_the_one_before_it() {
    let block = "start\nx\nend\n";
    let file = format!("{block}head\n{}", block.repeat(4));
    let patch =
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-head\n+HEAD\n@@ -5,3 +5,3 @@\n start\n-x\n+y\n end\n";
    let expected = format!("{block}HEAD\n{block}start\ny\nend\n{}", block.repeat(2));
    assert_eq!(patched(&file, patch), expected);
}

#[test]
fn a_hunk_is_searched_behind_the_one_before_it() {
    let file = "x\nmiddle\nx\n";
    let patch = "--- a/f\n+++ b/f\n@@\n-middle\n+MIDDLE\n@@\n-x\n+y\n";
    assert_eq!(patched(file, patch), "x\nMIDDLE\ny\n");
    let out_of_order = "--- a/f\n+++ b/f\n@@\n-cherry\n+C\n@@\n-apple\n+A\n";
    assert_eq!(patched(FRUIT, out_of_order), FRUIT.replace("cherry", "C").replace("apple", "A"));
}

#[test]
fn hunks_may_share_context_but_not_changes() {
    let patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n apple\n-banana\n+B\n cherry\n@@ -3,3 +3,3 @@\n cherry\n-date\n+D\n elder\n";
    assert_eq!(patched(FRUIT, patch), FRUIT.replace("banana", "B").replace("date", "D"));
    let twice = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n apple\n-banana\n+B\n@@ -2,2 +2,2 @@\n-banana\n+C\n cherry\n";
    assert!(refused(FRUIT, twice).contains("hunk 2 (line 7 of the patch)"));
}

#[test]
fn whitespace_may_differ() {
    let file = "fn a() {\n\tif x  {\n\t\ty();\n\t}\n}\n";
    let patch =
        "--- a/f\n+++ b/f\n@@ -1,4 +1,5 @@\n fn a() {\n if x {\n         y();\n+        z();\n }\n";
    let workspace = Workspace::with(&[("f", file)]);
    assert_eq!(
        apply(&workspace, patch),
        "Applied to 1 file:\n- f: updated (+1 -0)\n  hunk 1 applied although whitespace differed"
    );
    assert_eq!(workspace.text("f"), "fn a() {\n\tif x  {\n\t\ty();\n        z();\n\t}\n}\n");
    // Where indentation is off in one way, new lines follow it.
    let patch =
        "--- a/f\n+++ b/f\n@@ -2,3 +2,4 @@\n     if x  {\n         y();\n+        z();\n     }\n";
    assert_eq!(patched(file, patch), "fn a() {\n\tif x  {\n\t\ty();\n\t\tz();\n\t}\n}\n");
}

#[test]
fn context_may_have_lost_its_first_space() {
    let file = "a {\n    b\n\n    c\n}\n";
    let patch = "--- a/f\n+++ b/f\n@@ -1,5 +1,5 @@\na {\n     b\n\n-    c\n+    d\n}\n";
    assert_eq!(patched(file, patch), "a {\n    b\n\n    d\n}\n");
    let patch = "--- a/f\n+++ b/f\n@@ -1,5 +1,6 @@\n    b\n\n+    new\n    c\n";
    assert_eq!(patched(file, patch), "a {\n    b\n\n    new\n    c\n}\n");
}

#[test]
fn line_endings_are_those_of_the_file() {
    let crlf = FRUIT.replace('\n', "\r\n");
    let patch =
        "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n apple\n-banana\n+blueberry\n+blackberry\n cherry\n";
    let expected = FRUIT.replace("banana", "blueberry\nblackberry");
    assert_eq!(patched(&crlf, patch), expected.replace('\n', "\r\n"));
    assert_eq!(patched(FRUIT, &patch.replace('\n', "\r\n")), expected);
    assert_eq!(patched(&crlf, &patch.replace('\n', "\r\n")), expected.replace('\n', "\r\n"));
    // As git writes it: the file's own returns on its lines only.
    let git = "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n apple\r\n-banana\r\n+blueberry\r\n+blackberry\r\n cherry\r\n";
    assert_eq!(patched(&crlf, git), expected.replace('\n', "\r\n"));
    let converts = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-apple\r\n+apple\n banana\r\n";
    assert_eq!(patched(&crlf, converts), crlf.replacen("\r\n", "\n", 1));
}

#[test]
fn the_newline_at_the_end_is_as_the_patch_says() {
    let remove = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n";
    let add = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n";
    let both = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n";
    let neither = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
    assert_eq!(patched("a\nb\n", remove), "a\nc");
    assert_eq!(patched("a\nb", add), "a\nc\n");
    assert_eq!(patched("a\nb", both), "a\nc");
    assert_eq!(patched("a\nb\n", both), "a\nc\n");
    assert_eq!(patched("a\nb", neither), "a\nc");
    assert_eq!(patched("a\nb\n", neither), "a\nc\n");
    let append = "--- a/f\n+++ b/f\n@@ -2 +2,2 @@\n b\n+c\n";
    assert_eq!(patched("a\nb", append), "a\nb\nc");
}

#[test]
fn other_encodings_stay() {
    let workspace = Workspace::new();
    workspace.put("f", b"caf\xE9\r\nna\xEFve\r\n");
    workspace.put("g", "\u{FEFF}a\nb\n");
    let patch = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n café\n-naïve\n+naïf\n--- a/g\n+++ b/g\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n";
    apply(&workspace, patch);
    assert_eq!(workspace.bytes("f"), b"caf\xE9\r\nna\xEFf\r\n");
    assert_eq!(workspace.text("g"), "\u{FEFF}c\nb\n");
    let error = workspace
        .refused("apply_patch", json!({"patch": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-café\n+日本\n"}));
    assert!(error.contains("old one-byte encoding"), "{error}");
}

#[test]
fn names_come_in_many_shapes() {
    let change = "@@ -1 +1 @@\n-x\n+y\n";
    let cases = [
        ("f.txt", "--- f.txt\n+++ f.txt\n"),
        (
            "f.txt",
            "--- a/f.txt\t2024-01-01 10:00:00.000 +0000\n+++ b/f.txt\t2024-01-01 10:00:01.000 +0000\n",
        ),
        (
            "f.txt",
            "--- f.txt 2024-01-01 10:00:00.000 +0000\n+++ f.txt 2024-01-01 10:00:01.000 +0000\n",
        ),
        ("f.txt", "--- i/f.txt\n+++ w/f.txt\n"),
        ("f.txt", "--- ./f.txt\n+++ ./f.txt\n"),
        ("f.txt", "--- f.txt.orig\n+++ f.txt\n"),
        ("f.txt", "--- f.txt\n"),
        ("f.txt", "+++ b/f.txt\n"),
        (
            "f.txt",
            "Index: f.txt\n===================================================================\n--- f.txt\t(revision 1)\n+++ f.txt\t(working copy)\n",
        ),
        ("a/f.txt", "--- a/f.txt\n+++ a/f.txt\n"),
        ("a/f.txt", "--- a/a/f.txt\n+++ b/a/f.txt\n"),
        ("with space.txt", "--- a/with space.txt\n+++ b/with space.txt\n"),
        ("tab\tü.txt", "--- \"a/tab\\t\\303\\274.txt\"\n+++ \"b/tab\\t\\303\\274.txt\"\n"),
    ];
    for (name, header) in cases {
        let workspace = Workspace::with(&[(name, "x\n")]);
        apply(&workspace, &format!("{header}{change}"));
        assert_eq!(workspace.text(name), "y\n", "{header}");
    }
    let workspace = Workspace::with(&[("f.txt", "x\n")]);
    let absolute = workspace.path("f.txt").display().to_string();
    apply(&workspace, &format!("--- {absolute}\n+++ {absolute}\n{change}"));
    assert_eq!(workspace.text("f.txt"), "y\n");
}

#[test]
fn sections_without_hunks() {
    let workspace = Workspace::with(&[
        ("empty", ""),
        ("run.sh", "x\n"),
        ("from", "data\0\u{1}"),
        ("a b", "1\n"),
    ]);
    let patch = "\
diff --git a/made b/made
new file mode 100644
index 0000000..e69de29
diff --git a/empty b/empty
deleted file mode 100644
index e69de29..0000000
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git a/from b/to
similarity index 100%
rename from from
rename to to
diff --git a/a b b/c d
similarity index 100%
copy from a b
copy to c d
";
    assert_eq!(
        apply(&workspace, patch),
        "Applied to 5 files:\n- made: created (+0)\n- empty: deleted\n- run.sh: updated (mode)\n- from: renamed to \
         to\n- a b: copied to c d"
    );
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(
        std::fs::metadata(workspace.path("run.sh")).unwrap().permissions().mode() & 0o100,
        0o100
    );
    assert_eq!(workspace.bytes("to"), b"data\0\x01");
    assert_eq!(workspace.text("made"), "");
    assert_eq!(workspace.text("c d"), "1\n");
    assert_eq!(workspace.text("a b"), "1\n");
}

#[test]
fn later_sections_see_what_earlier_ones_did() {
    let workspace = Workspace::with(&[("f", FRUIT)]);
    let patch = "\
--- a/f
+++ b/f
@@ -2 +2 @@
-banana
+blueberry
--- a/f
+++ b/f
@@ -2 +2 @@
-blueberry
+boysenberry
--- a/f
+++ b/g
@@ -1 +1 @@
-apple
+apricot
--- /dev/null
+++ b/f
@@ -0,0 +1 @@
+new
";
    assert_eq!(
        apply(&workspace, patch),
        "Applied to 4 files:\n- f: updated (+1 -1)\n- f: updated (+1 -1)\n- f: renamed to g (+1 -1)\n- f: created (+1)"
    );
    assert_eq!(
        workspace.text("g"),
        FRUIT.replace("apple", "apricot").replace("banana", "boysenberry")
    );
    assert_eq!(workspace.text("f"), "new\n");
}

#[test]
fn details_hold_a_diff_for_each_file() {
    let workspace = Workspace::with(&[("f", "x\n")]);
    let output =
        workspace.call("apply_patch", json!({"patch": "--- a/f\n+++ b/f\n@@\n-x\n+y\n"})).unwrap();
    assert_eq!(
        output.details,
        Some(json!({
            "filesPatched": 1,
            "results": [{"path": "f", "result": "updated (+1 -1)", "remarks": []}],
            "diffs": [{"path": "f", "diff": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n"}]
        }))
    );
}

#[test]
fn a_file_that_is_not_there_can_be_made_by_added_lines() {
    let workspace = Workspace::new();
    apply(&workspace, "--- a/new\n+++ b/new\n@@ -0,0 +1,2 @@\n+one\n+two\n");
    assert_eq!(workspace.text("new"), "one\ntwo\n");
    apply(&workspace, "--- a/new\n+++ b/new\n@@ -2,0 +3 @@\n+three\n");
    assert_eq!(workspace.text("new"), "one\ntwo\nthree\n");
}

#[test]
fn utf16_files_stay_utf16() {
    let bytes =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let workspace = Workspace::new();
    workspace.put("f", bytes("\u{FEFF}a🎉\r\nb\r\n"));
    apply(&workspace, "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a🎉\n+ü\n b\n");
    assert_eq!(workspace.bytes("f"), bytes("\u{FEFF}a🎉\r\nü\r\nb\r\n"));
}
