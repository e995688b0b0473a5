use myclaw_files::{Sameness, folded};
use myclaw_testkit::Random;

use super::kept;
use crate::files::diff_deadline;

fn merged(file: &str, old: &str, new: &str) -> String {
    replaced(&[(file, old)], &[new]).concat()
}

fn replaced(old: &[(&str, &str)], new: &[&str]) -> Vec<String> {
    let old = old.iter().map(|(file, written)| (*file, (*written).to_owned()));
    kept(old, new.iter().map(|line| (*line).to_owned()).collect(), diff_deadline())
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
        // Words that have only their ends in common.
        ("It\u{2019}s Ann\u{2019}s", "It's Ann's", "It's Bob's", "It\u{2019}s Bob\u{2019}s"),
        ("l\u{2019}homme", "l'homme", "l'amie", "l\u{2019}amie"),
        ("don\u{2019}t go", "don't go", "won't go", "won\u{2019}t go"),
        ("rock\u{2019}n\u{2019}roll", "rock'n'roll", "rock'n'rolls", "rock\u{2019}n\u{2019}rolls"),
        ("cafe\u{301}s", "caf\u{e9}s", "caf\u{e9}", "cafe\u{301}"),
        // The model changes the quotes themselves.
        ("\u{201C}a\u{201D}", "\"a\"", "'a'", "'a'"),
        // No correspondence.
        ("something else", "\"a\"", "\"b\"", "\"b\""),
    ] {
        assert_eq!(merged(file, old, new), expected, "{file} {old} {new}");
    }
}

#[test]
fn lines_that_are_all_replaced_keep_their_marks() {
    let old = [("a – b", "a - b"), ("same", "same"), ("c… d", "c... d")];
    let new = ["x - y", "more", "z... w"];
    assert_eq!(replaced(&old, &new), ["x – y", "more", "z… w"]);
    let new = ["x - y", "more", "", "same", "z... w"];
    assert_eq!(replaced(&old, &new), ["x – y", "more", "", "same", "z… w"]);
}

/// A mark before a word, the word, and two marks after it; each as the file has it, and as the model writes it.
type Part = [(&'static str, &'static str); 4];

const WORDS: [(&str, &str); 6] = [
    ("ab", "ab"),
    ("cafe\u{301}", "caf\u{e9}"),
    ("it’s", "it's"),
    ("zero\u{200B}width", "zerowidth"),
    ("12", "12"),
    ("l’été", "l'été"),
];
const FRESH: [(&str, &str); 6] =
    [("q", "q"), ("ww", "ww"), ("xyz", "xyz"), ("kkkk", "kkkk"), ("7", "7"), ("ph", "ph")];
const AFTER: [(&str, &str); 9] = [
    (" ", " "),
    ("\u{A0}", " "),
    (" – ", " - "),
    (" — ", " - "),
    ("… ", "... "),
    (", ", ", "),
    ("\u{202F}: ", " : "),
    ("‐", "-"),
    ("\u{2009}−\u{2009}", " - "),
];
const QUOTES: [[(&str, &str); 2]; 4] = [
    [("", ""), ("", "")],
    [("“", "\""), ("”", "\"")],
    [("‘", "'"), ("’", "'")],
    [("„", "\""), ("“", "\"")],
];

fn line_of(random: &mut Random) -> Vec<Part> {
    let mut any = |length: usize| random.below(length as u64) as usize;
    let count = 2 + any(9);
    let part = |_| {
        // Most words have no quotes.
        let [before, after] = QUOTES[any(QUOTES.len() * 2).saturating_sub(QUOTES.len())];
        [before, WORDS[any(WORDS.len())], after, AFTER[any(AFTER.len())]]
    };
    (0..count).map(part).collect()
}

/// What the file has (0), or what the model writes (1).
fn text_of(line: &[Part], side: usize) -> String {
    line.iter().flatten().map(|(file, written)| [*file, *written][side]).collect()
}

#[test]
fn every_character_that_both_agree_on_survives_random_edits() {
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let line = line_of(&mut random);
        let (file, old) = (text_of(&line, 0), text_of(&line, 1));

        // Other words in their places: nothing else changes.
        let mut edited = line.clone();
        for (number, part) in edited.iter_mut().enumerate() {
            if random.below(2) == 0 {
                part[1] = FRESH[number % FRESH.len()];
            }
        }
        let merged = merged_alike(&file, &old, &text_of(&edited, 1));
        assert_eq!(merged, text_of(&edited, 0), "{seed}: {file} with {edited:?}");

        // A new word with a mark of its own: without it, the line is the file's.
        let mut edited = line.clone();
        let at = random.below(line.len() as u64 + 1) as usize;
        let added = [("", ""), ("new", "new"), ("", ""), ("+", "+")];
        edited.insert(at, added);
        let merged = merged_alike(&file, &old, &text_of(&edited, 1));
        assert_eq!(merged, text_of(&edited, 0), "{seed}: {file} with a word at {at}");

        // Without some words: what is left is the file's, in its order.
        let mut edited = line.clone();
        edited.retain(|_| random.below(3) > 0);
        let merged = merged_alike(&file, &old, &text_of(&edited, 1));
        let mut rest = file.chars();
        let is_part = merged.chars().all(|char| rest.any(|other| other == char));
        assert!(is_part, "{seed}: {merged} of {file}");
    }
}

