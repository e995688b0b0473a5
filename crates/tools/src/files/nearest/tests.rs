use tokio_util::sync::CancellationToken;

use super::*;

fn nearest(text: &str, wanted: &[&str]) -> Option<String> {
    describe_nearest(&Lines::of(text), wanted, &Budget::new(CancellationToken::new()))
}

#[test]
fn names_the_window_most_like_the_wanted_lines() {
    let text = "fn alpha() {\n    one();\n}\n\nfn beta() {\n    two();\n}\n";
    let found = nearest(text, &["", "fn beta(x: u8) {", "    two(x);"]);
    assert_eq!(
        found.as_deref(),
        Some("The closest place is line 4:\n     4 | \n     5 | fn beta() {\n     6 |     two();")
    );
    assert_eq!(nearest(text, &["%%%%%%%%"]), None);
    assert_eq!(nearest(text, &["", " "]), None);
    assert_eq!(nearest("", &["a"]), None);
}

#[test]
fn shows_a_bounded_part() {
    let text = format!("{}\n", "x".repeat(500)).repeat(100);
    let shown = show_lines(&Lines::of(&text), 10..100);
    assert_eq!(shown.lines().count(), MAX_LINES_SHOWN + 1);
    assert!(shown.ends_with("... and 78 more lines"), "{shown}");
    assert!(shown.len() < 4_000, "{}", shown.len());
}
