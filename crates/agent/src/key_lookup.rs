//! Checks whether a key is where the config says, without side effects: no command is run and no keyring is opened.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use myclaw_auth::AuthProfile;
use myclaw_config::{ExposeSecret as _, KeySource};
use myclaw_files::portable::program_file;

use crate::Home;

/// Most bytes that are read of a key file.
const MAX_KEY_FILE: u64 = 64 * 1024;
/// The program that reads the system's keyring.
const KEYRING_PROGRAM: &str = if cfg!(target_os = "macos") { "security" } else { "secret-tool" };

/// The result of looking for a key without fetching it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPresence {
    /// The key is there.
    There,
    /// The key comes from a command, a keyring or a pipe, which is not tried here.
    NotTried(&'static str),
    /// The key cannot be read; the reason.
    Missing(String),
}

/// Looks for the key of `profile`. The token of a login counts as present even if it has expired.
pub fn look_for_profile(profile: &AuthProfile, home: &Home) -> KeyPresence {
    match &profile.source {
        Some(source) if profile.login.is_none() => look_for_key(source, home),
        _ => KeyPresence::There,
    }
}

/// Looks for the key that is kept in `source`.
pub fn look_for_key(source: &KeySource, home: &Home) -> KeyPresence {
    match source {
        KeySource::Literal(key) if key.expose_secret().trim().is_empty() => {
            KeyPresence::Missing("it is empty".to_owned())
        }
        KeySource::Literal(_) => KeyPresence::There,
        KeySource::Environment(name) => match home.environment.get(name).map(str::trim) {
            None | Some("") => KeyPresence::Missing(format!("the variable {name} is not set")),
            Some(_) => KeyPresence::There,
        },
        KeySource::File(path) => look_in_file(path),
        KeySource::Command(_) => KeyPresence::NotTried("from a command"),
        KeySource::Keyring { .. } if find_program(KEYRING_PROGRAM).is_none() => {
            KeyPresence::Missing(format!(
                "{KEYRING_PROGRAM}, which reads the keyring, is not installed (in Debian and Ubuntu it is in \
                 libsecret-tools)"
            ))
        }
        KeySource::Keyring { .. } => KeyPresence::NotTried("from the keyring"),
    }
}

fn look_in_file(path: &Path) -> KeyPresence {
    let holds_key = || -> io::Result<Option<bool>> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() && !metadata.is_dir() {
            // Opening a named pipe would block until another process writes.
            return Ok(None);
        }
        let mut text = String::new();
        File::open(path)?.take(MAX_KEY_FILE).read_to_string(&mut text)?;
        Ok(Some(!text.trim().is_empty()))
    };
    match holds_key() {
        Ok(Some(true)) => KeyPresence::There,
        Ok(Some(false)) => {
            KeyPresence::Missing(format!("the key file {} is empty", path.display()))
        }
        Ok(None) => KeyPresence::NotTried("from a pipe"),
        Err(error) => {
            KeyPresence::Missing(format!("the key file {} cannot be read: {error}", path.display()))
        }
    }
}

/// The program of that name among the directories of `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| program_file(directory.join(name)))
        .find(|program| is_executable(program))
}

/// Whether `path` is a file that may be run.
#[cfg(unix)]
pub(crate) fn is_executable(path: &Path) -> bool {
    use myclaw_files::portable::PermissionsExt;
    fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Whether `path` is a file.
#[cfg(not(unix))]
pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file()
}
