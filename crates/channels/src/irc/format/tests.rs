use proptest::prelude::*;

use super::*;

#[test]
fn markdown_becomes_lines() {
    for (markdown, expected) in [
        ("**a** _b_ `c`\n\nd", vec!["a b c", "d"]),
        (
            "# Head\n- x\n- y\n  - z\n\n1. one\n2. two",
            vec!["Head", "- x", "- y", "  - z", "1. one", "2. two"],
        ),
        ("```rust\nfn a() {\n    *b\n\n}\n```", vec!["fn a() {", "    *b", "}"]),
        ("[x](https://a.b) <https://c.d>", vec!["x (https://a.b) https://c.d"]),
        ("|a|b|\n|-|-|\n|c|d|", vec!["a | b", "c | d"]),
        ("a\u{1}ACTION b\u{1}", vec!["aACTION b"]),
    ] {
        assert_eq!(lines(markdown, 100), expected, "{markdown}");
    }
}

#[test]
fn colours_are_removed() {
    assert_eq!(without_colours("\u{2}a\u{3}04,12b\u{3}5c,d\u{3},e\u{4}ff00ffg\u{f}"), "abc,d,eg");
}

#[test]
fn a_line_has_no_empty_piece() {
    assert_eq!(cut("aö  😀", 4), ["aö", "😀"]);
    assert_eq!(cut("  ab cd", 5), ["  ab", "cd"]);
}

proptest! {
    #[test]
    fn nothing_is_longer_than_a_line_or_lost(text in "[a-zäö€😀 ]{0,200}", most in 4_usize..60) {
        let pieces = cut(&text, most);
        prop_assert!(pieces.iter().all(|piece| piece.len() <= most && !piece.trim().is_empty()), "{pieces:?}");
        let bare = |text: &str| text.replace(' ', "");
        prop_assert_eq!(bare(&pieces.concat()), bare(&text));
    }

    #[test]
    fn nothing_makes_it_fail(text in any::<String>()) {
        prop_assert!(lines(&text, 40).iter().all(|line| line.len() <= 40 && !line.contains(['\r', '\n', '\0'])));
        let _ = without_colours(&text);
    }
}
