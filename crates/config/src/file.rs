//! The config file as something to change: read once, changed by path, checked, and replaced as a whole.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_files::{Durability, LockError, LockFile, LockWait, NewFile, canonical, parent_of};
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::edit::{EditError, EditProblem, edit_config, find};
use crate::load::{load_text, read, without_mark};
use crate::masked::{self, MaskedValues};
use crate::{
    ConfigChange, ConfigError, Environment, Loaded, Paths, StarterModel, diagnose, starter_config,
    tree, write_config_if_missing,
};

/// How long to wait for another program that writes the file.
const PATIENCE: Duration = Duration::from_secs(2);
/// Hexadecimal digits of a version: enough that no two texts of a file share one.
const VERSION_DIGITS: usize = 32;

/// The text of the config file at one moment, or the text that it shall have.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigFile {
    paths: Paths,
    text: String,
    found: bool,
}

/// The text may hold secrets.
impl std::fmt::Debug for ConfigFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ConfigFile")
            .field("path", &self.paths.config_file())
            .field("found", &self.found)
            .finish_non_exhaustive()
    }
}

/// Why the config file was not replaced. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Something else wrote the file in the meantime.
    #[error("{} was changed in the meantime; read it again, then make the change again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file, its backup or its lock cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// The path to write.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl ConfigFile {
    /// Reads the file. If it does not exist, the text is that of a starter file without a model.
    ///
    /// # Errors
    /// The file cannot be read. Its content is not checked.
    pub fn read(paths: &Paths) -> Result<Self, ConfigError> {
        let (text, found) = match read(paths.config_file()) {
            Ok(text) => (text, true),
            Err(ConfigError::NotFound { .. }) => (starter_config(StarterModel::Unset), false),
            Err(error) => return Err(error),
        };
        Ok(Self { paths: paths.clone(), text, found })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.paths.config_file()
    }

    /// Whether the file exists.
    pub fn found(&self) -> bool {
        self.found
    }

    /// What tells this text apart from every other one: hexadecimal digits.
    pub fn version(&self) -> String {
        let hash = digest(&SHA256, self.text.as_bytes());
        let mut digits = myclaw_files::hex(hash.as_ref());
        digits.truncate(VERSION_DIGITS);
        digits
    }

    /// The values as the file has them, with [`crate::MASKED`] in place of each secret. `${NAME}` stays.
    ///
    /// # Errors
    /// The text is not JSON5.
    pub fn values(&self) -> Result<MaskedValues, ConfigError> {
        self.tree().map(|tree| masked::mask(&tree))
    }

    /// Whether the file has a value of its own at a place.
    ///
    /// # Errors
    /// The text is not JSON5.
    pub fn has(&self, path: &crate::ConfigPath) -> Result<bool, ConfigError> {
        self.tree().map(|tree| find(&tree, path.steps()).is_some())
    }

    fn tree(&self) -> Result<Value, ConfigError> {
        let text = without_mark(&self.text);
        tree::parse(text).map_err(|failure| diagnose::syntax(self.path(), text, failure))
    }

    /// This text with changes; comments and order stay. [`crate::MASKED`] in a value stands for the secret that is there now.
    ///
    /// # Errors
    /// The text is not JSON5, or a change does not fit it.
    pub fn with(&self, changes: &[ConfigChange]) -> Result<Self, EditError> {
        let mut changed = self.clone();
        for change in changes {
            let mut change = change.clone();
            changed.fill_in(&mut change)?;
            changed.text = edit_config(&changed.text, std::slice::from_ref(&change))?;
        }
        Ok(changed)
    }

    /// The same file with another text.
    #[must_use]
    pub fn with_text(&self, text: String) -> Self {
        Self { text, ..self.clone() }
    }

    /// The text, which may hold secrets.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text with every secret blanked out, each as long as it is.
    pub fn masked_text(&self) -> String {
        crate::mask::mask_secrets(&self.text)
    }

    /// Puts the secrets back for which a change has the placeholder.
    fn fill_in(&self, change: &mut ConfigChange) -> Result<(), EditError> {
        let path = change.path().clone();
        let tree = || self.tree().map_err(|_| EditProblem::Unreadable.at(&path));
        let is_filled = match change {
            ConfigChange::Set { value, .. } if masked::holds_mask(value) => {
                masked::fill_in(value, find(&tree()?, path.steps()))
            }
            ConfigChange::Append { value, .. } => !masked::holds_mask(value),
            ConfigChange::Set { .. } | ConfigChange::Unset { .. } => true,
        };
        if is_filled { Ok(()) } else { Err(EditProblem::NoSecretHere.at(&path)) }
    }

    /// Loads this text as if the file had it.
    ///
    /// # Errors
    /// As [`crate::load_config`].
    pub fn load(&self, environment: &Environment) -> Result<Loaded, ConfigError> {
        load_text(self.text.clone(), environment, self.paths.clone())
    }

    /// Gives the file this text, if its text is still that of `before`. The file is replaced as a whole, and the text
    /// before stays next to it as `<name>.bak`. A file that is a symbolic link stays one.
    ///
    /// # Errors
    /// The file has changed, or cannot be written.
    pub fn replace(&self, before: &Self) -> Result<(), WriteError> {
        let path = self.path();
        let changed = || WriteError::Changed { path: path.to_owned() };
        if !before.found {
            let written = write_config_if_missing(&self.paths, &self.text);
            return match written {
                Ok(scaffold) if scaffold.created => Ok(()),
                Ok(_) => Err(changed()),
                Err(ConfigError::Unwritable { path, source }) => {
                    Err(WriteError::Unwritable { path, source })
                }
                Err(_) => Err(changed()),
            };
        }
        let target = canonical(path).map_err(|_| changed())?;
        let beside = |suffix: &str| {
            let mut name = target.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        let unwritable =
            |path: &Path, source| WriteError::Unwritable { path: path.to_owned(), source };
        let lock = beside(".lock");
        let _held =
            LockFile::acquire(&lock, LockWait::Until(PATIENCE)).map_err(|error| match error {
                LockError::Held { .. } => changed(),
                LockError::Io { source, .. } => unwritable(&lock, source),
            })?;
        if read(path).ok().as_ref() != Some(&before.text) {
            return Err(changed());
        }
        let backup = beside(".bak");
        write(&backup, &before.text, None).map_err(|error| unwritable(&backup, error))?;
        let mode = fs::metadata(&target).map(|found| found.permissions()).ok();
        write(&target, &self.text, mode).map_err(|error| unwritable(&target, error))
    }
}

fn write(path: &Path, text: &str, mode: Option<fs::Permissions>) -> io::Result<()> {
    let mut file = NewFile::in_directory(&parent_of(path), ".myclaw.")?;
    file.write_all(text.as_bytes())?;
    if let Some(mode) = mode {
        file.as_file().set_permissions(mode)?;
    }
    file.put_at(path, Durability::Synced).map(drop)
}
