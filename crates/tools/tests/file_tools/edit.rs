use std::os::unix::fs::PermissionsExt;

use myclaw_engine::ToolError;
use serde_json::{Value, json};

use crate::harness::Workspace;

fn arguments(old: &str, new: &str) -> Value {
    json!({"path": "f", "oldText": old, "newText": new})
}

/// What a file with `content` is after the edit.
fn edited(content: impl AsRef<[u8]>, old: &str, new: &str) -> Vec<u8> {
    let workspace = Workspace::new();
    workspace.put("f", content);
    workspace.ok("edit", arguments(old, new));
    workspace.bytes("f")
}

fn edited_text(content: &str, old: &str, new: &str) -> String {
    String::from_utf8(edited(content, old, new)).unwrap()
}

fn refused(content: impl AsRef<[u8]>, old: &str, new: &str) -> String {
    let workspace = Workspace::new();
    workspace.put("f", content);
    workspace.refused("edit", arguments(old, new))
}

#[test]
fn replaces_the_one_place() {
    let workspace = Workspace::with(&[("f", "fn a() {}\nfn b() {}\n")]);
    std::fs::set_permissions(workspace.path("f"), PermissionsExt::from_mode(0o755)).unwrap();
    let output = workspace.call("edit", arguments("b()", "c(x: u8)")).unwrap();
    assert_eq!(workspace.text("f"), "fn a() {}\nfn c(x: u8) {}\n");
    assert_eq!(std::fs::metadata(workspace.path("f")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(
        output.details,
        Some(json!({
            "path": "f", "replacements": 1,
            "diff": "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n fn a() {}\n-fn b() {}\n+fn c(x: u8) {}\n"
        }))
    );
    assert_eq!(
        workspace.ok("edit", json!({"file_path": "f", "old_string": "a()", "new_string": "z()"})),
        "Edited f: 1 place replaced (line 1)"
    );
}

#[test]
fn wants_one_place_unless_all_are_meant() {
    let workspace = Workspace::with(&[("f", "x = 1\ny = 2\nx = 1\n")]);
    assert_eq!(
        workspace.refused("edit", arguments("x = 1", "x = 3")),
        "oldText occurs 2 times in f (lines 1, 3), which was not changed. Add lines before or after it until only one \
         place fits, or set all to true to replace every one"
    );
    let all = json!({"path": "f", "oldText": "x = 1", "newText": "x = 3", "all": "true"});
    assert_eq!(workspace.ok("edit", all), "Edited f: 2 places replaced (lines 1, 3)");
    assert_eq!(workspace.text("f"), "x = 3\ny = 2\nx = 3\n");
}

#[test]
fn overlapping_places_are_not_one() {
    assert!(refused("aaa", "aa", "b").contains("2 times"));
    // A model does not see that their lines end differently.
    assert!(refused("a\r\nb\na\nb", "a\nb", "x").contains("2 times"));
    assert_eq!(edited_text("a\r\nb\na\nb", "a\r\nb", "x\r\nb"), "x\r\nb\na\nb");
    let workspace = Workspace::with(&[("f", "aaaaa")]);
    workspace.ok("edit", json!({"path": "f", "oldText": "aa", "newText": "b", "all": true}));
    assert_eq!(workspace.text("f"), "bba");
}

#[test]
fn keeps_the_line_endings_of_the_place() {
    assert_eq!(edited_text("a\r\nb\r\nc\r\n", "a\nb", "a\nx\ny"), "a\r\nx\r\ny\r\nc\r\n");
    assert_eq!(edited_text("a\nb\nc\n", "a\r\nb", "x\r\ny"), "x\ny\nc\n");
    assert_eq!(edited_text("a\r\nb\r\nc\nd\n", "c", "c\ne"), "a\r\nb\r\nc\ne\nd\n");
    assert_eq!(edited_text("a\r\nb\r\nc\nd\n", "b", "b\ne"), "a\r\nb\r\ne\r\nc\nd\n");
    assert_eq!(edited_text("a\r\nb", "b", "b\nc"), "a\r\nb\r\nc");
    assert_eq!(edited_text("a\r\nb\r\n", "\nb", "\nx"), "a\r\nx\r\n");
    assert_eq!(edited_text("a\r\nb\r\n", "a\n", ""), "b\r\n");
    // Mixed endings inside the region stay where its lines stay.
    assert_eq!(edited_text("a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nB\nc\nd"), "a\r\nB\nc\r\nd\n");
    assert!(refused("a\r\nb\r\n", "a\r\nb", "a\nb").contains("edit keeps line endings"));
}

#[test]
fn keeps_a_missing_final_newline() {
    assert_eq!(edited_text("a\nb", "b", "c"), "a\nc");
    assert_eq!(edited_text("a\nb", "b\n", "c\n"), "a\nc");
    assert_eq!(edited_text("a\nb", "a\nb\n", "x\ny\nz\n"), "x\ny\nz");
    assert_eq!(edited_text("a\nb\n", "b\n", "c\n"), "a\nc\n");
}

#[test]
fn finds_lines_despite_whitespace_at_their_ends() {
    let workspace = Workspace::with(&[("f", "if x:  \n    y()\t\n    z()  \n")]);
    assert_eq!(
        workspace.ok("edit", arguments("if x:\n    y()\n    z()\n", "if x:\n    w()\n    z()\n")),
        "Edited f: 1 place replaced (line 1). oldText differed from the file in whitespace at line ends"
    );
    // Lines that did not change keep their bytes.
    assert_eq!(workspace.text("f"), "if x:  \n    w()\n    z()  \n");
    assert_eq!(edited_text("a\nb\nc\n", "b  \nc  ", "x\nc  "), "a\nx\nc\n");
}

#[test]
fn finds_lines_despite_typographic_characters() {
    assert_eq!(
        edited_text(
            "say “hi” — now\nit’s\u{A0}fine\n",
            "say \"hi\" - now\nit's fine",
            "say \"hi\" - now\nit's good"
        ),
        "say “hi” — now\nit’s\u{A0}good\n"
    );
    assert_eq!(edited_text("a \"b\"\n", "a “b”", "c"), "c\n");
}

#[test]
fn the_file_keeps_its_characters_where_old_and_new_agree() {
    for (file, old, new, expected) in [
        // The whole line, a part of it, several lines, and an inserted line before.
        (
            "She said, “Hello.”\n",
            "She said, \"Hello.\"",
            "She said, \"Hi there.\"",
            "She said, “Hi there.”\n",
        ),
        ("x — “Hello.” — y\n", "\"Hello.\" -", "\"Bye.\" -", "x — “Bye.” — y\n"),
        ("“a”\r\n‘b’\r\nend\r\n", "\"a\"\n'b'", "\"a1\"\n'b2'", "“a1”\r\n‘b2’\r\nend\r\n"),
        ("“a” is\n", "\"a\" is", "# new\n\"a\" was", "# new\n“a” was\n"),
        ("  “a” is\n", "\"a\" is\n", "\"a\" was\n", "  “a” was\n"),
        ("wait… 10\u{A0}km\n", "wait... 10 km", "wait... 12 km", "wait… 12\u{A0}km\n"),
        (
            "cafe\u{301} ouvert\n",
            "caf\u{e9} ouvert",
            "caf\u{e9} ferm\u{e9}",
            "cafe\u{301} ferm\u{e9}\n",
        ),
        ("caf\u{e9} ouvert\n", "cafe\u{301} ouvert", "cafe\u{301} fermé", "caf\u{e9} fermé\n"),
        ("zero\u{200B}width old\n", "zerowidth old", "zerowidth new", "zero\u{200B}width new\n"),
    ] {
        assert_eq!(edited_text(file, old, new), expected, "{file}");
    }
}

#[test]
fn a_new_quotation_never_gets_one_quote_of_the_file() {
    for (file, old, new, expected) in [
        (
            "    print(“hi”)\n    return “a”…\n",
            "print(\"hi\")\nreturn \"a\"...",
            "print(\"ho\")\nx = \"n\"\nreturn \"a\"...",
            "    print(“ho”)\n    x = \"n\"\n    return “a”…\n",
        ),
        (
            "Use “foo” now.\n",
            "Use \"foo\" now.",
            "Use \"bar\" and \"foo\" now.",
            "Use \"bar\" and “foo” now.\n",
        ),
        ("“Hello\nworld”\n", "\"Hello\nworld\"", "\"Hello\nbig\nthere\"", "“Hello\nbig\nthere”\n"),
        ("caf\u{e9} two\n", "caf\u{e9} two", "cafe\u{301} three", "caf\u{e9} three\n"),
        (
            "caf\u{e9}\ntwo\n",
            "caf\u{e9}\ntwo",
            "new\ncafe\u{301}\nthree",
            "new\ncaf\u{e9}\nthree\n",
        ),
    ] {
        assert_eq!(edited_text(file, old, new), expected, "{file}");
    }
    let patch = "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n-She said, \"Hello.\"\n+She said, \"Hi there.\"\n+And \"more\".\n";
    let workspace = Workspace::with(&[("f", "She said, “Hello.”\n")]);
    workspace.ok("apply_patch", json!({"patch": patch}));
    assert_eq!(workspace.text("f"), "She said, “Hi there.”\nAnd \"more\".\n");
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    assert_eq!(
        edited(utf16("\u{FEFF}caf\u{e9} two\n"), "caf\u{e9} two", "cafe\u{301} three"),
        utf16("\u{FEFF}caf\u{e9} three\n")
    );
}

#[test]
fn composed_and_decomposed_are_the_same_text_also_when_they_are_counted() {
    let file = "caf\u{e9} 1\ncafe\u{301} 2\n";
    let workspace = Workspace::with(&[("f", file)]);
    let error = workspace.refused("edit", arguments("caf\u{e9}", "bar"));
    assert!(error.contains("occurs 2 times"), "{error}");
    let mut all = arguments("caf\u{e9}", "bar");
    all["all"] = json!(true);
    workspace.ok("edit", all);
    assert_eq!(workspace.text("f"), "bar 1\nbar 2\n");
    // Half of a character is not found: "cafe" is another word.
    let workspace = Workspace::with(&[("f", "cafe\u{301}\n")]);
    workspace.refused("edit", arguments("cafe", "coffee"));
    assert_eq!(workspace.text("f"), "cafe\u{301}\n");
}

#[test]
fn a_difference_that_nobody_sees_is_named() {
    let workspace = Workspace::with(&[("f", "let p\u{430}th = 1;\nother\n")]);
    let error = workspace.refused("edit", arguments("let path = 1;", "let path = 2;"));
    assert!(
        error.contains("line 1: the file has \u{430} (U+0430) where you wrote a (U+0061)."),
        "{error}"
    );
}

#[test]
fn finds_lines_despite_indentation_and_indents_what_is_new() {
    let file = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        pass\n";
    assert_eq!(
        edited_text(
            file,
            "def f(self):\n    return 1\n",
            "def f(self):\n    x = 2\n\n    return x\n"
        ),
        "class A:\n    def f(self):\n        x = 2\n\n        return x\n\n    def g(self):\n        pass\n"
    );
    assert_eq!(
        edited_text(
            "\tif a {\n\t\tb();\n\t}\n",
            "    if a {\n        b();\n    }",
            "    if a {\n        c();\n    }"
        ),
        "\tif a {\n\t\tc();\n\t}\n"
    );
    assert_eq!(edited_text("a\n  b\n", "  a\n    b\n", "  a\n    c\n"), "a\n  c\n");
    // Whole lines stay lines, though newText has no newline at its end.
    assert_eq!(edited_text("  a\n  b\nc\n", "a\nb\n", "x"), "  x\nc\n");
    assert_eq!(edited_text("  a\n  b\nc\n", "a\nb\n", ""), "c\n");
    // Not off by the same on each line: another structure.
    assert!(refused("if a:\n  b\nc\n", "if a:\n  b\n  c", "x").contains("was not found"));
}

#[test]
fn finds_lines_that_were_copied_with_their_numbers() {
    let file = "one\ntwo\nthree\nfour\n";
    for old in [
        "2: two\n3: three",
        "  2 | two\n  3 | three",
        "2\ttwo\n3\tthree\n",
        "     2→two\n     3→three",
    ] {
        let workspace = Workspace::with(&[("f", file)]);
        let text = workspace.ok("edit", arguments(old, "2: zwei\n3: drei"));
        assert!(text.contains("Line numbers in front of the lines were left out"), "{text}");
        assert_eq!(workspace.text("f"), "one\nzwei\ndrei\nfour\n", "{old:?}");
    }
    assert_eq!(edited_text(file, "2: two\n3: three", "zwei"), "one\nzwei\nfour\n");
    assert!(refused(file, "2: two\n3: three", "2: zwei\ndrei").contains("without line numbers"));
    // Numbers that are in the file are data.
    assert_eq!(edited_text("1: a\n2: b\n", "2: b", "2: c"), "1: a\n2: c\n");
}

#[test]
fn shows_the_closest_place_where_nothing_fits() {
    let file: String =
        (1..=40).map(|line| format!("let value_{line} = compute({line});\n")).collect();
    assert_eq!(
        refused(&file, "let value_17 = compute(16);\nlet value_18 = compute(18);", "x"),
        "oldText was not found in f, which was not changed.\nThe closest place is line 17:\n    17 | let value_17 = \
         compute(17);\n    18 | let value_18 = compute(18);\nCopy the lines to replace from there into oldText and \
         call again."
    );
    assert_eq!(
        refused(&file, "§§§§§§§§§§", "x"),
        "oldText was not found in f, which was not changed. Nothing in it is like oldText: read the file, then copy \
         the lines to replace from it."
    );
    assert!(refused("", "a", "b").contains("The file is empty; use write"));
    let again = refused("fn renamed_function() {}\n", "fn old_function()", "fn renamed_function()");
    assert!(
        again.contains("newText is already there, at line 1: was this edit made before?"),
        "{again}"
    );
}

#[test]
fn an_error_stays_small_in_a_file_of_long_lines() {
    let file = format!("{}\n", "abcdefgh ".repeat(50_000)).repeat(20);
    let error = refused(&file, &format!("{}!\n", "abcdefgh ".repeat(50_000)).repeat(20), "x");
    assert!(error.len() < 4_000, "{}", error.len());
}

#[test]
fn refuses_edits_that_change_nothing() {
    assert!(refused("a", "a", "a").contains("are the same"));
    assert!(refused("a", "", "b").contains("oldText is empty"));
}

#[test]
fn old_encodings_are_edited_in_their_bytes() {
    assert_eq!(edited(b"caf\xE9 \x80\nna\xEFve\n", "café €", "thé €"), b"th\xE9 \x80\nna\xEFve\n");
    assert_eq!(edited(b"caf\xE9\n", "café", "“ok”"), b"\x93ok\x94\n");
    let error = refused(b"caf\xE9\n", "café", "日本");
    assert!(error.contains("has no '日'") && error.contains("iconv"), "{error}");
    // A stray byte in a UTF-8 file does not make it an old one.
    assert_eq!(
        edited(b"\xC3\xA4\xC3\xB6\xC3\xBC \xFF x\n", "x", "\u{65E5}"),
        b"\xC3\xA4\xC3\xB6\xC3\xBC \xFF \xE6\x97\xA5\n"
    );
}

#[test]
fn byte_order_marks_and_utf16_stay() {
    assert_eq!(edited_text("\u{FEFF}a\nb\n", "a", "c"), "\u{FEFF}c\nb\n");
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    assert_eq!(
        edited(utf16("\u{FEFF}a🎉\r\nb\r\n"), "🎉\nb", "🎉\nü\nb"),
        utf16("\u{FEFF}a🎉\r\nü\r\nb\r\n")
    );
    // Half a surrogate pair and an odd byte at the end are not text, but stay as well.
    let odd = |text: &str| [utf16("\u{FEFF}"), vec![0xD8, 0x3C], utf16(text), vec![7]].concat();
    assert_eq!(edited(odd("abc"), "b", "x"), odd("axc"));
}

#[test]
fn refuses_what_is_no_text_file() {
    let workspace = Workspace::new();
    workspace.put("bin", b"a\0b");
    workspace.put("dir/x", "");
    let refused = |path: &str| {
        workspace.refused("edit", json!({"path": path, "oldText": "a", "newText": "b"}))
    };
    assert!(refused("bin").contains("it is a binary file (3 bytes), not text"));
    assert!(refused("dir").contains("it is a directory"));
    assert!(refused("/dev/null").contains("special file"));
    assert!(refused("missing").contains("does not exist"));
}

#[test]
fn does_nothing_in_an_aborted_run() {
    let workspace = Workspace::with(&[("f", "a")]);
    workspace.cancel.cancel();
    assert_eq!(
        workspace.call("edit", arguments("a", "b")),
        Err(ToolError::Aborted("aborted before f was changed".to_owned()))
    );
    assert_eq!(workspace.text("f"), "a");
}
