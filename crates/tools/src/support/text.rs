//! Shortening text for a model, at character boundaries and never in silence.

use std::borrow::Cow;

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

/// One line, at most `max_chars` characters of it, with an ellipsis and its full length if more was there.
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
