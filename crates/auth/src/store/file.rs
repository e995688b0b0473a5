//! The content of the store.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;

use myclaw_config::KeySource;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::AuthStore;
use super::secret::StoredSecret;
use crate::login::{NewLogin, RenewableLogin, Renewal};
use crate::mark::{self, key_at_hand};
use crate::profile::store_name;
use crate::{AuthProfile, CredentialType, Failure, ProfileOrigin, UsageStats};

/// The version that this program writes.
pub(super) const VERSION: u64 = myclaw_files::formats::KEYS.newest as u64;

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
    /// By provider, the only profile to use.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pinned: BTreeMap<String, String>,
    /// Record of the use of profiles, by name, including profiles that are not in this file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub usage_stats: BTreeMap<String, UsageStats>,
    /// Salt for the marks of keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_salt: Option<String>,
    /// The store that this was read from.
    #[serde(skip)]
    store: Option<AuthStore>,
    /// Fields of a later version, kept as they are.
    #[serde(flatten)]
    unknown: Kept,
}

/// Unknown content, kept unchanged. It may hold secrets, so it is never shown.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct Kept(Map<String, Value>);

impl fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// A known profile, or an unknown entry that is kept unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    Known(Box<StoredProfile>),
    Foreign(Kept),
}

/// A profile as stored. Its type decides which of the secrets is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredProfile {
    /// The kind of the credential.
    #[serde(rename = "type")]
    pub kind: CredentialType,
    /// The provider of the key.
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
    /// The refresh token of an `oauth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<StoredSecret>,
    /// The token endpoint of an `oauth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_url: Option<String>,
    /// The id of the application that an `oauth` was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    /// The secret of that application, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<StoredSecret>,
    /// Whether that secret is sent in a header.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    secret_in_header: bool,
    /// The scope of a renewal, if the server requires it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// What the tokens are for, if they are for one server only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    /// Who has issued the tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// What they permit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<String>,
    /// Whose login it is, as its server says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// What that person has paid for, as the server says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// What stands for this installation at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The place of the secret if it is not in this file, written like a [`KeySource`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_source: Option<String>,
    /// When the credential expires, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// All other fields, kept unchanged.
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
            secret_in_header: false,
            scope: None,
            resource: None,
            issuer: None,
            granted: None,
            account: None,
            plan: None,
            host: None,
            key_source: None,
            expires: None,
            unknown: Kept::default(),
        }
    }

    /// Creates a profile with its secret in the store.
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

    /// Creates a profile of a login.
    pub fn with_login(provider: impl Into<String>, login: NewLogin) -> Self {
        let Renewal {
            token_url,
            client_id,
            client_secret,
            secret_in_header,
            scope,
            resource,
            refresh_token,
        } = login.renewal;
        Self {
            access: Some(StoredSecret::new(login.access)),
            refresh: Some(refresh_token).filter(|token| is_filled(&token)).map(StoredSecret::new),
            token_url: Some(token_url),
            client_id: Some(client_id),
            client_secret: client_secret.map(StoredSecret::new),
            secret_in_header,
            scope,
            resource,
            issuer: Some(login.issuer),
            granted: login.granted,
            expires: login.expires,
            ..Self::empty(provider, CredentialType::Oauth)
        }
    }

    /// Creates a profile whose secret is elsewhere. [`KeySource::Literal`] is not accepted here: it gives an unusable
    /// profile.
    pub fn with_source(
        provider: impl Into<String>,
        kind: CredentialType,
        source: &KeySource,
    ) -> Self {
        Self { key_source: source.describe(), ..Self::empty(provider, kind) }
    }

    /// The id of the application that a login was made for.
    pub fn client(&self) -> Option<&str> {
        self.client_id.as_deref()
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

/// The parts of a stored login that a renewal needs.
#[derive(Debug)]
pub(crate) struct Login {
    /// The token for calls, if there is one yet.
    pub(crate) access: Option<SecretString>,
    /// When it expires, in milliseconds since the Unix epoch.
    pub(crate) expires: Option<u64>,
    /// The parameters of its renewal.
    pub(crate) renewal: Renewal,
}

impl StoredProfile {
    /// Whether this is a GitHub Copilot login whose `access` is a session of a few minutes. The GitHub token that is
    /// exchanged for such sessions is stored under `refresh`; each call creates its own session from it.
    fn is_copilot(&self) -> bool {
        self.provider == "github-copilot" && self.refresh.is_some()
    }

    /// When the secret in use expires.
    fn expires_at(&self) -> Option<u64> {
        let is_session = self.kind == CredentialType::Oauth && self.is_copilot();
        self.expires.filter(|_| !is_session)
    }

    /// The parameters of its renewal, if it is a login that can be renewed.
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
            secret_in_header: self.secret_in_header,
            scope: filled(&self.scope),
            resource: filled(&self.resource),
            refresh_token: self.refresh.as_ref().map(StoredSecret::key).filter(is_filled)?.clone(),
        })
    }
}

