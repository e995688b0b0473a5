//! Reading regular files that somebody else may have put there.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use crate::portable::{O_NOFOLLOW, O_NONBLOCK, OpenOptionsExt};

/// Opens a regular file for reading, following symbolic links. Never blocks: a FIFO, device, socket or directory is
/// refused, before it is opened, since opening a device may do something. The check is repeated on the open file, so that
/// replacing the path in between changes nothing.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for anything but a regular file; otherwise an I/O error.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open(path, &std::fs::metadata(path)?, 0)
}

/// Like [`open_regular`], but refuses a symbolic link as the last part of `path`: for files in a directory that others
/// can write to.
///
/// # Errors
/// As for [`open_regular`].
pub fn open_regular_unlinked(path: &Path) -> io::Result<File> {
    open(path, &std::fs::symlink_metadata(path)?, O_NOFOLLOW)
}

fn open(path: &Path, found: &Metadata, flags: i32) -> io::Result<File> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
    if !found.is_file() {
        return Err(refused());
    }
    // Without O_NONBLOCK, opening a FIFO waits for a writer and opening a terminal may wait for a carrier.
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK | flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(refused());
    }
    Ok(file)
}

/// Reads at most `limit` bytes of a regular file. A result of `limit` bytes may be only the beginning of the file.
///
/// # Errors
/// As for [`open_regular`].
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_file(open_regular(path)?, limit)
}

/// Reads at most `limit` bytes of an open file. There is room for all of it at once, so the file takes two reads.
pub(crate) fn read_file(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1));
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a file: UTF-8, or UTF-16 after its byte order mark, which is left out. What is no text becomes U+FFFD.
pub fn text_of_bytes(bytes: &[u8]) -> String {
    let from_units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, _) = bytes.as_chunks::<2>();
        let chars = char::decode_utf16(pairs.iter().map(|pair| unit(*pair)));
        chars.map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xFF, 0xFE, text @ ..] => from_units(text, u16::from_le_bytes),
        [0xFE, 0xFF, text @ ..] => from_units(text, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, text @ ..] => String::from_utf8_lossy(text).into_owned(),
        text => String::from_utf8_lossy(text).into_owned(),
    }
}

/// The text with U+FFFD in the place of each control character but line ends and tabs. For a text of others that nothing
/// changes later: a terminal, a log or a model would take such a character for something else.
pub fn without_controls(text: String) -> String {
    let is_odd = |sign: char| sign.is_control() && !matches!(sign, '\n' | '\r' | '\t');
    if text.contains(is_odd) { text.replace(is_odd, "\u{fffd}") } else { text }
}

/// The text after an escape sequence of a terminal (ECMA-48); `text` begins after its escape character. Of a sequence that is not
/// closed only the beginning is removed, so that no text is lost.
pub fn after_escape_sequence(text: &str) -> &str {
    match text.as_bytes().first() {
        Some(b'[') => {
            let parameters =
                text[1..].bytes().take_while(|byte| (0x20..=0x3f).contains(byte)).count();
            match text.as_bytes().get(1 + parameters) {
                Some(0x40..=0x7e) => &text[2 + parameters..],
                _ => &text[1..],
            }
        }
        // A command for the terminal (its title, a link), up to BEL or ESC \.
        Some(b']') => match text.find(['\u{7}', '\u{1b}', '\n']) {
            Some(end) if text[end..].starts_with('\u{7}') => &text[end + 1..],
            Some(end) if text[end..].starts_with("\u{1b}\\") => &text[end + 2..],
            _ => &text[1..],
        },
        // The choice of a character set has one more byte.
        Some(b'(' | b')') if text.as_bytes().get(1).is_some_and(u8::is_ascii_graphic) => &text[2..],
        Some(b'0'..=b'~') => &text[1..],
        _ => text,
    }
}
