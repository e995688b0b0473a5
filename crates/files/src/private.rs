//! Files and directories that only their owner can read, and making their names durable.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::portable::{DirBuilderExt, OpenOptionsExt};

/// Mode of a private file.
const FILE_MODE: u32 = 0o600;
/// Mode of a private directory.
pub(crate) const DIRECTORY_MODE: u32 = 0o700;

/// Options that give a new file the mode 0600.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Creates `path` and its missing parents with the mode 0700. Directories that exist keep their mode.
///
/// Returns the directories that got a new entry, outermost first: pass them to [`sync_directory`](crate::sync_directory) if the new directories
/// must survive a power cut.
///
/// # Errors
/// An I/O error: no permission, no space, or a file in the place of a directory.
pub fn create_private_directory(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_dir() {
        return Ok(Vec::new());
    }
    let missing = path
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists());
    let changed: Vec<PathBuf> = missing.map(parent_of).collect();
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)?;
    Ok(changed.into_iter().rev().collect())
}

/// The directory that holds `path`; `.` for a bare file name.
pub fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}
