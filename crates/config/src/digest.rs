//! Whether a part of the config is the same as before, with its secrets, which nothing else that is serialised shows.

use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;

/// The key of all digests of this process: nobody who sees one can try passwords against it.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

thread_local! {
    /// Whether secrets are serialised as digests in this thread.
    static IS_DIGESTING: Cell<bool> = const { Cell::new(false) };
}

/// A number that is the same for equal values of a section, its secrets included. `left_out` are keys of the section that do
/// not count. It is of use within this process only.
pub fn digest(section: &impl Serialize, left_out: &[&str]) -> u64 {
    let digesting = Digesting::begin();
    let value = serde_json::to_value(section);
    drop(digesting);
    // Keys of all sections are texts, so there is always a value.
    let mut value = value.unwrap_or_default();
    if let Some(keys) = value.as_object_mut() {
        keys.retain(|key, _| !left_out.contains(&key.as_str()));
    }
    KEY.hash_one(value.to_string())
}

/// The same for a secret.
pub fn secret_digest(secret: &SecretString) -> u64 {
    KEY.hash_one(secret.expose_secret())
}

/// What is written for a secret: a digest within [`digest`], else `None`.
pub(crate) fn written_secret(secret: &SecretString) -> Option<String> {
    IS_DIGESTING.get().then(|| secret_digest(secret).to_string())
}

/// Secrets are serialised as digests until this is dropped, after a panic as well.
struct Digesting;

impl Digesting {
    fn begin() -> Self {
        IS_DIGESTING.set(true);
        Self
    }
}

impl Drop for Digesting {
    fn drop(&mut self) {
        IS_DIGESTING.set(false);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::digest;
    use crate::{Config, TelegramConfig};

    fn config(channels: &serde_json::Value) -> Config {
        serde_json::from_value(json!({"channels": channels})).unwrap()
    }

    fn telegram(section: &serde_json::Value) -> TelegramConfig {
        config(&json!({"telegram": section})).channels.telegram.unwrap()
    }

    #[test]
    fn a_digest_tells_secrets_apart_and_shows_none() {
        let first =
            telegram(&json!({"botToken": "1:secret", "accounts": {"b": {"botToken": "2:b"}}}));
        let same =
            telegram(&json!({"accounts": {"b": {"botToken": "2:b"}}, "botToken": "1:secret"}));
        let other =
            telegram(&json!({"botToken": "1:other", "accounts": {"b": {"botToken": "2:b"}}}));
        let inner =
            telegram(&json!({"botToken": "1:secret", "accounts": {"b": {"botToken": "3:b"}}}));
        assert_eq!(digest(&first, &[]), digest(&same, &[]));
        assert_ne!(digest(&first, &[]), digest(&other, &[]));
        assert_ne!(digest(&first, &[]), digest(&inner, &[]));
        assert_eq!(digest(&first, &["botToken"]), digest(&other, &["botToken"]));
        let shown = serde_json::to_string(&first).unwrap();
        assert!(shown.contains("[redacted]") && !shown.contains("secret\""), "{shown}");
    }
}
