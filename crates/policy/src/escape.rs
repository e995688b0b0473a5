//! Makes text that a model wrote safe to show where a user decides, and names of files wherever they are listed.

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

/// What [`escape`] was given, if it wrote out any character: for names of files that a model repeats as it was shown them.
/// Only characters that [`escape`] writes out are made, so no `/` and no `.`.
pub fn unescape(shown: &str) -> Option<String> {
    let mut text = String::with_capacity(shown.len());
    let mut rest = shown;
    while let Some(at) = rest.find('\\') {
        let (before, behind) = rest.split_at(at);
        text.push_str(before);
        let (character, length) = match behind.as_bytes().get(1) {
            Some(b'n') => (Some('\n'), 2),
            Some(b't') => (Some('\t'), 2),
            Some(b'r') => (Some('\r'), 2),
            Some(b'u') => numbered(behind).unwrap_or((None, 1)),
            _ => (None, 1),
        };
        text.push(character.unwrap_or('\\'));
        rest = &behind[length..];
    }
    text.push_str(rest);
    (text != shown).then_some(text)
}

/// The character that `\u{202e}` stands for, if `text` begins so, and how many bytes that takes.
fn numbered(text: &str) -> Option<(Option<char>, usize)> {
    let number = text.strip_prefix("\\u{")?;
    let (number, _) = number.split_once('}')?;
    let character = char::from_u32(u32::from_str_radix(number, 16).ok()?)?;
    is_deceptive(character).then_some((Some(character), number.len() + "\\u{}".len()))
}

/// Whether a character is invisible, or changes how its neighbours look. The tab and the newline count as well.
pub fn is_deceptive(character: char) -> bool {
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
