use super::*;

#[test]
fn a_title_is_the_first_sentence_without_courtesies() {
    for (message, title) in [
        ("Fix the parser", Some("Fix the parser")),
        ("hi, can you please fix the parser? It fails on tabs.", Some("fix the parser?")),
        ("# Plan\n\nmore", Some("Plan")),
        ("\n\n   \n> quoted words here", Some("quoted words here")),
        ("```\ncode\n```", Some("code")),
        ("Please", Some("Please")),
        ("???", None),
        ("", None),
        ("e.g. this is a case. And another.", Some("e.g. this is a case")),
        ("日本語のタイトル", Some("日本語のタイトル")),
    ] {
        assert_eq!(automatic_title(message).as_deref(), title, "{message}");
    }
}

#[test]
fn a_long_title_ends_with_a_word() {
    let title = automatic_title(&"word ".repeat(40)).unwrap();
    assert_eq!(title, format!("{}…", "word ".repeat(11).trim_end()));
    let cut = automatic_title(&"x".repeat(200)).unwrap();
    assert_eq!((cut.chars().count(), cut.ends_with("x…")), (60, true));
}

#[test]
fn the_first_words_are_one_line_without_control_characters() {
    assert_eq!(first_words("one\n two\t\x1b[31mthree"), "one two [31mthree");
}
