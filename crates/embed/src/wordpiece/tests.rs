use super::*;

fn words(text: &str) -> Vec<String> {
    Words::of(text).collect()
}

#[test]
fn words_are_split_as_the_model_has_them() {
    assert_eq!(words("  Hello,\tWORLD!  "), ["hello", ",", "world", "!"]);
    assert_eq!(words("Ångström-résumé"), ["angstrom", "-", "resume"]);
    assert_eq!(words("a中文b"), ["a", "中", "文", "b"]);
    assert_eq!(words("soft\u{ad}hyphen\u{0}\u{fffd}"), ["softhyphen"]);
    assert_eq!(words(" \n\u{3000}"), [""; 0]);
}

#[test]
fn a_word_without_pieces_is_unknown_as_a_whole() {
    let numbers = ["[UNK]", "[CLS]", "[SEP]", "un", "##want", "##ed"];
    let numbers = numbers.into_iter().map(Box::from).zip(0..).collect();
    let vocabulary = Vocabulary { numbers, unknown: 0, begin: 1, end: 2 };
    assert_eq!(vocabulary.encode("unwanted", 9), [1, 3, 4, 5, 2]);
    assert_eq!(vocabulary.encode("unwantedly un", 9), [1, 0, 3, 2]);
    assert_eq!(vocabulary.encode(&"un".repeat(51), 9), [1, 0, 2]);
    // Cut in the middle of a word.
    assert_eq!(vocabulary.encode("un unwanted", 5), [1, 3, 3, 4, 2]);
    assert_eq!(vocabulary.encode("un", 0), [1, 2]);
}
