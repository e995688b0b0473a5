//! The bytes of a page as text.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Where a page may name its encoding: its first 1024 bytes, as the HTML standard has it.
const META_BYTES: usize = 1024;

/// Decodes text. The encoding is that of the byte order mark, of the `content-type` header, of the page itself, or else
/// UTF-8; text that is not UTF-8 then is Windows-1252, as browsers have it.
pub(crate) fn decode(bytes: &[u8], content_type: Option<&str>) -> String {
    let named = content_type.and_then(charset_in).or_else(|| {
        let start = &bytes[..bytes.len().min(META_BYTES)];
        charset_in(&String::from_utf8_lossy(start))
    });
    let encoding = named.unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        // The text ends in the middle of a character.
        Err(error) if error.error_len().is_none() && !bytes[..error.valid_up_to()].is_ascii() => {
            UTF_8
        }
        Err(_) => WINDOWS_1252,
    });
    encoding.decode(bytes).0.into_owned()
}

/// The encoding after the first `charset=` or XML's `encoding=`.
fn charset_in(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let after = ["charset", "encoding"].into_iter().find_map(|key| lower.split_once(key))?.1;
    let value = after.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = value.find(|char: char| !char.is_ascii_alphanumeric() && !"-_:.".contains(char));
    Encoding::for_label(&value.as_bytes()[..end.unwrap_or(value.len())])
}

#[cfg(test)]
mod tests;
