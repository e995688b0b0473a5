//! One named key of a provider.

use myclaw_config::KeySource;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use crate::login::RenewableLogin;

/// The kind of a credential. Without another rule, profiles are tried in this order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CredentialType {
    /// Tokens of a login, with a refresh token.
    Oauth,
    /// A token that represents a login and cannot be refreshed.
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

/// The place where a profile is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileOrigin {
    /// In the config file or the environment, or given by the caller.
    Config,
    /// In the agent's store.
    Store,
}

/// One key of a provider, without the key.
#[derive(Debug, Clone)]
pub struct AuthProfile {
    /// Name shown in events and messages.
    pub id: String,
    /// The kind of the credential.
    pub credential: CredentialType,
    /// Where the key comes from; `None` for servers that need none.
    pub source: Option<KeySource>,
    /// The place where the profile is defined.
    pub origin: ProfileOrigin,
    /// When the credential stops being valid, in milliseconds since the Unix epoch.
    pub expires_at: Option<u64>,
    /// How the login is renewed when it expires, if it can be.
    pub login: Option<RenewableLogin>,
}

/// Whether a credential can be used at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// It can be used: it has not expired, or has no expiry time.
    Valid,
    /// It has expired or was never used, and it is a login that is renewed before the next call.
    Renewable,
    /// It has expired and cannot be renewed.
    Ended,
}

impl AuthProfile {
    /// A profile of the config.
    pub fn new(id: impl Into<String>, source: Option<KeySource>) -> Self {
        Self {
            id: id.into(),
            credential: CredentialType::ApiKey,
            source,
            origin: ProfileOrigin::Config,
            expires_at: None,
            login: None,
        }
    }

    /// Creates a profile that contains its key.
    pub fn with_key(id: impl Into<String>, key: SecretString) -> Self {
        Self::new(id, Some(KeySource::Literal(key)))
    }

    /// Creates the profile of servers that need no key.
    pub fn keyless() -> Self {
        Self::new("default", None)
    }

    /// Whether the credential can be used at `now_ms`, in milliseconds since the Unix epoch.
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

    /// The name under which the store records the profile's use: `provider:id`, since two providers may have a profile
    /// `primary`.
    pub fn store_name(&self, provider: &str) -> String {
        store_name(provider, &self.id)
    }
}

/// The command that replaces the key of a profile of the store, given its name there.
pub fn replacing_command(name: &str) -> String {
    match name.split_once(':') {
        Some((provider, name)) => {
            format!("myclaw auth add {provider} --profile {name} --replace")
        }
        None => "myclaw auth add".to_owned(),
    }
}

/// `provider:id`; an id that already begins with the provider is unchanged.
pub(crate) fn store_name(provider: &str, id: &str) -> String {
    let is_full = id.strip_prefix(provider).is_some_and(|rest| rest.starts_with(':'));
    if is_full { id.to_owned() } else { format!("{provider}:{id}") }
}