/// The merged line, which says the same as the new one.
fn merged_alike(file: &str, old: &str, new: &str) -> String {
    let merged = merged(file, old, new);
    let plain = |text: &str| folded(text, Sameness::Typography).into_owned();
    assert_eq!(plain(&merged), plain(new), "{file}: {old} -> {new}");
    merged
}

#[test]
fn a_line_after_an_inserted_one_keeps_its_characters() {
    let old = [("\u{201C}One\u{201D}, she said", "\"One\", she said")];
    assert_eq!(
        replaced(&old, &["A new line", "\"One\", he said"]),
        ["A new line", "\u{201C}One\u{201D}, he said"]
    );
    // Lines that moved: by what they say, not by their number.
    let old =
        [("\u{201C}gone\u{201D} here", "\"gone\" here"), ("wait\u{2026} there", "wait... there")];
    assert_eq!(
        replaced(&old, &["wait... then there", "new... \"text\""]),
        ["wait\u{2026} then there", "new... \"text\""]
    );
}

#[test]
fn a_quotation_keeps_both_of_its_quotes_or_none() {
    for (file, old, new, expected) in [
        (
            "Use “foo” now.",
            "Use \"foo\" now.",
            "Use \"bar\" and \"foo\" now.",
            "Use \"bar\" and “foo” now.",
        ),
        (
            "She said “one” and “two”.",
            "She said \"one\" and \"two\".",
            "She said \"zero\", \"one\" and \"two\".",
            "She said \"zero\", “one” and “two”.",
        ),
        (
            "She said “one”.",
            "She said \"one\".",
            "She said \"two\" and \"three\".",
            "She said \"two\" and “three”.",
        ),
        ("“a” \"a\"", "\"a\" \"a\"", "\"A A\"", "“A A”"),
        ("\"a\" “a”", "\"a\" \"a\"", "\"A A\"", "\"A A\""),
        ("say(‘a’, “b”)", "say('a', \"b\")", "say('x', 'a', \"b\")", "say('x', ‘a’, “b”)"),
        ("„ja“ sagte er", "\"ja\" sagte er", "\"nein\" sagte er", "„nein“ sagte er"),
        ("“It’s ‘odd’ here”", "\"It's 'odd' here\"", "\"It's 'even' here\"", "“It’s ‘even’ here”"),
        ("split(“ – ”)", "split(\" - \")", "split(\" - \", \"x\")", "split(“ – ”, \"x\")"),
        // Apostrophes are no quotations, and a word with another one is another word.
        (
            "it’s the dogs’ bone",
            "it's the dogs' bone",
            "it's 'a' dogs' bone",
            "it’s 'a' dogs’ bone",
        ),
        // Marks and spaces between words that are all replaced.
        ("a 10\u{A0}km", "a 10 km", "a b c", "a b\u{A0}c"),
        (
            "a – b, “c” and ‘d’",
            "a - b, \"c\" and 'd'",
            "x - y, \"z\" and 'w'",
            "x – y, “z” and ‘w’",
        ),
        ("And – well… ok", "And - well... ok", "And - so... fine", "And – so… fine"),
        ("one—two", "one-two", "three-four", "three—four"),
        ("«a» – “b”: c…", "«a» - \"b\": c...", "«d» - \"e\": f... (g)", "«d» – “e”: f… (g)"),
        (
            "’tis the dogs’ bone",
            "'tis the dogs' bone",
            "'tis the cats' food",
            "’tis the cats’ food",
        ),
        (
            "foo “a b c” bar “d e” baz",
            "foo \"a b c\" bar \"d e\" baz",
            "foo \"a b x\" baz",
            "foo “a b x” baz",
        ),
        ("2010–2012 … 5−3", "2010-2012 ... 5-3", "2011-2013 ... 6-4 - 1", "2011–2013 … 6−4 - 1"),
        // A script without spaces between words.
        ("がぎぐ「x」", "か\u{3099}き\u{3099}く\u{3099}「x」", "か\u{3099}く\u{3099}", "がぐ"),
    ] {
        assert_eq!(merged(file, old, new), expected, "{file}");
    }
}

#[test]
fn a_quotation_over_several_lines_keeps_both_of_its_quotes() {
    let old = [("rest” and “more", "rest\" and \"more")];
    assert_eq!(replaced(&old, &["big", "other\" and \"less"]), ["big", "other” and “less"]);
    assert_eq!(
        replaced(&[("world” x", "world\" x")], &["all\" and \"new\" x"]),
        ["all” and \"new\" x"]
    );
}

#[test]
fn what_is_the_same_text_stays_as_it_is_composed_in_the_file() {
    assert_eq!(merged("caf\u{e9} two", "caf\u{e9} two", "cafe\u{301} three"), "caf\u{e9} three");
    assert_eq!(
        merged("cafe\u{301} two", "cafe\u{301} two", "caf\u{e9} three"),
        "cafe\u{301} three"
    );
    // The model writes other quotes than those that it saw.
    assert_eq!(merged("“a” b", "“a” b", "\"a\" b"), "\"a\" b");
}
