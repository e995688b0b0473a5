use proptest::prelude::*;

use super::*;

#[test]
fn short_text_is_left_alone() {
    assert_eq!(cut_end("äöü", 3), "äöü");
    assert_eq!(cut_start("äöü", 3), "äöü");
    assert_eq!(cut_line("äöü", 3), "äöü");
}

#[test]
fn the_marker_counts_what_is_gone() {
    let text = "ü".repeat(100);
    assert_eq!(cut_end(&text, 60), format!("{}\n[... 88 characters cut ...]", "ü".repeat(12)));
    assert_eq!(cut_start(&text, 60), format!("[... 88 characters cut ...]\n{}", "ü".repeat(12)));
    assert_eq!(cut_line(&text, 10), format!("{}… [line of 100 characters cut]", "ü".repeat(10)));
}

proptest! {
    #[test]
    fn a_cut_text_never_exceeds_its_limit(text in "\\PC{0,300}", limit in MARKER_CHARS..400) {
        prop_assert!(cut_end(&text, limit).chars().count() <= limit);
        prop_assert!(cut_start(&text, limit).chars().count() <= limit);
    }
}
