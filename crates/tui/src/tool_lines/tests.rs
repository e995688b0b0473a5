use std::time::Duration;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::EndedCall;
use myclaw_front::terminal::Style;

fn call<'a>(
    tool: &'a str,
    about: &'a str,
    text: &'a str,
    details: Option<&'a Value>,
) -> EndedCall<'a> {
    EndedCall { tool, about, took: Duration::from_millis(1_500), is_error: false, text, details }
}

fn shown(call: &EndedCall<'_>) -> Vec<String> {
    call.lines(60).shown.into_iter().map(|line| line.text).collect()
}

#[test]
fn an_edit_is_a_diff_with_line_numbers() {
    let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -9,3 +9,4 @@\n fn a() {\n-\told();\n+\tnew();\n+    more();\n }\n@@ -30 +31 @@\n-x\n+y\n";
    let details = json!({"path": "x.rs", "diff": diff});
    let lines = call("edit", "x.rs", "ok", Some(&details)).lines(60).shown;
    let lines: Vec<_> = lines.iter().map(|line| (line.style, line.text.as_str())).collect();
    assert_eq!(
        lines,
        [
            (Style::Dim, "✓ edit x.rs  +3 -2, 1.5 s"),
            (Style::Dim, "      9   fn a() {"),
            (Style::Removed, "     10 -     old();"),
            (Style::Added, "     10 +     new();"),
            (Style::Added, "     11 +     more();"),
            (Style::Dim, "     12   }"),
            (Style::Dim, "        ⋮"),
            (Style::Removed, "     30 - x"),
            (Style::Added, "     31 + y"),
        ]
    );
}

#[test]
fn a_patch_lists_its_files() {
    let diff = |sign: &str| format!("@@ -1 +1 @@\n{sign}x\n");
    let details = json!({"diffs": [
        {"path": "a.rs", "diff": diff("+")}, {"path": "b.png", "diff": null}, {"path": "c.rs", "diff": diff("-")},
    ]});
    assert_eq!(
        shown(&call("apply_patch", "", "ok", Some(&details))),
        [
            "✓ apply_patch  3 files, +1 -1, 1.5 s",
            "  a.rs  +1 -0",
            "      1 + x",
            "  b.png  +0 -0",
            "  c.rs  +0 -1",
            "      1 - x",
        ]
    );
}

#[test]
fn a_command_shows_the_ends_of_its_output_and_a_failed_one_more_of_it() {
    let output: String = (1..=40).map(|number| format!("line {number}\n")).collect();
    let details = json!({"exitCode": 0});
    assert_eq!(
        shown(&call("bash", "make", &output, Some(&details))),
        [
            "✓ bash make  exit 0, 1.5 s",
            "  line 1",
            "  line 2",
            "  … 35 more lines (Ctrl-O)",
            "  line 38",
            "  line 39",
            "  line 40",
        ]
    );
    let (output, details) = (format!("{output}[exit code 2]"), json!({"exitCode": 2}));
    let failed = EndedCall { is_error: true, ..call("bash", "make", &output, Some(&details)) };
    let lines = failed.lines(60);
    let first = &lines.shown[0];
    assert_eq!((first.style, first.text.as_str()), (Style::Bad, "✗ bash make  exit 2, 1.5 s"));
    assert_eq!(lines.shown.len(), 1 + 2 + 1 + 12);
    assert_eq!(lines.shown.last().map(|line| line.text.as_str()), Some("  line 40"));
    assert_eq!(lines.all.len(), 41);
    let details = json!({"exitCode": null, "timedOut": true});
    assert_eq!(
        shown(&call("bash", "x", "(no output)", Some(&details))),
        ["✓ bash x  timed out, 1.5 s"]
    );
}

#[test]
fn lines_that_were_not_kept_count_as_hidden() {
    let kept: String = (901..=1000).map(|number| format!("line {number}\n")).collect();
    let text = format!(
        "{kept}[output cut: the last 100 of 1000 lines are shown, 8893 bytes in all]\n[exit code 2]"
    );
    let details = json!({"exitCode": 2, "totalLines": 1000, "truncated": true});
    assert_eq!(
        shown(&call("bash", "make", &text, Some(&details)))[1..5],
        ["  line 901", "  line 902", "  … 996 more lines (Ctrl-O)", "  line 999"]
    );
}

#[test]
fn other_tools_say_nothing_unless_they_fail() {
    assert_eq!(shown(&call("read", "a.txt", "one\ntwo", None)), ["✓ read a.txt  1.5 s"]);
    let failed =
        EndedCall { is_error: true, ..call("read", "a.txt", "a.txt does not exist", None) };
    assert_eq!(shown(&failed), ["✗ read a.txt  1.5 s", "  a.txt does not exist"]);
}

#[test]
fn the_reason_of_a_failure_is_shown_to_its_end_and_within_bounds() {
    let reason = "oldText was not found in a.txt, which was not changed. Nothing in it is like it; read it again.";
    let failed = EndedCall { is_error: true, ..call("edit", "a.txt", reason, None) };
    assert_eq!(
        shown(&failed)[1..],
        [
            "  oldText was not found in a.txt, which was not changed.",
            "  Nothing in it is like it; read it again."
        ]
    );
    let reason = "word ".repeat(10_000);
    let failed = EndedCall { is_error: true, ..call("edit", "a.txt", &reason, None) };
    let rows = shown(&failed);
    assert!((4..8).contains(&rows.len()), "{rows:?}");
    assert!(rows.last().is_some_and(|row| row.ends_with('…')), "{rows:?}");
}

#[test]
fn no_line_is_wider_than_the_terminal_and_controls_are_shown() {
    let text = format!("{}\x1b[2J漢字漢字漢字漢字\n", "x".repeat(200));
    let about = format!("echo {}", "漢".repeat(100));
    for columns in 30..120 {
        for line in call("bash", &about, &text, None).lines(columns).shown {
            let line = line.text;
            assert!(line.width() <= columns && !line.contains('\x1b'), "{columns}: {line}");
        }
    }
}

#[test]
fn progress_is_shown_in_its_last_state() {
    let output = "Receiving:  1%\rReceiving: 50%\rReceiving: 100%\r\ndone\n";
    assert_eq!(
        shown(&call("bash", "git fetch", output, None))[1..],
        ["  Receiving: 100%", "  done"]
    );
}
