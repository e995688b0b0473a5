use std::fmt::Write as _;

use myclaw_engine::ToolError;
use serde_json::json;

use crate::harness::{Workspace, tool};

fn numbered(lines: usize) -> String {
    (1..=lines).fold(String::new(), |mut text, line| {
        writeln!(text, "line {line}").unwrap();
        text
    })
}

#[test]
fn shows_a_small_file_as_it_is() {
    let workspace = Workspace::with(&[("a.txt", "one\r\n\n  three\n")]);
    assert_eq!(workspace.ok("read", json!({"path": "a.txt"})), "one\n\n  three");
    assert!(tool("read").declaration().is_read_only());
    let details = workspace.call("read", json!({"path": "a.txt"})).unwrap().details;
    assert_eq!(
        details,
        Some(json!({
            "path": "a.txt", "startLine": 1, "endLine": 3, "totalLines": 3, "bytes": 14, "encoding": "UTF-8"
        }))
    );
}

#[test]
fn shows_ranges_with_both_ends_included() {
    let workspace = Workspace::with(&[("a.txt", &numbered(10))]);
    let read = |arguments| workspace.ok("read", arguments);
    assert_eq!(read(json!({"path": "a.txt", "startLine": 2, "endLine": 3})), "line 2\nline 3");
    assert_eq!(read(json!({"path": "a.txt", "startLine": 10})), "line 10");
    assert_eq!(
        read(json!({"path": "a.txt", "startLine": 9, "endLine": 12})),
        "line 9\nline 10\n[The file ends with line 10; there is no line 12]"
    );
    assert_eq!(read(json!({"file_path": "a.txt", "offset": "2", "limit": 2.0})), "line 2\nline 3");
    assert_eq!(read(json!({"path": "a.txt", "startLine": null, "endLine": 1})), "line 1");
}

#[test]
fn explains_numbers_that_make_no_range() {
    let workspace = Workspace::with(&[("a.txt", &numbered(10)), ("empty", ""), ("one", "x")]);
    assert_eq!(
        workspace.refused("read", json!({"path": "a.txt", "startLine": 11})),
        "startLine 11 is after the end: a.txt has 10 lines. Call again with a smaller startLine"
    );
    assert_eq!(
        workspace.refused("read", json!({"path": "one", "startLine": 5})),
        "startLine 5 is after the end: one has 1 line. Call again with a smaller startLine"
    );
    assert_eq!(
        workspace.refused("read", json!({"path": "a.txt", "startLine": 5, "endLine": 4})),
        "endLine 4 is before startLine 5. Lines count from 1 and both ends are included"
    );
    assert_eq!(workspace.ok("read", json!({"path": "empty"})), "empty is empty");
}

#[test]
fn stops_after_two_thousand_lines_and_says_how_to_go_on() {
    let workspace =
        Workspace::with(&[("exact.txt", &numbered(2_000)), ("long.txt", &numbered(4_500))]);
    assert!(workspace.ok("read", json!({"path": "exact.txt"})).ends_with("line 1999\nline 2000"));
    let first = workspace.ok("read", json!({"path": "long.txt"}));
    assert!(
        first.ends_with("line 2000\n[Lines 1-2000 of 4500. Go on with startLine: 2001]"),
        "{first}"
    );
    let last = workspace.ok("read", json!({"path": "long.txt", "startLine": 4_001}));
    assert!(last.starts_with("line 4001\n") && last.ends_with("\nline 4500"), "{last}");
}

#[test]
fn stops_at_the_limit_of_results() {
    let mut workspace = Workspace::new();
    let line = format!("{}\n", "x".repeat(99));
    workspace.put("wide.txt", line.repeat(1_000));
    let text = workspace.ok("read", json!({"path": "wide.txt"}));
    assert!(
        text.ends_with("\n[Lines 1-994 of 1000. Go on with startLine: 995]"),
        "{}",
        &text[text.len() - 80..]
    );
    workspace.context.max_result_chars = 2_000;
    let text = workspace.ok("read", json!({"path": "wide.txt", "startLine": 990}));
    assert_eq!(text, line.repeat(11).trim_end());
    let text = workspace.ok("read", json!({"path": "wide.txt"}));
    assert!(text.len() <= 2_000);
    assert!(text.ends_with("\n[Lines 1-14 of 1000. Go on with startLine: 15]"), "{text}");
}

