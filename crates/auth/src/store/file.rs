//! What stands in the store.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
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
    unknown: Kept,
}

/// What is not understood and kept as it is. It may hold secrets, so it is never shown.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct Kept(Map<String, Value>);

impl fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// A profile that is understood, or something to be kept as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    Known(StoredProfile),
    Foreign(Kept),
}

/// A profile as it lies in the store. Which of the secrets is meant depends on the type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredProfile {
    /// What kind of credential it is.
    #[serde(rename = "type")]
    pub kind: CredentialType,
    /// Whose key it is.
    pub provider: String,
    /// The key of an `api_key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<StoredSecret>,
    /// The token of a `token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<StoredSecret>,
    /// The token for calls of an `oauth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    access: Option<StoredSecret>,
    /// Where the secret is kept if not here, as [`KeySource`] is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_source: Option<String>,
    /// When it stops being valid, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Everything else, such as what refreshes a login, kept as it is.
    #[serde(flatten)]
    unknown: Kept,
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
            unknown: Kept::default(),
        }
    }
}

impl StoredProfile {
    fn empty(provider: impl Into<String>, kind: CredentialType) -> Self {
        Self {
            kind,
            provider: provider.into(),
            key: None,
            token: None,
            access: None,
            key_source: None,
            expires: None,
            unknown: Kept::default(),
        }
    }

    /// A secret that lies in the store.
    pub fn with_key(provider: impl Into<String>, kind: CredentialType, key: SecretString) -> Self {
        let mut profile = Self::empty(provider, kind);
        let secret = Some(StoredSecret::new(key));
        match kind {
            CredentialType::ApiKey => profile.key = secret,
            CredentialType::Token => profile.token = secret,
            CredentialType::Oauth => profile.access = secret,
        }
        profile
    }

    /// A secret that lies elsewhere. [`KeySource::Literal`] is no such place: it gives a profile that nobody can use.
    pub fn with_source(
        provider: impl Into<String>,
        kind: CredentialType,
        source: &KeySource,
    ) -> Self {
        Self { key_source: source.describe(), ..Self::empty(provider, kind) }
    }

    fn source(&self) -> Option<KeySource> {
        if let Some(written) = &self.key_source {
            let as_written = |path: &str| Ok::<_, Infallible>(PathBuf::from(path));
            let Ok(source) = KeySource::parse(&SecretString::from(written.as_str()), as_written);
            return Some(source);
        }
        let secret = match self.kind {
            CredentialType::ApiKey => self.key.as_ref(),
            CredentialType::Token => self.token.as_ref(),
            CredentialType::Oauth => self.access.as_ref(),
        };
        secret.map(|secret| KeySource::Literal(secret.key().clone()))
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
                    credential: stored.kind,
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
