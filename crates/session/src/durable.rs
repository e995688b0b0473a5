//! Private files and directories, and making their creation durable.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Conversations are private: only their owner reads them.
const FILE_MODE: u32 = 0o600;
/// The same for directories.
const DIRECTORY_MODE: u32 = 0o700;

/// Options under which a new file belongs to its owner alone.
pub(crate) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Makes `path` and its missing parents, private to their owner. Gives the directories whose content changed by it,
/// outermost first: to be synchronised if the new directories must survive a power cut.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<Vec<PathBuf>> {
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

/// The directory that holds `path`.
pub(crate) fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
