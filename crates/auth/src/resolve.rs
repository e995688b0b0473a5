//! Fetches a key when a call is about to be made with it.

mod command;
mod renewal;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_config::KeySource;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

use crate::profile::{Validity, replacing_command};
use crate::{AuthProfile, RenewLogin};
use command::CommandFailure;
use renewal::Logins;

/// Largest file that is read as a key: a long token has some KiB.
const MAX_KEY_FILE: u64 = 64 * 1024;

/// Why there is no key. No message contains a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The variable is unset or blank.
    #[error(
        "the variable {name} is not set, or empty; set it, for example in .env in the state directory"
    )]
    Unset {
        /// Name of the variable.
        name: String,
    },
    /// The file cannot be read.
    #[error("the key file {} cannot be read: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file, command or keyring entry is empty.
    #[error("{origin} holds no key; it is empty")]
    Empty {
        /// The source, as written in the config.
        origin: String,
    },
    /// The command gave no key.
    #[error("the key command `{command}` {failure}")]
    Command {
        /// The command, as written in the config.
        command: String,
        /// The failure.
        failure: CommandFailure,
    },
    /// The credential has expired, and the store does not say how to renew it.
    #[error(
        "it has expired and cannot be renewed here; sign in again where it was made, or keep another key with `{}`",
        replacing_command(profile)
    )]
    Expired {
        /// Id of the profile.
        profile: String,
    },
    /// The login has expired, and its renewal failed.
    #[error("the login has expired and was not renewed: {why}")]
    NotRenewed {
        /// The failure.
        why: String,
    },
    /// The caller aborted.
    #[error("aborted while the key was fetched")]
    Aborted,
}

/// Fetches keys. Use one per process: the output of a key command is kept, so that the command runs once.
#[derive(Debug, Clone)]
pub struct KeyResolver {
    variables: Arc<BTreeMap<String, String>>,
    printed: Arc<Mutex<HashMap<Vec<String>, SecretString>>>,
    logins: Logins,
}

impl KeyResolver {
    /// Creates a resolver that looks up variables in this list and passes them to the commands it runs. The commands
    /// are the user's own, and variables unlock password managers.
    pub fn new<K: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self {
            variables: Arc::new(variables.collect()),
            printed: Arc::default(),
            logins: Logins::default(),
        }
    }

    /// Adds a `renewer`, which renews logins that have expired.
    #[must_use]
    pub fn with_renewer(self, renewer: Arc<dyn RenewLogin>) -> Self {
        Self { logins: Logins::renewed_by(renewer), ..self }
    }

    /// The key of a profile; `None` if it has none.
    ///
    /// # Errors
    /// [`KeyError`].
    pub async fn resolve(
        &self,
        profile: &AuthProfile,
        now_ms: u64,
        cancel: &CancellationToken,
    ) -> Result<Option<SecretString>, KeyError> {
        let source = profile.source.as_ref().map(KeySource::kind).unwrap_or("none");
        tracing::debug!(
            profile = profile.id,
            source,
            login = profile.login.is_some(),
            "fetching the key"
        );
        if let Some(login) = &profile.login {
            return self.logins.token(profile, login, now_ms, cancel).await.map(Some);
        }
        if profile.validity(now_ms) == Validity::Ended {
            return Err(KeyError::Expired { profile: profile.id.clone() });
        }
        match &profile.source {
            Some(source) => self.fetch(source, cancel).await.map(Some),
            None => Ok(None),
        }
    }

    /// Forgets the output of a profile's command: a key that was refused may have been replaced since.
    pub fn forget(&self, profile: &AuthProfile) {
        if let Some(command) = profile.source.as_ref().and_then(command::of_source) {
            self.printed.lock().remove(&command.words);
        }
    }

    /// Records that a provider refused the token of a login, so that the login is renewed before its next use, even if
    /// it has not expired. Returns whether it can be renewed; if not, nothing happens.
    pub fn refuse_login(&self, profile: &AuthProfile) -> bool {
        self.logins.refuse(profile)
    }

    async fn fetch(
        &self,
        source: &KeySource,
        cancel: &CancellationToken,
    ) -> Result<SecretString, KeyError> {
        match source {
            KeySource::Literal(key) => Ok(key.clone()),
            KeySource::Environment(name) => {
                let value = self.variables.get(name).map(|value| value.trim());
                let value = value.filter(|value| !value.is_empty());
                value.map(SecretString::from).ok_or_else(|| KeyError::Unset { name: name.clone() })
            }
            KeySource::File(path) => {
                let path = path.clone();
                // A named pipe or a network drive may be slow, which must not block other work.
                let reading = tokio::task::spawn_blocking(move || read_key_file(&path));
                reading.await.unwrap_or(Err(KeyError::Aborted))
            }
            KeySource::Command(_) | KeySource::Keyring { .. } => {
                let Some(command) = command::of_source(source) else {
                    return Err(KeyError::Aborted);
                };
                let known = || self.printed.lock();
                if let Some(key) = known().get(&command.words) {
                    return Ok(key.clone());
                }
                let key = command.run(&self.variables, cancel).await?;
                known().insert(command.words, key.clone());
                Ok(key)
            }
        }
    }
}

fn read_key_file(path: &Path) -> Result<SecretString, KeyError> {
    let unreadable = |source| KeyError::File { path: path.to_path_buf(), source };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(MAX_KEY_FILE).read_to_string(&mut text).map_err(unreadable)?;
    let text = SecretString::from(text);
    first_line(text.expose_secret())
        .ok_or_else(|| KeyError::Empty { origin: format!("the file {}", path.display()) })
}

/// The first line that is not blank, trimmed: password managers print the password first.
fn first_line(text: &str) -> Option<SecretString> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(SecretString::from)
}

#[cfg(test)]
mod tests;
