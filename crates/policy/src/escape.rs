//! Makes text that a model wrote safe to show where a user decides.

use std::fmt::Write;

/// `text` with every character that could hide, reorder or move other text written out: control characters, bidirectional
/// overrides, characters of no width, line separators, unusual spaces and characters for private use. A newline becomes
/// `\n`, a tab `\t`, and others their number, as in `\u{202e}`.
pub fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            _ if is_deceptive(character) => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// Whether a character changes the order in which the text around it is shown.
pub fn changes_direction(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Whether a character is invisible, or changes how its neighbours look. The tab and the newline count as well.
pub(crate) fn is_deceptive(character: char) -> bool {
    character.is_control()
        || (character.is_whitespace() && character != ' ')
        || matches!(u32::from(character),
            0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 // soft hyphen, joiners, fillers
            | 0x180b..=0x180f | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f // no width, direction
            | 0x2800 | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb // blanks, variation selectors
            | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff // formats, tags
            | 0xe000..=0xf8ff | 0xf0000..=0x10_ffff) // private use
}

#[cfg(test)]
mod tests;
