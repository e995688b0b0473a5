//! Shortens text for a model, at character boundaries, with a note about the cut.

use std::borrow::Cow;

use myclaw_files::after_escape_sequence;

/// The start of `text`, at most `max_chars` characters with the marker that says how much was cut.
pub(crate) fn cut_end(text: &str, max_chars: usize) -> Cow<'_, str> {
    cut(text, max_chars, |kept, dropped| {
        let end = byte_offset(text, kept);
        format!("{}\n[... {dropped} characters cut ...]", &text[..end])
    })
}

/// The end of `text`, at most `max_chars` characters with the marker that says how much was cut.
pub(crate) fn cut_start(text: &str, max_chars: usize) -> Cow<'_, str> {
    cut(text, max_chars, |kept, dropped| {
        let start = byte_offset(text, dropped);
        debug_assert_eq!(text[start..].chars().count(), kept);
        format!("[... {dropped} characters cut ...]\n{}", &text[start..])
    })
}

/// One line, cut to `max_chars` characters, with an ellipsis and its full length if it is longer.
pub(crate) fn cut_line(line: &str, max_chars: usize) -> Cow<'_, str> {
    if line.len() <= max_chars {
        return Cow::Borrowed(line);
    }
    let end = byte_offset(line, max_chars);
    if end == line.len() {
        return Cow::Borrowed(line);
    }
    Cow::Owned(format!("{}… [line of {} characters cut]", &line[..end], line.chars().count()))
}

/// `text` without the control sequences of terminals: colours and other escape sequences are removed, a carriage return
/// becomes a line end, and other control characters become U+FFFD.
pub(crate) fn plain_text(text: &str) -> Cow<'_, str> {
    let is_special = |char: char| char.is_control() && char != '\n' && char != '\t';
    if !text.contains(is_special) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_special) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix('\u{1b}') {
            rest = after_escape_sequence(after);
        } else if let Some(after) = rest.strip_prefix('\r') {
            plain.push('\n');
            rest = after.strip_prefix('\n').unwrap_or(after);
        } else {
            plain.push(char::REPLACEMENT_CHARACTER);
            rest = skip_char(rest);
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

fn skip_char(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}

/// Characters that the marker of a cut may take: its words and a count of up to 20 digits.
const MARKER_CHARS: usize = 48;

fn cut<'t>(text: &'t str, max_chars: usize, join: impl Fn(usize, usize) -> String) -> Cow<'t, str> {
    // Bytes are never fewer than characters, so most texts need no counting.
    if text.len() <= max_chars {
        return Cow::Borrowed(text);
    }
    let total = text.chars().count();
    if total <= max_chars {
        return Cow::Borrowed(text);
    }
    let kept = max_chars.saturating_sub(MARKER_CHARS);
    Cow::Owned(join(kept, total - kept))
}

/// Byte offset of the character number `chars`, or the length of `text` if it has no more than that.
fn byte_offset(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(offset, _)| offset)
}

#[cfg(test)]
mod tests;
