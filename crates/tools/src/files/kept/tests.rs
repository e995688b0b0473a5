use super::Kept;
use crate::files::diff_deadline;

fn merged(file: &str, old: &str, new: &str) -> String {
    let lines = [(file, old.to_owned())].into_iter();
    Kept::new(lines, diff_deadline()).line(0, 1, new.to_owned())
}

#[test]
fn what_old_and_new_share_keeps_the_characters_of_the_file() {
    for (file, old, new, expected) in [
        (
            "She said, \u{201C}Hello.\u{201D}",
            "She said, \"Hello.\"",
            "She said, \"Hi there.\"",
            "She said, \u{201C}Hi there.\u{201D}",
        ),
        (
            "5\u{2013}10 \u{2014} it\u{2019}s",
            "5-10 - it's",
            "5-12 - it's",
            "5\u{2013}12 \u{2014} it\u{2019}s",
        ),
        ("wait\u{2026} now", "wait... now", "wait... then", "wait\u{2026} then"),
        ("wait\u{2026} now", "wait... now", "wait.. now", "wait.. now"),
        ("wait... now", "wait\u{2026} now", "wait\u{2026} then", "wait... then"),
        ("10\u{00A0}km\u{202F}!", "10 km !", "11 km !", "11\u{00A0}km\u{202F}!"),
        ("cafe\u{301} au lait", "caf\u{e9} au lait", "caf\u{e9} noir", "cafe\u{301} noir"),
        (
            "ok \u{2714}\u{FE0F} done",
            "ok \u{2714} done",
            "ok \u{2714} ready",
            "ok \u{2714}\u{FE0F} ready",
        ),
        ("zero\u{200B}width old", "zerowidth old", "zerowidth new", "zero\u{200B}width new"),
        // The model changes the quotes themselves.
        ("\u{201C}a\u{201D}", "\"a\"", "'a'", "'a'"),
        // No correspondence.
        ("something else", "\"a\"", "\"b\"", "\"b\""),
    ] {
        assert_eq!(merged(file, old, new), expected, "{file} {old} {new}");
    }
}

#[test]
fn a_line_after_an_inserted_one_keeps_its_characters() {
    let lines = [("\u{201C}One\u{201D}, she said", "\"One\", she said".to_owned())].into_iter();
    let kept = Kept::new(lines, diff_deadline());
    assert_eq!(kept.line(0, 2, "A new line".to_owned()), "A new line");
    assert_eq!(kept.line(1, 2, "\"One\", he said".to_owned()), "\u{201C}One\u{201D}, he said");
}
