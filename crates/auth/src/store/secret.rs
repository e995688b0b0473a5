//! A key as stored. This is the only place that writes keys: `Serialize` is implemented for the store file.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A key that can be written to the store and nowhere else.
#[derive(Debug, Clone)]
pub(super) struct StoredSecret(SecretString);

impl StoredSecret {
    /// Wraps a key.
    pub(super) fn new(key: SecretString) -> Self {
        Self(key)
    }

    /// The key.
    pub(super) fn key(&self) -> &SecretString {
        &self.0
    }
}

impl PartialEq for StoredSecret {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

impl Serialize for StoredSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose_secret())
    }
}

impl<'de> Deserialize<'de> for StoredSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self(SecretString::from(text.trim())))
    }
}
