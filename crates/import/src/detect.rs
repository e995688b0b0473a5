//! Detects the format of a file from its beginning.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Map, Value};

use myclaw_front::exit::CliError;

/// Bytes that are read. Headers have a few hundred.
const SNIFFED_BYTES: u64 = 64 * 1024;
/// Some editors begin a file with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The beginning of a single message, as all programs write it.
const FIRST_OF_MESSAGE: [&[u8]; 2] = [b"{\"role\":", b"{\"role\" :"];

/// Fields that only lines of Claude Code have; each line has one of them.
const CLAUDE_FIELDS: [&str; 4] = ["isSidechain", "leafUuid", "messageId", "sessionId"];

/// The layouts that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// A transcript of this program.
    Native,
    /// Pi's entries, one per line; Clawdbot and its successors write the same.
    Pi,
    /// Claude Code's lines.
    Claude,
    /// Codex's lines.
    Codex,
    /// One JSON document with a list of messages.
    MessageDocument,
    /// One message per line.
    MessageLines,
}

/// The layout of `file`. Afterwards its position is at the beginning again, after a byte order mark.
pub(super) fn detect(file: &File, path: &Path) -> Result<Format, CliError> {
    by_beginning(&beginning(file, path)?).ok_or_else(|| unknown(path))
}

/// Which of the two layouts of plain messages `file` has.
pub(super) fn messages(file: &File, path: &Path) -> Result<Format, CliError> {
    match by_beginning(&beginning(file, path)?) {
        Some(
            Format::Native | Format::Pi | Format::Claude | Format::Codex | Format::MessageLines,
        ) => Ok(Format::MessageLines),
        Some(Format::MessageDocument) => Ok(Format::MessageDocument),
        None => Err(unknown(path)),
    }
}

fn beginning(mut file: &File, path: &Path) -> Result<Vec<u8>, CliError> {
    let mut beginning = Vec::new();
    let read = file.take(SNIFFED_BYTES).read_to_end(&mut beginning);
    let mut begin = |beginning: &[u8]| {
        let mark = if beginning.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        file.seek(SeekFrom::Start(mark as u64))
    };
    read.and_then(|_| begin(&beginning)).map_err(|error| super::cannot_read(path, &error))?;
    Ok(beginning)
}

fn by_beginning(beginning: &[u8]) -> Option<Format> {
    let text = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning).trim_ascii_start();
    match text.first()? {
        b'[' => return Some(Format::MessageDocument),
        b'{' => {}
        _ => return None,
    }
    let (line, has_end) = match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&text[..end], true),
        None => (text, false),
    };
    let Ok(object) = serde_json::from_slice::<Map<String, Value>>(line) else {
        // A document over several lines, or a first line that is longer than the bytes that were read.
        let is_message = !has_end && FIRST_OF_MESSAGE.iter().any(|first| line.starts_with(first));
        return Some(if is_message { Format::MessageLines } else { Format::MessageDocument });
    };
    let kind = object.get("type").and_then(Value::as_str);
    match kind {
        // Both write other lines first, which have nothing in common with a message.
        _ if object.contains_key("payload") => Some(Format::Codex),
        None if object.contains_key("instructions") && object.contains_key("timestamp") => {
            Some(Format::Codex)
        }
        Some("session") if object.contains_key("sessionKey") => Some(Format::Native),
        Some("session") => Some(Format::Pi),
        Some(_) if CLAUDE_FIELDS.iter().any(|field| object.contains_key(*field)) => {
            Some(Format::Claude)
        }
        Some(_) if object.contains_key("message") || object.contains_key("parentId") => {
            Some(Format::Pi)
        }
        _ if object.contains_key("messages") => Some(Format::MessageDocument),
        _ if !object.contains_key("role") => None,
        // Rows without a header, as transcripts had them at first.
        _ if object.contains_key("ts") || object.contains_key("meta") => Some(Format::Native),
        _ => Some(Format::MessageLines),
    }
}

fn unknown(path: &Path) -> CliError {
    CliError::failure(format!(
        "{} is not a known session file; docs/develop/sessions.md lists the known formats, and --format selects one",
        path.display()
    ))
}
