use std::fs;

use tempfile::TempDir;

use super::{Folded, Sameness, characters, composed, folded, respelled};

#[test]
fn one_text_has_one_form_however_it_is_composed() {
    for (one, other) in [
        ("caf\u{e9}", "cafe\u{301}"),
        ("Ti\u{1ebf}ng Vi\u{1ec7}t", "Tie\u{302}\u{301}ng Vie\u{323}\u{302}t"),
        ("\u{d55c}\u{ae00}", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
        ("\u{c5}", "\u{212b}"),
        ("a\u{323}\u{307}", "a\u{307}\u{323}"),
    ] {
        assert_eq!(
            folded(one, Sameness::Composition),
            folded(other, Sameness::Composition),
            "{one}"
        );
        assert_eq!(composed(one), composed(other), "{one}");
    }
    let typographic = "\u{201C}It\u{2019}s 9\u{202F}AM\u{200B} \u{2014} wait\u{2026}\u{201D}";
    assert_eq!(folded(typographic, Sameness::Typography), "\"It's 9 AM - wait...\"");
    assert_ne!(folded(typographic, Sameness::Composition), "\"It's 9 AM - wait...\"");
}

#[test]
fn a_range_of_the_form_leads_back_to_whole_characters() {
    let text = "a\r\ncafe\u{301} \u{2026}\r\nz";
    let form = Folded::new(text, Sameness::Typography, true);
    assert_eq!(form.text(), "a\ncafe\u{301} ...\nz");
    let original = |wanted: &str| {
        let at = form.text().find(wanted).expect("in the form");
        form.original(&(at..at + wanted.len())).map(|range| &text[range])
    };
    assert_eq!(original("cafe\u{301}"), Some("cafe\u{301}"));
    assert_eq!(original("..."), Some("\u{2026}"));
    assert_eq!(original("a\ncaf"), Some("a\r\ncaf"));
    assert_eq!(original("...\nz"), Some("\u{2026}\r\nz"));
    assert_eq!(original("cafe"), None, "half of a character");
    assert_eq!(original(".."), None, "a part of an ellipsis");
    assert_eq!(
        characters("e\u{301}x", Sameness::Composition).collect::<Vec<_>>(),
        ["e\u{301}", "x"]
    );
}

#[test]
fn a_name_is_found_in_its_other_spelling_unless_two_have_it() {
    let home = TempDir::new().expect("a directory");
    let below = home.path().join("re\u{301}sume\u{301}");
    fs::create_dir(&below).expect("a directory");
    fs::write(below.join("It\u{2019}s 9\u{202F}AM.txt"), "").expect("a file");
    let composed = home.path().join("r\u{e9}sum\u{e9}");
    assert_eq!(respelled(&composed, Sameness::Composition), Some(below.clone()));
    assert_eq!(respelled(&below, Sameness::Composition), None, "it is there as written");
    let plain = composed.join("It's 9 AM.txt");
    assert_eq!(respelled(&plain, Sameness::Composition), None);
    let found = below.join("It\u{2019}s 9\u{202F}AM.txt");
    assert_eq!(respelled(&plain, Sameness::Typography), Some(found));
    fs::write(below.join("It\u{2018}s 9 AM.txt"), "").expect("a file");
    assert_eq!(respelled(&plain, Sameness::Typography), None, "two have this name");
    assert_eq!(respelled(&home.path().join("missing"), Sameness::Typography), None);
}
