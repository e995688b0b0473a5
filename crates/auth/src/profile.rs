//! One key of a provider, by name.

use myclaw_config::KeySource;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use crate::login::RenewableLogin;

/// What kind of credential a profile is. Where nothing else is said, they are tried in this order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CredentialType {
    /// Tokens of a login, with one to refresh them.
    Oauth,
    /// A token that stands for a login and cannot be refreshed.
    Token,
    /// A key.
    #[default]
    ApiKey,
}

impl CredentialType {
    /// The name used in the store and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Oauth => "oauth",
            Self::Token => "token",
            Self::ApiKey => "api_key",
        }
    }
}

/// Where a profile is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileOrigin {
    /// In the config file or the environment, or given by the caller.
    Settings,
    /// In the agent's store.
    Store,
}

/// One key of a provider, without the key.
#[derive(Debug, Clone)]
pub struct AuthProfile {
    /// Name shown in events and messages.
    pub id: String,
    /// What kind of credential it is.
    pub credential: CredentialType,
    /// Where the key comes from; `None` for servers that need none.
    pub source: Option<KeySource>,
    /// Where the profile is written down.
    pub origin: ProfileOrigin,
    /// When the credential stops being valid, in milliseconds since the Unix epoch.
    pub expires_at: Option<u64>,
    /// Where it is renewed when it ends, if it is a login that can be.
    pub login: Option<RenewableLogin>,
}

/// Whether a credential can be used at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// It can: it has not ended, or does not say when it does.
    Valid,
    /// Not as it is, but it is renewed when a call is about to be made with it: a login that has ended, or that was
    /// never used.
    Renewable,
    /// It has ended, and nothing here can renew it.
    Ended,
}

impl AuthProfile {
    /// A profile of the config.
    pub fn new(id: impl Into<String>, source: Option<KeySource>) -> Self {
        Self {
            id: id.into(),
            credential: CredentialType::ApiKey,
            source,
            origin: ProfileOrigin::Settings,
            expires_at: None,
            login: None,
        }
    }

    /// A profile whose key is at hand.
    pub fn with_key(id: impl Into<String>, key: SecretString) -> Self {
        Self::new(id, Some(KeySource::Literal(key)))
    }

    /// The profile of servers that need no key.
    pub fn keyless() -> Self {
        Self::new("default", None)
    }

    /// Whether it can be used at `now_ms`, in milliseconds since the Unix epoch.
    pub fn validity(&self, now_ms: u64) -> Validity {
        let has_ended = self.expires_at.is_some_and(|end| end <= now_ms);
        let is_to_come = matches!(
            &self.source, Some(KeySource::Literal(token)) if token.expose_secret().is_empty()
        );
        match &self.login {
            Some(_) if has_ended || is_to_come => Validity::Renewable,
            None if has_ended => Validity::Ended,
            _ => Validity::Valid,
        }
    }

    /// The name under which the store keeps what happened to the profile: `provider:id`, since two providers may have a
    /// profile `primary`.
    pub fn store_name(&self, provider: &str) -> String {
        store_name(provider, &self.id)
    }
}

/// The command that puts another key in the place of a profile of the store, by its name there.
pub fn replacing_command(name: &str) -> String {
    match name.split_once(':') {
        Some((provider, name)) => {
            format!("myclaw auth add {provider} --profile {name} --replace")
        }
        None => "myclaw auth add".to_owned(),
    }
}

/// `provider:id`; an id that has the provider in front stays as it is.
pub(crate) fn store_name(provider: &str, id: &str) -> String {
    let is_full = id.strip_prefix(provider).is_some_and(|rest| rest.starts_with(':'));
    if is_full { id.to_owned() } else { format!("{provider}:{id}") }
}
