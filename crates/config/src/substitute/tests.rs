use proptest::prelude::*;

use super::*;

fn lookup(name: &str) -> Option<&'static str> {
    match name {
        "A" => Some("one"),
        "_B2" => Some("${A} \"quoted\" \\"),
        "EMPTY" => Some(""),
        _ => None,
    }
}

#[test]
fn replaces_what_the_grammar_names() {
    for (text, expected) in [
        ("${A}", "one"),
        ("x${A}y${A}z", "xoneyonez"),
        ("${_B2}", "${A} \"quoted\" \\"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("${A}$${A}${A}", "one${A}one"),
        ("$$${A}${A}", "$${A}one"),
        ("${a}", "${a}"),
        ("$${a}", "$${a}"),
        ("${2A}", "${2A}"),
        ("${A-B}", "${A-B}"),
        ("${}", "${}"),
        ("${A", "${A"),
        ("$A", "$A"),
        ("$", "$"),
        ("a$", "a$"),
        ("$$", "$$"),
        ("${ A }", "${ A }"),
        ("${Ä}", "${Ä}"),
        ("ä${A}ö", "äoneö"),
        ("${${A}}", "${one}"),
    ] {
        assert_eq!(substitute(text, lookup), Ok(expected.to_owned()), "{text}");
    }
}

#[test]
fn an_unset_and_an_empty_variable_are_both_missing() {
    assert_eq!(substitute("${A}${EMPTY}", lookup), Err("EMPTY"));
    assert_eq!(substitute("${NOPE}${EMPTY}", lookup), Err("NOPE"));
    assert_eq!(substitute("$${NOPE}", lookup), Ok("${NOPE}".to_owned()));
}

#[test]
fn tells_whether_there_is_a_reference() {
    for text in ["${A}", "x ${A}", "$${A}${B}"] {
        assert!(has_env_reference(text), "{text}");
    }
    for text in ["", "A", "$A", "${a}", "$${A}", "${A"] {
        assert!(!has_env_reference(text), "{text}");
    }
    assert!(is_one_reference("${A}"));
    assert!(!is_one_reference("${A}x") && !is_one_reference("$${A}") && !is_one_reference(""));
}

proptest! {
    /// Text in which every reference is escaped comes out as what was escaped.
    #[test]
    fn escaping_is_undone(text in "([$ {}A-Ca-c0-9_]|\\$\\{[A-C_]{1,2}\\}){0,20}") {
        let escaped: String = pieces(&text)
            .map(|piece| match piece {
                Piece::Text(text) => text.to_owned(),
                Piece::Escaped(text) => format!("$${text}"),
                Piece::Reference(name) => format!("$${{{name}}}"),
            })
            .collect();
        let unescaped: String = pieces(&text)
            .map(|piece| match piece {
                Piece::Text(text) | Piece::Escaped(text) => text.to_owned(),
                Piece::Reference(name) => format!("${{{name}}}"),
            })
            .collect();
        // A lone `$` before a reference would turn the escape into text and another escape.
        prop_assume!(!text.contains("$$"));
        prop_assert_eq!(substitute(&escaped, |_| None), Ok(unescaped));
    }

    /// Any text either comes out or names a variable; it never fails otherwise.
    #[test]
    fn pieces_cover_the_text(text in "\\PC{0,40}") {
        let length: usize = pieces(&text).map(|piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Escaped(text) => text.len() + 1,
            Piece::Reference(name) => name.len() + 3,
        }).sum();
        prop_assert_eq!(length, text.len());
    }
}
