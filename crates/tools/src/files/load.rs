//! Reads a whole file into memory for a change.

use std::fs::{File, Metadata};
use std::io::Read;

use myclaw_engine::ToolError;
use myclaw_files::open_real;
use myclaw_files::portable::PermissionsExt;

use super::{Document, FileKind, recognise, refuse_binary, shown_size};
use crate::changes::Fingerprint;
use crate::support::{ResolvedPath, io_failure};

/// Largest file that is changed in memory. A larger one is data rather than text, and a change would need several times
/// its size.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Most lines of such a file: the data about each line takes as much memory as a short line.
const MAX_LINES: usize = 4_000_000;

/// A text file with its metadata.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Its content.
    pub document: Document,
    /// Mode and owner, which a change keeps.
    pub metadata: Metadata,
}

impl Loaded {
    /// Identifies the content and the mode.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.document.bytes(), Some(self.metadata.permissions().mode()))
    }
}

/// Reads a text file for a change. `action` is a verb for errors, as in "edit".
///
/// # Errors
/// It is missing, not a regular file, too large or not text.
pub(crate) fn load(path: &ResolvedPath, action: &str) -> Result<Loaded, ToolError> {
    let (bytes, metadata) = read_whole(path, action)?;
    require_text(path, action, &bytes)?;
    Ok(Loaded { document: Document::decode(bytes), metadata })
}

/// Reads any regular file that is small enough to be changed in memory.
///
/// # Errors
/// It is missing, not a regular file or too large.
pub(crate) fn read_whole(
    path: &ResolvedPath,
    action: &str,
) -> Result<(Vec<u8>, Metadata), ToolError> {
    let (file, metadata) = open_regular(path, action)?;
    let too_large = |problem: String| {
        ToolError::Failed(format!(
            "cannot {action} {}: it {problem}. Use bash with sed or a script",
            path.shown
        ))
    };
    let mut bytes = Vec::new();
    if metadata.len() <= MAX_BYTES {
        bytes.reserve_exact(metadata.len() as usize);
        // The file may grow meanwhile, and those in /proc say that they are empty.
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| io_failure(action, path, &error))?;
    }
    let size = metadata.len().max(bytes.len() as u64);
    if size > MAX_BYTES {
        return Err(too_large(format!(
            "is larger ({}) than the limit of {}",
            shown_size(size),
            shown_size(MAX_BYTES)
        )));
    }
    let lines = memchr::memchr_iter(b'\n', &bytes).count();
    if lines > MAX_LINES {
        return Err(too_large(format!("has {lines} lines, more than the limit of {MAX_LINES}")));
    }
    Ok((bytes, metadata))
}

/// Checks that the content of a file is text.
///
/// # Errors
/// It is not text; the error says what it is.
pub(crate) fn require_text(
    path: &ResolvedPath,
    action: &str,
    bytes: &[u8],
) -> Result<(), ToolError> {
    match recognise(bytes) {
        FileKind::Text => Ok(()),
        FileKind::Binary(kind) => Err(refuse_binary(action, &path.shown, kind, bytes.len() as u64)),
        FileKind::Image(kind) => Err(ToolError::Failed(format!(
            "cannot {action} {}: it is a picture ({}), not text",
            path.shown,
            kind.mime_type()
        ))),
    }
}

/// Refuses a file that nobody may write to. The system would allow a replacement, because that needs only the right to
/// change the directory.
///
/// # Errors
/// Nobody may write to it.
pub(crate) fn require_writable(path: &ResolvedPath, metadata: &Metadata) -> Result<(), ToolError> {
    if metadata.permissions().readonly() {
        return Err(ToolError::Failed(format!(
            "{} is read-only, which may be on purpose. Choose another file, or ask the user before you make it \
             writable (bash: chmod u+w)",
            path.shown
        )));
    }
    Ok(())
}

/// Opens a regular file for reading.
///
/// # Errors
/// If it is missing, a directory or a special file.
pub(crate) fn open_regular(
    path: &ResolvedPath,
    action: &str,
) -> Result<(File, Metadata), ToolError> {
    require_regular_file(path, action)?;
    let opened =
        open_real(&path.real).and_then(|file| file.metadata().map(|metadata| (file, metadata)));
    opened.map_err(|error| io_failure(action, path, &error))
}

/// Examines a path without opening it, because opening a pipe or a device could block forever.
///
/// # Errors
/// If it is missing, a directory or a special file.
pub(crate) fn require_regular_file(
    path: &ResolvedPath,
    action: &str,
) -> Result<Metadata, ToolError> {
    let metadata =
        std::fs::metadata(&path.real).map_err(|error| io_failure(action, path, &error))?;
    if metadata.is_dir() {
        return Err(ToolError::Failed(format!(
            "cannot {action} {}: it is a directory. See what is in it with ls",
            path.shown
        )));
    }
    if !metadata.is_file() {
        return Err(ToolError::Failed(format!(
            "cannot {action} {}: it is a special file (a pipe, socket or device), not a regular one",
            path.shown
        )));
    }
    Ok(metadata)
}
