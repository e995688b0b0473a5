//! Characters that nobody sees, in which instructions can be hidden or with which text can be turned around.

/// Stands at both ends of the number of a hidden character that is shown.
pub(super) const BRACKETS: (char, char) = ('⟦', '⟧');
/// Before the number.
const NUMBER: &str = "U+";

/// Whether `character` changes or carries text without being seen: marks for direction, zero width, fillers, tags,
/// and selectors of variants.
pub(super) fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a hidden character has its usual work between these two: emoji are joined and given their colour, and the
/// letters of some scripts are joined or kept apart. One after another has none.
pub(super) fn is_usual(before: Option<char>, character: char, behind: Option<char>) -> bool {
    let is_seen = |neighbour: char| !neighbour.is_ascii() && !is_hidden(neighbour);
    match character {
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|before| {
            is_seen(before) || before.is_ascii_digit() || matches!(before, '#' | '*')
        }),
        '\u{200c}' | '\u{200d}' => {
            before.is_some_and(|before| is_seen(before) || before == '\u{fe0f}')
                && behind.is_some_and(is_seen)
        }
        _ => false,
    }
}

/// Writes the number of a hidden character.
pub(super) fn push_number(out: &mut String, character: char) {
    out.push(BRACKETS.0);
    out.push_str(&format!("{NUMBER}{:04X}", u32::from(character)));
    out.push(BRACKETS.1);
}

/// The hidden character whose number stands at the beginning of `rest`, after the bracket, and the bytes of both.
pub(super) fn number(rest: &str) -> Option<(char, usize)> {
    let digits = rest.strip_prefix(NUMBER)?;
    let count = digits
        .bytes()
        .take(6)
        .take_while(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'))
        .count();
    digits[count..].starts_with(BRACKETS.1).then_some(())?;
    let character = char::from_u32(u32::from_str_radix(&digits[..count], 16).ok()?)?;
    let is_as_written = count == 4 || !digits.starts_with('0') && count > 4;
    (is_as_written && is_hidden(character))
        .then_some((character, NUMBER.len() + count + BRACKETS.1.len_utf8()))
}
