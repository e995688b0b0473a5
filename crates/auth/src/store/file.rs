//! What stands in the store.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;

use myclaw_config::KeySource;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AuthStore, StoredSecret};
use crate::login::{RenewableLogin, Renewal};
use crate::mark::{self, key_at_hand};
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
    /// What goes into the marks of keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_salt: Option<String>,
    /// The store that this was read from.
    #[serde(skip)]
    store: Option<AuthStore>,
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
    Known(Box<StoredProfile>),
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
    /// What an `oauth` is renewed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<StoredSecret>,
    /// Where an `oauth` is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_url: Option<String>,
    /// Which application an `oauth` was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    /// The secret of that application, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<StoredSecret>,
    /// What a renewal asks for, if the server wants it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// Where the secret is kept if not here, as [`KeySource`] is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_source: Option<String>,
    /// When it stops being valid, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Everything else, kept as it is.
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
            key_salt: None,
            store: None,
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
            refresh: None,
            token_url: None,
            client_id: None,
            client_secret: None,
            scope: None,
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
            CredentialType::Oauth if self.is_copilot() => self.refresh.as_ref(),
            CredentialType::Oauth => self.access.as_ref(),
        };
        secret.map(|secret| KeySource::Literal(secret.key().clone()))
    }
}

/// What the store holds of a login that says how it is renewed.
#[derive(Debug)]
pub(crate) struct Login {
    /// The token for calls, if there is one yet.
    pub(crate) access: Option<SecretString>,
    /// When it ends, in milliseconds since the Unix epoch.
    pub(crate) expires: Option<u64>,
    /// How it is renewed.
    pub(crate) renewal: Renewal,
}

impl StoredProfile {
    /// Whether it is a login of GitHub Copilot whose `access` is a session of some minutes. What that is exchanged for,
    /// the GitHub token, lies under `refresh`: with that a call makes sessions of its own.
    fn is_copilot(&self) -> bool {
        self.provider == "github-copilot" && self.refresh.is_some()
    }

    /// When the secret that is used stops being valid.
    fn expires_at(&self) -> Option<u64> {
        let is_session = self.kind == CredentialType::Oauth && self.is_copilot();
        self.expires.filter(|_| !is_session)
    }

    /// How it is renewed, if it is a login that says so.
    fn renewal(&self) -> Option<Renewal> {
        let filled = |text: &Option<String>| {
            text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        if self.kind != CredentialType::Oauth || self.key_source.is_some() {
            return None;
        }
        Some(Renewal {
            token_url: filled(&self.token_url)?,
            client_id: filled(&self.client_id)?,
            client_secret: self.client_secret.as_ref().map(|secret| secret.key().clone()),
            scope: filled(&self.scope),
            refresh_token: self.refresh.as_ref().map(StoredSecret::key).filter(is_filled)?.clone(),
        })
    }
}

fn is_filled(secret: &&SecretString) -> bool {
    !secret.expose_secret().is_empty()
}

impl AuthFile {
    /// Notes where this was read: logins are renewed there.
    pub(super) fn read_from(self, store: &AuthStore) -> Self {
        Self { store: Some(store.clone()), ..self }
    }

    /// The login of that name, if it says how it is renewed.
    pub(super) fn login(&self, name: &str) -> Option<Login> {
        let Entry::Known(profile) = self.profiles.get(name)? else { return None };
        let renewal = profile.renewal()?;
        let access = profile.access.as_ref().map(|access| access.key().clone());
        Some(Login { access, expires: profile.expires, renewal })
    }

    /// Puts new tokens into a login, if it is still there.
    pub(super) fn renew_login(
        &mut self,
        name: &str,
        access: SecretString,
        refresh: Option<SecretString>,
        expires: Option<u64>,
    ) {
        let Some(Entry::Known(profile)) = self.profiles.get_mut(name) else { return };
        profile.access = Some(StoredSecret::new(access));
        profile.expires = expires;
        if let Some(refresh) = refresh {
            profile.refresh = Some(StoredSecret::new(refresh));
        }
    }

    /// Every profile that is understood, by name.
    pub fn profiles(&self) -> impl Iterator<Item = (&str, &StoredProfile)> {
        self.profiles.iter().filter_map(|(name, entry)| match entry {
            Entry::Known(profile) => Some((name.as_str(), &**profile)),
            Entry::Foreign(_) => None,
        })
    }

    /// Every secret in the store, so that they can be kept out of what is shown.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let secrets = self.profiles().flat_map(|(_, profile)| {
            let StoredProfile { key, token, access, refresh, client_secret, .. } = profile;
            [key, token, access, refresh, client_secret]
        });
        secrets.flatten().map(StoredSecret::key)
    }

    /// The usable profiles of a provider, in no particular order. One without a key is left out.
    pub fn profiles_of(&self, provider: &str) -> Vec<AuthProfile> {
        self.profiles()
            .filter(|(_, stored)| stored.provider == provider)
            .filter_map(|(name, stored)| {
                let store = self.store.clone().filter(|_| stored.renewal().is_some());
                let login = store.map(|store| RenewableLogin { store, name: name.to_owned() });
                // A login may have its first token still to come.
                let to_come = || {
                    let empty = KeySource::Literal(SecretString::default());
                    login.is_some().then_some(empty)
                };
                Some(AuthProfile {
                    id: name.to_owned(),
                    credential: stored.kind,
                    source: Some(stored.source().or_else(to_come)?),
                    origin: ProfileOrigin::Store,
                    expires_at: stored.expires_at(),
                    login,
                })
            })
            .collect()
    }

    /// Adds a profile, or replaces the one of that name. What happened to the old one no longer counts.
    pub fn put(&mut self, name: &str, profile: StoredProfile) {
        self.usage_stats.remove(name);
        self.profiles.insert(name.to_owned(), Entry::Known(Box::new(profile)));
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

    /// The same, as far as it is about the key that the profile has now; nothing where the key was replaced since.
    pub fn usage_now(&self, provider: &str, profile: &AuthProfile) -> Option<&UsageStats> {
        let usage = self.usage(provider, &profile.id)?;
        let mark = self.key_salt.as_ref().zip(key_at_hand(profile));
        let mark = mark.map(|(salt, key)| mark::mark(salt, &key));
        (!usage.is_about_other(mark.as_deref())).then_some(usage)
    }

    /// Notes the keys that are about to be used, so that what happens to them is written down about them.
    pub(crate) fn note_keys(&self, provider: &str, profiles: &[AuthProfile]) {
        let Some(store) = &self.store else { return };
        for profile in profiles {
            store.known_keys().note(profile.store_name(provider), key_at_hand(profile));
        }
    }

    /// What is remembered about the key that the profile has now.
    fn usage_of_key(&mut self, name: &str) -> &mut UsageStats {
        let key = self.store.as_ref().and_then(|store| store.known_keys().get(name));
        if key.is_some() && self.key_salt.is_none() {
            self.key_salt = mark::new_salt();
        }
        let mark = self.key_salt.as_ref().zip(key).map(|(salt, key)| mark::mark(salt, &key));
        let usage = self.usage_stats.entry(name.to_owned()).or_default();
        usage.begin_with(mark);
        usage
    }

    /// Remembers a failure.
    pub fn record_failure(
        &mut self,
        name: &str,
        failure: &Failure<'_>,
        rules: &crate::CooldownRules,
    ) {
        self.usage_of_key(name).fail(failure, rules);
    }

    /// Remembers a success.
    pub fn record_success(&mut self, name: &str, model: &str, at_ms: u64) {
        self.usage_of_key(name).succeed(model, at_ms);
    }
}
