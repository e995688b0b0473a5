//! API keys in the config: the key itself, or the place where it is kept.
//!
//! | written | means |
//! |---|---|
//! | `!command` | what a shell command prints |
//! | `file:path` | what a file holds |
//! | `env:NAME` | a variable, looked up when the key is needed |
//! | `keyring:service/account` | an entry of the system's keyring |
//! | `literal:text` | the text itself, even if it begins like one of these |
//! | anything else | the key itself |
//!
//! A value that was replaced from a variable is always a key and never one of these: variables may come from the `.env`
//! file of somebody else's project, which must not be able to name a command (see [`as_literal`]).

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use crate::ConfigError;
use crate::Paths;

const COMMAND: &str = "!";
const FILE: &str = "file:";
const ENVIRONMENT: &str = "env:";
const KEYRING: &str = "keyring:";
const LITERAL: &str = "literal:";

/// Default service of keys in the system's keyring.
pub const KEYRING_SERVICE: &str = "myclaw";

/// Where a key comes from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// The key itself.
    Literal(SecretString),
    /// The variable of this name.
    Environment(String),
    /// The content of this file.
    File(PathBuf),
    /// The first line that this command prints; a shell runs it.
    Command(String),
    /// An entry of the system's keyring.
    Keyring {
        /// The program or service that the entry belongs to.
        service: String,
        /// The entry's account.
        account: String,
    },
}

impl KeySource {
    /// Reads a key as it is written in the config. `resolve_path` makes a path absolute.
    ///
    /// # Errors
    /// The error of `resolve_path`.
    pub fn parse<E>(
        written: &SecretString,
        resolve_path: impl FnOnce(&str) -> Result<PathBuf, E>,
    ) -> Result<Self, E> {
        let text = written.expose_secret().trim();
        Ok(if let Some(command) = text.strip_prefix(COMMAND) {
            Self::Command(command.trim().to_owned())
        } else if let Some(path) = text.strip_prefix(FILE) {
            Self::File(resolve_path(path.trim())?)
        } else if let Some(name) = text.strip_prefix(ENVIRONMENT) {
            Self::Environment(name.trim().to_owned())
        } else if let Some(entry) = text.strip_prefix(KEYRING) {
            let (service, account) = entry.split_once('/').unwrap_or((KEYRING_SERVICE, entry));
            Self::Keyring { service: service.to_owned(), account: account.to_owned() }
        } else {
            let key = text.strip_prefix(LITERAL).unwrap_or(text);
            Self::Literal(SecretString::from(key))
        })
    }

    /// Reads a key of the config file. Relative paths start at the directory of the config file.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`] if a path begins with `~` and there is no home, [`ConfigError::NoPaths`] if it is relative
    /// and the config was made without paths.
    pub fn from_config(written: &SecretString, paths: Option<&Paths>) -> Result<Self, ConfigError> {
        Self::parse(written, |path| match paths {
            Some(paths) => paths.resolve_in_config(path),
            None if Path::new(path).is_absolute() => Ok(PathBuf::from(path)),
            None => Err(ConfigError::NoPaths),
        })
    }

    /// One word for the kind of source, for logs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Literal(_) => "literal",
            Self::Environment(_) => "variable",
            Self::File(_) => "file",
            Self::Command(_) => "command",
            Self::Keyring { .. } => "keyring",
        }
    }

    /// The source as written in the config; `None` for a literal key, which is never shown.
    pub fn describe(&self) -> Option<String> {
        match self {
            Self::Literal(_) => None,
            Self::Environment(name) => Some(format!("{ENVIRONMENT}{name}")),
            Self::File(path) => Some(format!("{FILE}{}", path.display())),
            Self::Command(command) => Some(format!("{COMMAND}{command}")),
            Self::Keyring { service, account } => Some(format!("{KEYRING}{service}/{account}")),
        }
    }
}

/// Whether a value is a command. Its text is passed to the shell unchanged.
pub(crate) fn is_command(written: &str) -> bool {
    written.trim_start().starts_with(COMMAND)
}

/// Whether a value names the place of a key, rather than being the key.
fn is_marked(written: &str) -> bool {
    let written = written.trim_start();
    [COMMAND, FILE, ENVIRONMENT, KEYRING, LITERAL].iter().any(|mark| written.starts_with(mark))
}

/// Marks `value`, which was produced from `written` by replacing variables, so that it is read as a key even if it
/// looks like a source.
pub(crate) fn as_literal(written: &str, value: String) -> String {
    if is_marked(&value) && !is_marked(written) { format!("{LITERAL}{value}") } else { value }
}

#[cfg(test)]
mod tests;
