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

#[test]
fn what_only_terminals_understand_is_removed() {
    for (text, expected) in [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\u{1b}[1;31mred\u{1b}[0m", "red"),
        ("\u{1b}]0;title\u{7}text", "text"),
        ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
        ("\u{1b}(Btext\u{1b}=", "text"),
        ("10%\r20%\r\n30%\r", "10%\n20%\n30%\n"),
        ("a\0b\u{8}c", "a\u{fffd}b\u{fffd}c"),
        ("\u{1b}[12", "12"),
        ("\u{1b}]not closed\nnext", "not closed\nnext"),
        ("\u{1b}[3äü", "3äü"),
        ("\u{1b}ä", "ä"),
        ("\u{1b}", ""),
    ] {
        assert_eq!(plain_text(text), expected, "{text:?}");
    }
}

proptest! {
    #[test]
    fn plain_text_holds_no_control_characters(text in "[\\x00-\\x1f\\[\\]();0-9a-zä\\\\]{0,60}") {
        let plain = plain_text(&text);
        prop_assert!(plain.chars().all(|char| !char.is_control() || char == '\n' || char == '\t'), "{plain:?}");
        prop_assert_eq!(plain_text(&plain), plain.clone());
    }
}
