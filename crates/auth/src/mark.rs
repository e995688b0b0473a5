//! Marks that tell which key a failure was about. A profile keeps its name when its key is replaced in the config or in
//! a variable, and failures of the old key say nothing about the new one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use myclaw_config::KeySource;
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use ring::rand::SecureRandom as _;
use secrecy::{ExposeSecret as _, SecretString};

use crate::AuthProfile;

/// Bytes of a digest that are kept: enough to distinguish two keys, far too few to recover one.
const MARK_BYTES: usize = 4;
/// Bytes of a salt.
const SALT_BYTES: usize = 16;

/// The keys that this process has in memory, by their profiles' names in the store. All clones of a store share them,
/// so that the code that records a failure need not know the key.
#[derive(Clone, Default)]
pub(crate) struct KnownKeys(Arc<Mutex<BTreeMap<String, SecretString>>>);

impl fmt::Debug for KnownKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KnownKeys")
    }
}

/// Two stores are equal if they are the same file, whichever keys are known.
impl PartialEq for KnownKeys {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for KnownKeys {}

impl KnownKeys {
    /// Stores the key of the profile that the store calls `name`, or forgets it.
    pub(crate) fn note(&self, name: String, key: Option<SecretString>) {
        let mut keys = self.0.lock();
        match key {
            Some(key) => keys.insert(name, key),
            None => keys.remove(&name),
        };
    }

    /// The key of that profile, if it is known.
    pub(crate) fn get(&self, name: &str) -> Option<SecretString> {
        self.0.lock().get(name).cloned()
    }
}

/// The key of a profile, if it is available without asking: it is in the config, the store or a variable of the
/// process. Tokens of a login do not count, since they change while the login stays the same.
pub(crate) fn key_at_hand(profile: &AuthProfile) -> Option<SecretString> {
    let key = match &profile.source {
        _ if profile.login.is_some() => return None,
        Some(KeySource::Literal(key)) => key.clone(),
        Some(KeySource::Environment(name)) => {
            SecretString::from(std::env::var(name).ok()?.trim().to_owned())
        }
        _ => return None,
    };
    (!key.expose_secret().is_empty()).then_some(key)
}

/// A few digits that differ between keys and between stores.
pub(crate) fn mark(salt: &str, key: &SecretString) -> String {
    let mut context = Context::new(&SHA256);
    context.update(salt.as_bytes());
    context.update(key.expose_secret().as_bytes());
    myclaw_files::hex(&context.finish().as_ref()[..MARK_BYTES])
}

/// Creates a salt for a store without one; `None` if the system gives no random bytes.
pub(crate) fn new_salt() -> Option<String> {
    let mut salt = [0; SALT_BYTES];
    ring::rand::SystemRandom::new().fill(&mut salt).ok()?;
    Some(myclaw_files::hex(&salt))
}
