//! What stands in the store.

use std::collections::BTreeMap;
use std::path::PathBuf;

use myclaw_config::KeySource;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::StoredSecret;
use crate::profile::store_name;
use crate::{AuthProfile, CredentialType, Failure, ProfileOrigin, UsageStats};

/// The version that this program writes.
pub(super) const VERSION: u64 = 1;

/// The content of a store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthFile {
    /// Version of the format.
    pub version: u64,
    profiles: BTreeMap<String, Entry>,
    /// Names of profiles by provider, in the order in which they are tried.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub order: BTreeMap<String, Vec<String>>,
    /// By provider, the profile that is tried first.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub preferred: BTreeMap<String, String>,
    /// By provider, the only profile that is used.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pinned: BTreeMap<String, String>,
    /// What happened to profiles, by name; also to those that are not in this file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub usage_stats: BTreeMap<String, UsageStats>,
    /// Fields of a later version, kept as they are.
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// A profile that is understood, or something to be kept as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    Known(StoredProfile),
    Foreign(Value),
}

/// A profile as it lies in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredProfile {
    /// Whose key it is.
    pub provider: String,
    /// The key, or where it is kept.
    #[serde(flatten)]
    pub credential: Credential,
    /// Where the key is kept, as [`KeySource`] is written, if not here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_source: Option<String>,
    /// When it stops being valid, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Fields of a later version, kept as they are.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// What kind of credential a stored profile is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Credential {
    /// A key.
    ApiKey {
        /// The key, unless `keySource` says where it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<StoredSecret>,
    },
    /// A token that cannot be refreshed.
    Token {
        /// The token, unless `keySource` says where it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<StoredSecret>,
    },
    /// Tokens of a login.
    Oauth {
        /// The token for calls.
        access: StoredSecret,
        /// The token that gets a new one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refresh: Option<StoredSecret>,
    },
}

impl Default for AuthFile {
    fn default() -> Self {
        Self {
            version: VERSION,
            profiles: BTreeMap::new(),
            order: BTreeMap::new(),
            preferred: BTreeMap::new(),
            pinned: BTreeMap::new(),
            usage_stats: BTreeMap::new(),
            unknown: Map::new(),
        }
    }
}

impl StoredProfile {
    /// A key that lies in the store.
    pub fn with_key(provider: impl Into<String>, kind: CredentialType, key: SecretString) -> Self {
        let key = Some(StoredSecret::new(key));
        let credential = match (kind, key) {
            (CredentialType::ApiKey, key) => Credential::ApiKey { key },
            (CredentialType::Token, token) => Credential::Token { token },
            (CredentialType::Oauth, Some(access)) => Credential::Oauth { access, refresh: None },
            (CredentialType::Oauth, None) => Credential::Token { token: None },
        };
        Self {
            provider: provider.into(),
            credential,
            key_source: None,
            expires: None,
            unknown: Map::new(),
        }
    }

    /// A key that lies elsewhere. Nothing for [`KeySource::Literal`], which is no place.
    pub fn with_source(provider: impl Into<String>, source: &KeySource) -> Self {
        Self {
            provider: provider.into(),
            credential: Credential::ApiKey { key: None },
            key_source: source.describe(),
            expires: None,
            unknown: Map::new(),
        }
    }

    fn kind(&self) -> CredentialType {
        match self.credential {
            Credential::ApiKey { .. } => CredentialType::ApiKey,
            Credential::Token { .. } => CredentialType::Token,
            Credential::Oauth { .. } => CredentialType::Oauth,
        }
    }

    fn source(&self) -> Option<KeySource> {
        let literal = match &self.credential {
            Credential::ApiKey { key: secret } | Credential::Token { token: secret } => {
                secret.as_ref()
            }
            Credential::Oauth { access, .. } => Some(access),
        };
        match (&self.key_source, literal) {
            (Some(written), _) => {
                let path = |path: &str| Ok::<_, std::convert::Infallible>(PathBuf::from(path));
                let Ok(source) = KeySource::parse(&SecretString::from(written.as_str()), path);
                Some(source)
            }
            (None, Some(secret)) => Some(KeySource::Literal(secret.key().clone())),
            (None, None) => None,
        }
    }
}

impl AuthFile {
    /// Every profile that is understood, by name.
    pub fn profiles(&self) -> impl Iterator<Item = (&str, &StoredProfile)> {
        self.profiles.iter().filter_map(|(name, entry)| match entry {
            Entry::Known(profile) => Some((name.as_str(), profile)),
            Entry::Foreign(_) => None,
        })
    }

    /// The usable profiles of a provider, in no particular order. One without a key is left out.
    pub fn profiles_of(&self, provider: &str) -> Vec<AuthProfile> {
        self.profiles()
            .filter(|(_, stored)| stored.provider == provider)
            .filter_map(|(name, stored)| {
                Some(AuthProfile {
                    id: name.to_owned(),
                    credential: stored.kind(),
                    source: Some(stored.source()?),
                    origin: ProfileOrigin::Store,
                    expires_at: stored.expires,
                })
            })
            .collect()
    }

    /// Adds a profile, or replaces the one of that name. What happened to the old one no longer counts.
    pub fn put(&mut self, name: &str, profile: StoredProfile) {
        self.usage_stats.remove(name);
        self.profiles.insert(name.to_owned(), Entry::Known(profile));
    }

    /// Removes a profile with everything that is said about it; whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        self.usage_stats.remove(name);
        for names in self.order.values_mut() {
            names.retain(|listed| listed != name);
        }
        self.order.retain(|_, names| !names.is_empty());
        self.preferred.retain(|_, listed| listed != name);
        self.pinned.retain(|_, listed| listed != name);
        self.profiles.remove(name).is_some()
    }

    /// What is remembered about a profile, which need not be in this file.
    pub fn usage(&self, provider: &str, id: &str) -> Option<&UsageStats> {
        self.usage_stats.get(&store_name(provider, id))
    }

    /// Remembers a failure.
    pub fn record_failure(
        &mut self,
        name: &str,
        failure: &Failure<'_>,
        rules: &crate::CooldownRules,
    ) {
        self.usage_stats.entry(name.to_owned()).or_default().fail(failure, rules);
    }

    /// Remembers a success.
    pub fn record_success(&mut self, name: &str, model: &str, at_ms: u64) {
        self.usage_stats.entry(name.to_owned()).or_default().succeed(model, at_ms);
    }
}
