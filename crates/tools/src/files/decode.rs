//! Converts bytes to text and back, a line or a file at a time.

use encoding_rs::WINDOWS_1252;

/// Decoded text, with the data that maps it to its original bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// The text.
    pub text: String,
    /// Offsets in `text` just after each character that represents one byte that is not UTF-8, ascending.
    pub stray_ends: Vec<usize>,
    /// How many characters beyond ASCII were proper UTF-8.
    pub multibyte: usize,
}

/// Reads `bytes` as UTF-8. A byte that is not valid UTF-8 is read as Windows-1252, which has a character for every
/// byte. So old files in Latin-1 are readable, and every character can be mapped to its bytes.
///
/// The same bytes give the same text whether they are decoded as a whole or line by line.
pub(crate) fn decode_lossless(bytes: &[u8]) -> Decoded {
    let mut decoded = Decoded { text: String::with_capacity(bytes.len()), ..Decoded::default() };
    for chunk in bytes.utf8_chunks() {
        decoded.text.push_str(chunk.valid());
        decoded.multibyte += chunk.valid().bytes().filter(|byte| *byte >= 0xC0).count();
        for byte in chunk.invalid() {
            decoded.text.push(windows_1252_char(*byte));
            decoded.stray_ends.push(decoded.text.len());
        }
    }
    decoded
}

/// `text` as Windows-1252.
///
/// # Errors
/// The first character that this encoding does not have.
pub(crate) fn encode_windows_1252(text: &str) -> Result<Vec<u8>, char> {
    let (bytes, _, has_unmappable) = WINDOWS_1252.encode(text);
    if !has_unmappable {
        return Ok(bytes.into_owned());
    }
    let mut buffer = [0; 4];
    Err(text
        .chars()
        .find(|character| WINDOWS_1252.encode(character.encode_utf8(&mut buffer)).2)
        .unwrap_or(char::REPLACEMENT_CHARACTER))
}

fn windows_1252_char(byte: u8) -> char {
    let bytes = [byte];
    let (text, _) = WINDOWS_1252.decode_without_bom_handling(&bytes);
    text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER)
}