#[test]
fn cuts_a_line_that_is_too_long_alone() {
    let mut workspace = Workspace::new();
    workspace.context.max_result_chars = 50_000;
    workspace.put("min.js", format!("{}\nsecond\n", "é".repeat(100_000)));
    let text = workspace.ok("read", json!({"path": "min.js"}));
    let (shown, note) = text.split_once('\n').unwrap();
    // Characters are counted, not bytes; some are kept free for the note.
    assert_eq!(shown.chars().count(), 49_399);
    assert!(shown.chars().all(|character| character == 'é'));
    assert_eq!(
        note,
        "[Line 1 of 2 is too long: 98.8 KB of it left out. The next line is startLine: 2. For the rest use bash, \
         such as sed -n '1p' FILE | cut -c 50000-60000]"
    );
    assert_eq!(workspace.ok("read", json!({"path": "min.js", "startLine": 2})), "second");
}

#[test]
fn reads_a_range_of_a_huge_file_without_loading_it() {
    let workspace = Workspace::with(&[("huge.log", &numbered(100_000))]);
    let file = std::fs::OpenOptions::new().write(true).open(workspace.path("huge.log")).unwrap();
    file.set_len(5 << 30).unwrap();
    let text =
        workspace.ok("read", json!({"path": "huge.log", "startLine": 50_000, "endLine": 50_001}));
    assert_eq!(text, "line 50000\nline 50001");
    let text = workspace.ok("read", json!({"path": "huge.log", "startLine": 90_000}));
    assert!(
        text.ends_with("\n[Lines 90000-91999; the file has 5.0 GB. Go on with startLine: 92000]"),
        "{text}"
    );
}