fn is_filled(secret: &&SecretString) -> bool {
    !secret.expose_secret().is_empty()
}

impl AuthFile {
    /// Records the store that this was read from, because logins are renewed there.
    pub(crate) fn read_from(self, store: &AuthStore) -> Self {
        Self { store: Some(store.clone()), ..self }
    }

    /// The content alone, as a store keeps it.
    pub(crate) fn forget_store(&mut self) {
        self.store = None;
    }

    /// The login of that name, if it can be renewed.
    pub(crate) fn login(&self, name: &str) -> Option<Login> {
        let Entry::Known(profile) = self.profiles.get(name)? else { return None };
        let renewal = profile.renewal()?;
        let access = profile.access.as_ref().map(|access| access.key().clone());
        Some(Login { access, expires: profile.expires, renewal })
    }

    /// Puts new tokens into a login, if it is still there.
    pub(crate) fn renew_login(
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

    /// Every known profile, by name.
    pub fn profiles(&self) -> impl Iterator<Item = (&str, &StoredProfile)> {
        self.profiles.iter().filter_map(|(name, entry)| match entry {
            Entry::Known(profile) => Some((name.as_str(), &**profile)),
            Entry::Foreign(_) => None,
        })
    }

    /// Every secret in the store, for redaction.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let secrets = self.profiles().flat_map(|(_, profile)| {
            let StoredProfile { key, token, access, refresh, client_secret, .. } = profile;
            [key, token, access, refresh, client_secret]
        });
        secrets.flatten().map(StoredSecret::key)
    }

    /// The usable profiles of a provider, in no particular order. Profiles without a key are omitted.
    pub fn profiles_of(&self, provider: &str) -> Vec<AuthProfile> {
        self.profiles()
            .filter(|(_, stored)| stored.provider == provider)
            .filter_map(|(name, stored)| {
                let store = self.store.clone().filter(|_| stored.renewal().is_some());
                let login = store.map(|store| RenewableLogin { store, name: name.to_owned() });
                // A login may not have its first token yet.
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

    /// Adds a profile, or replaces the one of that name and clears the record of its use.
    pub fn put(&mut self, name: &str, profile: StoredProfile) {
        self.usage_stats.remove(name);
        self.profiles.insert(name.to_owned(), Entry::Known(Box::new(profile)));
    }

    /// Removes a profile and its record; returns whether it existed.
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

    /// The record of a profile's use. The profile need not be in this file.
    pub fn usage(&self, provider: &str, id: &str) -> Option<&UsageStats> {
        self.usage_stats.get(&store_name(provider, id))
    }

    /// The same record, if it is about the profile's current key; `None` if the key was replaced since.
    pub fn usage_now(&self, provider: &str, profile: &AuthProfile) -> Option<&UsageStats> {
        let usage = self.usage(provider, &profile.id)?;
        let mark = self.key_salt.as_ref().zip(key_at_hand(profile));
        let mark = mark.map(|(salt, key)| mark::mark(salt, &key));
        (!usage.is_about_other(mark.as_deref())).then_some(usage)
    }

    /// Records the keys that are about to be used, so that their outcomes are attributed to them.
    pub(crate) fn note_keys(&self, provider: &str, profiles: &[AuthProfile]) {
        let Some(store) = &self.store else { return };
        for profile in profiles {
            store.known_keys().note(profile.store_name(provider), key_at_hand(profile));
        }
    }

    /// The record of the profile's current key.
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

    /// Records a failure.
    pub fn record_failure(
        &mut self,
        name: &str,
        failure: &Failure<'_>,
        rules: &crate::CooldownRules,
    ) {
        self.usage_of_key(name).fail(failure, rules);
    }

    /// Records a success.
    pub fn record_success(&mut self, name: &str, model: &str, at_ms: u64) {
        self.usage_of_key(name).succeed(model, at_ms);
    }
}
