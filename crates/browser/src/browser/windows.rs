//! Windows: no browser is driven there.

use std::fs::File;
use std::io;
use std::path::Path;

/// Always an error.
pub(super) fn lifeline(_path: &Path) -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "the browser tool does not work on Windows"))
}

/// Nobody does.
pub(super) fn answers(_socket: &Path) -> bool {
    false
}
