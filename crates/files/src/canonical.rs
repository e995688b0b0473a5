//! Paths without links, as people write them.

use std::io;
use std::path::{Path, PathBuf};

use crate::portable::usual_path;

/// The path of what is at `path`, absolute and without links. Unlike [`std::fs::canonicalize`] it has the form on Windows that people
/// and programs know, `C:\…` and not `\\?\C:\…`.
///
/// # Errors
/// There is nothing at `path`, or it cannot be reached.
pub fn canonical(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    std::fs::canonicalize(path).map(usual_path)
}

/// As [`canonical`]. A path that leads nowhere stays as it is.
pub fn canonical_or_same(path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    canonical(path).unwrap_or_else(|_| usual_path(path.to_owned()))
}
