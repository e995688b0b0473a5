use myclaw_agent::approvals::changes_direction;

use super::{Escaper, escaped};

/// What comes out when `pieces` arrive one by one.
fn pushed(pieces: &[&str]) -> String {
    let mut escaper = Escaper::default();
    let mut out = Vec::new();
    for piece in pieces {
        escaper.push(piece, &mut out);
    }
    escaper.finish(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn ordinary_text_is_untouched() {
    let text = "a\tb\nGrüße, 世界 🦀\u{a0}";
    assert_eq!(escaped(text), text);
    assert_eq!(pushed(&[text]), text);
}

#[test]
fn every_control_but_line_feed_and_tab_is_shown() {
    for code in (0..=0x1f_u32).chain([0x7f]).chain(0x80..=0x9f) {
        let control = char::from_u32(code).expect("a character");
        let shown = escaped(&format!("a{control}b")).into_owned();
        match control {
            '\n' | '\t' => assert_eq!(shown, format!("a{control}b")),
            '\r' => assert_eq!(shown, "a\\rb"),
            _ => assert_eq!(shown, format!("a\\x{code:02x}b")),
        }
    }
}

#[test]
fn a_windows_line_end_becomes_a_line_feed_wherever_it_is_cut() {
    assert_eq!(pushed(&["a\r\nb"]), "a\nb");
    assert_eq!(pushed(&["a\r", "\nb"]), "a\nb");
    assert_eq!(pushed(&["a\r", "", "\nb"]), "a\nb");
}

#[test]
fn a_lone_carriage_return_is_shown() {
    assert_eq!(pushed(&["50%\r", "60%\r"]), "50%\\r60%\\r");
}

#[test]
fn cutting_between_characters_changes_nothing() {
    let text = "\u{1b}[31mred\u{9b}0m \r\n\rend\u{7f}";
    let whole = pushed(&[text]);
    for cut in text.char_indices().map(|(at, _)| at) {
        assert_eq!(pushed(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
    }
}

#[test]
fn marks_that_turn_the_direction_of_text_are_shown() {
    let marks = ['\u{61c}', '\u{200e}', '\u{200f}'].into_iter();
    for mark in marks.chain('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}') {
        let shown = format!("rm \\u{{{:04x}}}x", u32::from(mark));
        assert_eq!(escaped(&format!("rm {mark}x")), shown);
    }
    for other in ["\u{200d}", "\u{2029}", "\u{202f}", "\u{2065}", "\u{206a}", "שלום", "…"] {
        assert_eq!(escaped(other), other);
    }
}

#[test]
fn every_mark_that_turns_text_around_is_shown() {
    for character in '\u{a0}'..=char::MAX {
        let text = format!("a{character}b");
        let is_shown = escaped(&text) != text;
        assert_eq!(is_shown, changes_direction(character), "{character:?}");
    }
}
