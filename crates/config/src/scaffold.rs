//! The settings file to start from.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use myclaw_files::{Durability, NewFile, create_private_directory};

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
        create_private_directory(folder)
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
    let mut file = NewFile::in_directory(folder, ".myclaw.")?;
    file.write_all(STARTER_CONFIG.as_bytes())?;
    match file.put_at_free(path, Durability::Synced) {
        Ok(_) => Ok(true),
        Err(failure) if failure.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(failure) => Err(failure),
    }
}
