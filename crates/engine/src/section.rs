//! Text of others in a section of the system prompt, which it can neither close nor imitate.

use std::borrow::Cow;
use std::str::CharIndices;

use myclaw_llm::outside::{OPEN_ANGLES, PROMPT_TAGS, ascii_like};

/// The sign of a tag that closes, and those that look like it.
const SLASHES: [char; 3] = ['/', '／', '\\'];
/// Most signs between the first one of a tag and its name.
const MOST_BEFORE: usize = 64;
/// More signs than the longest of [`PROMPT_TAGS`] has.
const MOST_OF_NAME: usize = 32;
/// Stands for the sign where the text would begin a tag of the prompt.
const HARMLESS: &str = "&lt;";

/// A text as a section holds it: what would end or begin a section of the prompt has `&lt;` for its first character, also
/// where it is written with other letters or with spaces. Everything else is unchanged.
pub(crate) fn held(text: &str) -> Cow<'_, str> {
    if !text.contains(OPEN_ANGLES) {
        return Cow::Borrowed(text);
    }
    let mut result = String::new();
    let mut copied = 0;
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        if OPEN_ANGLES.contains(&sign) && is_tag(&signs) {
            result.push_str(&text[copied..at]);
            result.push_str(HARMLESS);
            copied = at + sign.len_utf8();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    result.push_str(&text[copied..]);
    Cow::Owned(result)
}

/// The same in one line, for names, descriptions and paths.
pub(crate) fn held_line(text: &str) -> String {
    let line: String = text.chars().map(|sign| if is_break(sign) { ' ' } else { sign }).collect();
    held(&line).into_owned()
}

/// A text as the value of an attribute, which stands in quotation marks.
pub(crate) fn attribute(text: &str) -> String {
    let is_plain =
        |sign: char| !is_break(sign) && !OPEN_ANGLES.contains(&sign) && !matches!(sign, '"' | '>');
    text.chars().map(|sign| if is_plain(sign) { sign } else { '_' }).collect()
}

fn is_break(sign: char) -> bool {
    sign.is_control() || matches!(sign, '\u{2028}' | '\u{2029}')
}

/// Whether a tag of the prompt begins with what follows its first character. One that opens a section counts only as the
/// prompt writes it: `sort < file` and `cat <file>` are common in what people write.
fn is_tag(rest: &CharIndices<'_>) -> bool {
    let seen = || rest.clone().map(|(_, sign)| sign).filter(|sign| !is_invisible(*sign));
    let is_before = |sign: &char| sign.is_whitespace() || SLASHES.contains(sign);
    let before: Vec<char> = seen().take_while(is_before).take(MOST_BEFORE).collect();
    let letter = |sign: char| ascii_like(sign).unwrap_or(sign);
    let after: Vec<char> = seen().skip(before.len()).take(MOST_OF_NAME).map(letter).collect();
    let name: String = after.iter().take_while(|sign| is_of_name(**sign)).collect();
    let next = after.get(name.chars().count());
    let name = name.to_lowercase();
    if !PROMPT_TAGS.contains(&name.as_str()) {
        return false;
    }
    let closes = before.iter().any(|sign| SLASHES.contains(sign));
    let opens = name != "file" || next.is_some_and(|sign| sign.is_whitespace());
    closes || before.is_empty() && opens
}

fn is_of_name(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '-' | '_')
}

/// Characters that nobody sees, which some models pass over.
fn is_invisible(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests;