#[test]
fn decodes_what_is_text_in_other_encodings() {
    let workspace = Workspace::new();
    let utf16 = |text: &str, swap: bool| -> Vec<u8> {
        "\u{FEFF}"
            .encode_utf16()
            .chain(text.encode_utf16())
            .flat_map(|unit| if swap { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect()
    };
    workspace.put("le.txt", utf16("grüße\r\n🎉\r\n", false));
    workspace.put("be.txt", utf16("grüße\r\n🎉\r\n", true));
    workspace.put("bom.txt", "\u{FEFF}größe\n");
    workspace.put("latin.txt", b"caf\xE9\nna\xEFve \x80\n");
    assert_eq!(
        workspace.ok("read", json!({"path": "le.txt"})),
        "grüße\n🎉\n[The file is in UTF-16LE; edit and apply_patch keep that]"
    );
    assert_eq!(
        workspace.ok("read", json!({"path": "be.txt", "startLine": 2})),
        "🎉\n[The file is in UTF-16BE; edit and apply_patch keep that]"
    );
    assert_eq!(workspace.ok("read", json!({"path": "bom.txt"})), "größe");
    assert_eq!(
        workspace.ok("read", json!({"path": "latin.txt"})),
        "café\nnaïve €\n[Some bytes are not valid UTF-8; they are shown as Windows-1252]"
    );
    assert_eq!(
        workspace.ok("read", json!({"path": "latin.txt", "endLine": 1})),
        "café\n[Some bytes are not valid UTF-8; they are shown as Windows-1252]"
    );
}

#[test]
fn utf16_survives_every_boundary_between_chunks() {
    let workspace = Workspace::new();
    let text = "🎉ä\n".repeat(150_000);
    let bytes: Vec<u8> =
        "\u{FEFF}x".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    workspace.put("big.txt", bytes);
    let last = workspace.ok("read", json!({"path": "big.txt", "startLine": 149_999}));
    assert_eq!(last, "🎉ä\n🎉ä\n[The file is in UTF-16LE; edit and apply_patch keep that]");
}

#[test]
fn refuses_what_is_not_text_and_says_what_to_do() {
    let workspace = Workspace::new();
    workspace.put("a.pdf", "%PDF-1.7\nmore");
    workspace.put("a.bin", [&[1, 0, 2][..], &[9; 2000]].concat());
    workspace.put("a.db", b"SQLite format 3\0rest");
    workspace.put(
        "u16.txt",
        "hello world".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
    );
    assert_eq!(
        workspace.refused("read", json!({"path": "a.pdf"})),
        "cannot read a.pdf: it is a PDF document (13 bytes), not text. With bash you can look into it: pdftotext \
         a.pdf -"
    );
    assert_eq!(
        workspace.refused("read", json!({"path": "a.bin"})),
        "cannot read a.bin: it is a binary file (2.0 KB), not text. With bash you can look into it: file a.bin, or \
         xxd a.bin | head"
    );
    assert_eq!(
        workspace.refused("read", json!({"path": "a.db"})),
        "cannot read a.db: it is an SQLite database (20 bytes), not text. With bash you can look into it: sqlite3 \
         a.db .schema"
    );
    assert_eq!(
        workspace.refused("read", json!({"path": "u16.txt"})),
        "cannot read u16.txt: it is text in UTF-16 without a byte order mark (22 bytes), not text. With bash you can \
         look into it: iconv -f UTF-16LE -t UTF-8 u16.txt"
    );
}

#[test]
fn shows_text_with_a_late_nul() {
    let workspace = Workspace::new();
    workspace.put("log", format!("{}a\0b\n", "x\n".repeat(5_000)));
    assert_eq!(
        workspace.ok("read", json!({"path": "log", "startLine": 5_001})),
        "a␀b\n[NUL characters are shown as ␀]"
    );
}

#[test]
fn refuses_directories_special_and_missing_files() {
    let workspace = Workspace::with(&[("src/main.rs", ""), ("config.toml", "")]);
    let status = std::process::Command::new("mkfifo").arg(workspace.path("pipe")).status().unwrap();
    assert!(status.success());
    assert_eq!(
        workspace.refused("read", json!({"path": "src"})),
        "cannot read src: it is a directory. See what is in it with ls"
    );
    assert_eq!(
        workspace.refused("read", json!({"path": "pipe"})),
        "cannot read pipe: it is a special file (a pipe, socket or device), not a regular one"
    );
    assert!(workspace.refused("read", json!({"path": "/dev/zero"})).contains("special file"));
    let missing = workspace.refused("read", json!({"path": "confg.toml"}));
    assert!(missing.contains("does not exist") && missing.contains("config.toml"), "{missing}");
}

#[test]
fn follows_links_and_workspace_only() {
    let mut workspace = Workspace::with(&[("a.txt", "inside")]);
    std::fs::write(workspace.outside().join("b.txt"), "outside").unwrap();
    std::os::unix::fs::symlink(workspace.outside().join("b.txt"), workspace.path("link")).unwrap();
    assert_eq!(workspace.ok("read", json!({"path": "link"})), "outside");
    workspace.context.workspace_only = true;
    assert!(workspace.refused("read", json!({"path": "link"})).contains("outside the workspace"));
    assert_eq!(workspace.ok("read", json!({"path": "./a.txt"})), "inside");
}

#[test]
fn stops_when_the_run_is_aborted() {
    let workspace = Workspace::with(&[("a.txt", "text")]);
    workspace.cancel.cancel();
    assert_eq!(
        workspace.call("read", json!({"path": "a.txt"})),
        Err(ToolError::Aborted("aborted while a.txt was read".to_owned()))
    );
}

#[test]
fn names_a_missing_argument() {
    let workspace = Workspace::new();
    assert!(workspace.refused("read", json!({})).contains("path"));
}
