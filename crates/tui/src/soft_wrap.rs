//! Breaks the message that is being typed at spaces, where the terminal would break inside a word.

use reedline::{Highlighter, StyledText};
use unicode_width::UnicodeWidthChar;

use super::editor::PROMPT;
use myclaw_front::terminal::Size;

/// Draws messages without colours, as they are not code, and broken at spaces.
pub(super) struct SoftWrap;

impl Highlighter for SoftWrap {
    fn highlight(&self, message: &str, _cursor: usize) -> StyledText {
        let mut text = StyledText::new();
        text.push((Default::default(), soft_wrapped(message, Size::current().columns)));
        text
    }
}

/// `message` with a line break in the place of each space at which a line would reach the last column of the terminal. The
/// length in bytes stays, because the editor knows the cursor by it. Each line stands behind the prompt or as many spaces.
fn soft_wrapped(message: &str, columns: usize) -> String {
    let columns = columns.max(1);
    let mut drawn = message.as_bytes().to_vec();
    let (mut column, mut space) = (PROMPT.len(), None);
    for (at, char) in message.char_indices() {
        if char == '\n' {
            (column, space) = (PROMPT.len(), None);
            continue;
        }
        let width = char.width().unwrap_or(0);
        if char == ' ' {
            space = Some(at);
        } else if column + width >= columns
            && let Some(space) = space.take()
        {
            drawn[space] = b'\n';
            column = (PROMPT.len() + width_of(&message[space + 1..at])) % columns;
        }
        if column + width > columns {
            // The terminal breaks a word that is longer than a line.
            column = 0;
        }
        column += width;
    }
    // One ASCII character took the place of another.
    String::from_utf8(drawn).unwrap_or_else(|_| message.to_owned())
}

fn width_of(text: &str) -> usize {
    text.chars().map(|char| char.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(message: &str, columns: usize) -> Vec<String> {
        let wrapped = soft_wrapped(message, columns);
        assert_eq!(wrapped.len(), message.len());
        wrapped.split('\n').map(str::to_owned).collect()
    }

    #[test]
    fn a_line_breaks_at_the_last_space_that_fits() {
        assert_eq!(lines("one two three", 19), ["one two three"]);
        assert_eq!(lines("one two three", 18), ["one two", "three"]);
        assert_eq!(lines("one two three", 12), ["one", "two", "three"]);
        assert_eq!(lines("one\ntwo three", 14), ["one", "two", "three"]);
        assert_eq!(lines("eins zwölf drei", 16), ["eins zwölf", "drei"]);
    }

    #[test]
    fn wide_characters_count_two_columns() {
        assert_eq!(lines("日本 語語 x", 15), ["日本 語語", "x"]);
        assert_eq!(lines("日本 語語", 14), ["日本", "語語"]);
    }

    #[test]
    fn a_word_longer_than_a_line_is_left_to_the_terminal() {
        // The terminal has broken it, so the next word still fits behind its end.
        assert_eq!(lines("0123456789abc de", 12), ["0123456789abc de"]);
        assert_eq!(lines("a 0123456789abc def", 11), ["a", "0123456789abc", "def"]);
        // It breaks after its last column: seven characters stand behind the prompt, and seven in the next line.
        assert_eq!(lines("0123456789abcd abc", 12), ["0123456789abcd abc"]);
        assert_eq!(lines("0123456789abcd abcd", 12), ["0123456789abcd", "abcd"]);
        assert_eq!(lines("0123456789abcdefghi jklmnopqrs", 12), ["0123456789abcdefghi jklmnopqrs"]);
    }

    #[test]
    fn spaces_alone_break_nothing() {
        assert_eq!(lines("     ", 7), ["     "]);
        assert_eq!(lines("", 40), [""]);
        assert_eq!(lines("a b", 2), ["a", "b"]);
    }
}
