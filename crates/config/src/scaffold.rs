//! The settings file to start from.

use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{ConfigError, Paths};

/// A commented file with one provider, for a person to go on from.
pub const STARTER_CONFIG: &str = include_str!("../templates/myclaw.json5");

/// What [`scaffold_config_if_missing`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffold {
    /// The settings file.
    pub path: PathBuf,
    /// Whether it was written now; otherwise it was there and is unchanged.
    pub created: bool,
}

/// Writes the starter file, readable by its owner alone, unless there is something in its place. The file appears whole
/// or not at all, and one that somebody else writes at the same time is never replaced. Makes the state folder too.
///
/// # Errors
/// [`ConfigError::Unwritable`].
pub fn scaffold_config_if_missing(paths: &Paths) -> Result<Scaffold, ConfigError> {
    let path = paths.config_file();
    let folder = path.parent().unwrap_or(paths.state_dir());
    for folder in [paths.state_dir(), folder] {
        make_private_folder(folder)
            .map_err(|source| ConfigError::Unwritable { path: folder.to_path_buf(), source })?;
    }
    let created = create(path, folder)
        .map_err(|source| ConfigError::Unwritable { path: path.to_path_buf(), source })?;
    Ok(Scaffold { path: path.to_path_buf(), created })
}

fn create(path: &Path, folder: &Path) -> io::Result<bool> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    // A temporary file is readable by its owner alone, and is removed if anything goes wrong.
    let mut file =
        tempfile::Builder::new().prefix(".myclaw.").suffix(".tmp").tempfile_in(folder)?;
    file.write_all(STARTER_CONFIG.as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(failure) if failure.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(failure) => Err(failure.error),
    }
}

/// Makes a folder, and those above it, that others cannot look into, for settings, keys and conversations lie in the
/// state folder, which may be among them. What exists stays as it is.
///
/// # Errors
/// What the system says: no permission, no space, or something that is no folder in its place.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
