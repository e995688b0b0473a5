//! The keys that this program knows.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use myclaw_auth::AuthFile;
use myclaw_config::{Config, Environment, ExposeSecret as _, KeySource, Paths};
use myclaw_engine::KnownSecrets;
use serde_json::Value;

use crate::{Home, SessionConfig};

/// Most bytes of a file that holds a key.
const MAX_KEY_BYTES: u64 = 64 * 1024;
/// The gateway's token, in the state directory.
const GATEWAY_TOKEN: &str = "gateway/token";
/// Files of the state directory with the token of the gateway that runs, and of this node.
const TOKEN_FILES: [&str; 2] = ["gateway/running.json", "node/paired.json"];
/// A variable whose name contains one of these is kept out of the log.
const LOG_WORDS: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];
/// Words in the name of a variable or header that holds a key.
const KEY_WORDS: [&str; 5] = ["key", "keys", "apikey", "authorization", "cookie"];
/// Ends of such words.
const KEY_ENDINGS: [&str; 6] =
    ["token", "secret", "password", "passwd", "passphrase", "credentials"];

/// The secrets that a line of the log could hold: those that are written in the config and the key store, and the variables
/// whose names say that they hold one.
pub fn written_secrets(
    config: &Config,
    stored: &AuthFile,
    environment: &Environment,
) -> Vec<String> {
    let variables = environment.variables().filter(|(name, _)| {
        let name = name.to_ascii_uppercase();
        LOG_WORDS.iter().any(|word| name.contains(word))
    });
    let headers = config.headers().map(|(_, value)| value);
    let written = config.secrets().chain(headers).chain(stored.secrets());
    variables
        .map(|(_, value)| value.to_owned())
        .chain(written.map(|secret| secret.expose_secret().to_owned()))
        .collect()
}

impl SessionConfig {
    /// The keys that are removed from the results of the session's tools. Reads the key store and files with keys; blocks
    /// for some system calls.
    pub(crate) fn known_secrets(&self) -> Arc<KnownSecrets> {
        let Home { environment, paths, known_secrets, .. } = &self.home;
        let stored = self.home.stored_keys(&self.agent);
        let written = known_keys(&self.config, &stored, environment, paths);
        known_secrets.learn(written.iter().map(String::as_str));
        Arc::clone(known_secrets)
    }
}

impl Home {
    /// Keeps a secret of this program out of the results of all tools, as long as the program runs.
    pub fn keep_secret(&self, secret: &str) {
        self.known_secrets.learn([secret]);
    }
}

/// [`written_secrets`] for texts in which nothing else may be removed: the keys themselves instead of the places where they
/// are kept, and of variables and headers only what looks like a key.
fn known_keys(
    config: &Config,
    stored: &AuthFile,
    environment: &Environment,
    paths: &Paths,
) -> Vec<String> {
    let is_key = |(name, value): &(&str, &str)| names_a_key(name) && is_no_place(value);
    let variables = environment.variables().filter(is_key);
    let mut keys: Vec<String> = variables.map(|(_, value)| value.to_owned()).collect();
    keys.extend(stored.secrets().map(|secret| secret.expose_secret().to_owned()));
    for written in config.secrets() {
        match KeySource::from_config(written, Some(paths)) {
            Ok(KeySource::Literal(key)) => keys.push(key.expose_secret().to_owned()),
            Ok(KeySource::File(path)) => keys.extend(key_in(&path)),
            Ok(KeySource::Environment(name)) => {
                keys.extend(environment.get(&name).map(str::to_owned));
            }
            // What a command or the keyring gives is learned when it is used.
            Ok(KeySource::Command(_) | KeySource::Keyring { .. }) | Err(_) => {}
        }
    }
    let headers = config.headers().map(|(name, value)| (name, value.expose_secret()));
    keys.extend(headers.filter(is_key).map(|(_, value)| without_scheme(value).to_owned()));
    keys.extend(key_in(&paths.state_dir().join(GATEWAY_TOKEN)));
    let files = TOKEN_FILES.iter().filter_map(|name| key_in(&paths.state_dir().join(name)));
    let parsed = files.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
    keys.extend(parsed.filter_map(|file| Some(file.get("token")?.as_str()?.to_owned())));
    keys
}

/// The key in `Bearer KEY`.
fn without_scheme(header: &str) -> &str {
    header.split_whitespace().next_back().unwrap_or_default()
}

/// Whether the name of a variable or header says that it holds a key.
fn names_a_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(['_', '-']).any(|word| {
        KEY_WORDS.contains(&word) || KEY_ENDINGS.iter().any(|ending| word.ends_with(ending))
    })
}

/// A path or an address is not a key, whatever its name says.
fn is_no_place(value: &str) -> bool {
    !value.starts_with(['/', '.', '~']) && !value.contains("://")
}

fn key_in(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > MAX_KEY_BYTES {
        return None;
    }
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests;
