//! A text file in memory, and edits of it that leave every other byte alone.

use std::ops::Range;

use super::decode::{decode_lossless, encode_windows_1252};

/// A text file: its bytes, and the decoded text.
#[derive(Debug)]
pub(crate) struct Document {
    bytes: Vec<u8>,
    text: String,
    layout: Layout,
}

/// How characters of the text map to bytes.
#[derive(Debug)]
enum Layout {
    /// UTF-8, perhaps with other bytes in it.
    Utf8 {
        /// Bytes of a byte order mark in front of the text.
        mark: usize,
        /// Offsets in the text just after each character that represents one byte outside UTF-8, with the number of
        /// bytes by which the text up to there is longer than the file.
        strays: Vec<(usize, usize)>,
        new_text: NewText,
    },
    /// UTF-16 after its byte order mark.
    Utf16(ByteOrder),
}

/// The encoding that new text gets in a file that is UTF-8 or an old one-byte encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NewText {
    Utf8,
    Windows1252,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

/// The replacement of one range of a document's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Splice {
    /// The replaced range, as offsets in [`Document::text`].
    pub range: Range<usize>,
    /// The new text.
    pub replacement: String,
}

/// New text holds a character that the encoding of the file does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the file is in an old one-byte encoding (read as Windows-1252), which has no {character:?}. Leave that character \
     out, or convert the file to UTF-8 first (bash: iconv -f WINDOWS-1252 -t UTF-8)"
)]
pub(crate) struct Unencodable {
    character: char,
}

/// The byte order mark that some programs put in front of UTF-8.
pub(crate) const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";
const UTF16_MARK_BYTES: usize = 2;

impl Document {
    /// Decodes a file's bytes. Any bytes give some text; [`recognise`](super::recognise) decides whether a file counts
    /// as text.
    pub(crate) fn decode(bytes: Vec<u8>) -> Self {
        let order = match bytes.as_slice() {
            [0xFF, 0xFE, ..] => Some(ByteOrder::Little),
            [0xFE, 0xFF, ..] => Some(ByteOrder::Big),
            _ => None,
        };
        if let Some(order) = order {
            let text = decode_utf16(&bytes[UTF16_MARK_BYTES..], order);
            return Self { bytes, text, layout: Layout::Utf16(order) };
        }
        let mark = if bytes.starts_with(UTF8_MARK) { UTF8_MARK.len() } else { 0 };
        let decoded = decode_lossless(&bytes[mark..]);
        // A UTF-8 file with a few other bytes stays UTF-8. If all bytes beyond ASCII are such bytes, the file has an
        // old one-byte encoding.
        let new_text = if decoded.stray_ends.len() > decoded.multibyte {
            NewText::Windows1252
        } else {
            NewText::Utf8
        };
        let strays = cumulative_excess(&decoded.text, &decoded.stray_ends);
        Self { bytes, text: decoded.text, layout: Layout::Utf8 { mark, strays, new_text } }
    }

    /// The whole text without a byte order mark; line endings are unchanged.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of the file after `splices`, which are in order and do not overlap.
    ///
    /// # Errors
    /// New text cannot be written in the file's encoding.
    pub(crate) fn spliced(&self, splices: &[Splice]) -> Result<Vec<u8>, Unencodable> {
        let mut result = Vec::with_capacity(self.bytes.len());
        let mut position = Position { text: 0, bytes: self.start_of_text() };
        let mut copied = 0;
        for splice in splices {
            let (range, replacement) = self.without_common_ends(splice);
            position = self.advance(position, range.start);
            result.extend_from_slice(&self.bytes[copied..position.bytes]);
            result.extend_from_slice(&self.encode(replacement)?);
            position = self.advance(position, range.end);
            copied = position.bytes;
        }
        result.extend_from_slice(&self.bytes[copied..]);
        Ok(result)
    }

    /// The part of a splice that really changes: what the old and the new text share at either end keeps its bytes.
    fn without_common_ends<'s>(&self, splice: &'s Splice) -> (Range<usize>, &'s str) {
        let old = &self.text[splice.range.clone()];
        let new = splice.replacement.as_str();
        let prefix: usize = old
            .chars()
            .zip(new.chars())
            .take_while(|(old, new)| old == new)
            .map(|(old, _)| old.len_utf8())
            .sum();
        let suffix: usize = old[prefix..]
            .chars()
            .rev()
            .zip(new[prefix..].chars().rev())
            .take_while(|(old, new)| old == new)
            .map(|(old, _)| old.len_utf8())
            .sum();
        let range = splice.range.start + prefix..splice.range.end - suffix;
        (range, &new[prefix..new.len() - suffix])
    }

    fn start_of_text(&self) -> usize {
        match &self.layout {
            Layout::Utf8 { mark, .. } => *mark,
            Layout::Utf16(_) => UTF16_MARK_BYTES,
        }
    }

    fn advance(&self, from: Position, text: usize) -> Position {
        let bytes = match &self.layout {
            Layout::Utf8 { mark, strays, .. } => {
                let before = strays.partition_point(|(end, _)| *end <= text);
                let excess = if before == 0 { 0 } else { strays[before - 1].1 };
                mark + text - excess
            }
            Layout::Utf16(_) => {
                let between = &self.text[from.text..text];
                from.bytes + 2 * between.chars().map(char::len_utf16).sum::<usize>()
            }
        };
        Position { text, bytes }
    }

    fn encode(&self, text: &str) -> Result<Vec<u8>, Unencodable> {
        match &self.layout {
            Layout::Utf8 { new_text: NewText::Utf8, .. } => Ok(text.as_bytes().to_vec()),
            Layout::Utf8 { new_text: NewText::Windows1252, .. } => {
                encode_windows_1252(text).map_err(|character| Unencodable { character })
            }
            Layout::Utf16(ByteOrder::Little) => {
                Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect())
            }
            Layout::Utf16(ByteOrder::Big) => {
                Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect())
            }
        }
    }
}

/// The same position in the text and in the bytes.
#[derive(Debug, Clone, Copy)]
struct Position {
    text: usize,
    bytes: usize,
}

/// Half a surrogate pair becomes U+FFFD, which takes two bytes as well; an odd last byte belongs to no character.
fn decode_utf16(bytes: &[u8], order: ByteOrder) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| match order {
        ByteOrder::Little => u16::from_le_bytes(*pair),
        ByteOrder::Big => u16::from_be_bytes(*pair),
    });
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn cumulative_excess(text: &str, stray_ends: &[usize]) -> Vec<(usize, usize)> {
    let mut excess = 0;
    stray_ends
        .iter()
        .map(|&end| {
            let width = text[..end].chars().next_back().map_or(1, char::len_utf8);
            excess += width - 1;
            (end, excess)
        })
        .collect()
}

#[cfg(test)]
mod tests;
