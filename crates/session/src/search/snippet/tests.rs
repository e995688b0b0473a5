use super::*;

fn of(text: &str, matched: &str) -> (String, String, String) {
    let start = text.find(matched).unwrap_or_default();
    around(text, start..start + matched.len())
}

#[test]
fn short_texts_are_whole_and_on_one_line() {
    let snippet = of("one\n\n two three\tfour", "two");
    assert_eq!(snippet, ("one ".to_owned(), "two".to_owned(), " three four".to_owned()));
}

#[test]
fn long_texts_are_cut_between_characters() {
    let text = format!("{}needle{}", "ä".repeat(100), "ö".repeat(100));
    let (before, matched, after) = of(&text, "needle");
    assert_eq!(before, format!("…{}", "ä".repeat(40)));
    assert_eq!(matched, "needle");
    assert_eq!(after, format!("{}…", "ö".repeat(40)));
}

#[test]
fn control_characters_are_removed() {
    assert_eq!(of("a\u{1b}[2Jb", "b").0, "a [2J");
}
