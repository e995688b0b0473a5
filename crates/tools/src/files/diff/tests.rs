use super::*;

#[test]
fn shows_changes_with_context() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let new = "1\n2\n3\n4\nfive\r\n6\n7\n8\n9";
    assert_eq!(
        unified_diff("f", old, new, diff_deadline()).unwrap(),
        "--- a/f\n+++ b/f\n@@ -2,8 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n-9\n+9\n\\ No newline at end of file\n"
    );
}

#[test]
fn stays_bounded() {
    let text: String = (0..50_000).map(|line| format!("{line}\n")).collect();
    let whole = unified_diff("f", "", &text, diff_deadline()).unwrap();
    assert!(whole.ends_with("+49999\n"));
    let diff = kept_diff(&whole);
    assert!(diff.chars().count() <= MAX_DIFF_CHARS && diff.contains("characters cut"));
    assert_eq!(unified_diff("f", &"x".repeat(MAX_COMPARED_BYTES), "y", diff_deadline()), None);
}
