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

#[test]
fn an_exchange_is_called_after_the_answer_where_the_message_says_too_little() {
    let long = format!(
        "error[E0308]: mismatched types\n{}\n\nWhy does rustc reject it?",
        "x ".repeat(400)
    );
    for (message, answer, title) in [
        ("Fix the parser", "# Tabs\n\nDone.", "Fix the parser"),
        (
            "explain this:\n```sh\nfind . -delete\n```",
            "This command **deletes** all files.",
            "This command deletes all files",
        ),
        ("Look at [@a.rs](file:///p/a.rs) and [@b](b:c).", "", "Look at @a.rs and @b."),
        ("Explain [@a](file:///p twice", "", "Explain [@a](file:///p twice"),
        ("Compare a [@b] c [d](e)", "", "Compare a [@b] c [d](e)"),
        ("hi", "Hello! How can I help you today?", "hi"),
        (
            "Can you fix it?",
            "Sure! The build needs a newer linker. I changed it.",
            "The build needs a newer linker",
        ),
        ("what is this?", "## Rotating logs\n\nA script.", "Rotating logs"),
        ("review", "", "review"),
        (&long, "Because.", "Why does rustc reject it?"),
        ("これは何ですか", "説明", "これは何ですか"),
    ] {
        assert_eq!(exchange_title(message, answer).as_deref(), Some(title), "{message}");
    }
    assert_eq!(exchange_title("???", "!!!"), None);
}
