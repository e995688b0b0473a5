//! Makes text from a model or a tool safe for a terminal.
//!
//! A control character that reaches a terminal can move the cursor, overwrite earlier output, set the window's title or
//! send input on the user's behalf. So ESC and the other C0 and C1 controls are shown instead of sent; line feed and
//! tab stay. The marks that change the direction of text are shown as well, because they can make a command look like
//! another one.

use std::borrow::Cow;

/// Escapes text that arrives in pieces. Its only state is a carriage return at the end of a piece: a Windows line end
/// is passed on as a line feed even when it is cut in two.
#[derive(Debug, Default)]
pub struct Escaper {
    pending_return: bool,
}

impl Escaper {
    /// Appends `text` to `out`, with controls escaped.
    pub fn push(&mut self, text: &str, out: &mut Vec<u8>) {
        let mut rest = text;
        if self.pending_return && !rest.is_empty() {
            self.pending_return = false;
            if !rest.starts_with('\n') {
                out.extend_from_slice(b"\\r");
            }
        }
        while let Some((at, control)) = first_control(rest) {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at + control.len_utf8()..];
            match control {
                '\r' if rest.is_empty() => self.pending_return = true,
                '\r' if rest.starts_with('\n') => {}
                '\r' => out.extend_from_slice(b"\\r"),
                control if control < '\u{a0}' => {
                    out.extend_from_slice(format!("\\x{:02x}", u32::from(control)).as_bytes());
                }
                mark => {
                    out.extend_from_slice(format!("\\u{{{:04x}}}", u32::from(mark)).as_bytes());
                }
            }
        }
        out.extend_from_slice(rest.as_bytes());
    }

    /// Ends the text and shows a carriage return that was held back.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.pending_return) {
            out.extend_from_slice(b"\\r");
        }
    }
}

/// `text` as a whole, with controls escaped.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if first_control(text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut escaper = Escaper::default();
    let mut out = Vec::with_capacity(text.len() + 16);
    escaper.push(text, &mut out);
    escaper.finish(&mut out);
    // Only whole characters and ASCII were written.
    Cow::Owned(String::from_utf8(out).unwrap_or_default())
}

/// The first control character that must not reach a terminal, with its byte position.
fn first_control(text: &str) -> Option<(usize, char)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let control = match byte {
            b'\n' | b'\t' => false,
            0..=0x1f | 0x7f => true,
            // The C1 controls, U+0080 to U+009F, are C2 80 to C2 9F in UTF-8.
            0xc2 => bytes.get(at + 1).is_some_and(|next| *next < 0xa0),
            // U+061C.
            0xd8 => bytes.get(at + 1) == Some(&0x9c),
            // U+200E and U+200F, U+202A to U+202E, U+2066 to U+2069: they change the order in which text is shown.
            0xe2 => matches!(
                bytes.get(at + 1..at + 3),
                Some([0x80, 0x8e | 0x8f | 0xaa..=0xae] | [0x81, 0xa6..=0xa9])
            ),
            _ => false,
        };
        if control {
            return text[at..].chars().next().map(|control| (at, control));
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests;
