//! Access keys, and the places where they are looked for.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;

use super::profile::Profile;
use super::sts::Sts;
use super::{metadata, no_access, process, role, sso};
use myclaw_llm::access::Clients;
use myclaw_llm::{ModelError, Variables};

/// The keys that make a signature.
#[derive(Debug, Clone)]
pub(super) struct Credentials {
    /// Identifies the key; not a secret.
    pub(super) access_key_id: String,
    pub(super) secret_access_key: SecretString,
    /// The token of temporary keys.
    pub(super) session_token: Option<SecretString>,
    /// When they expire; `None` if they do not.
    pub(super) expires: Option<SystemTime>,
}

impl Credentials {
    /// Reads `ACCESS_KEY_ID:SECRET_ACCESS_KEY` or the same with `:SESSION_TOKEN`, as the config holds them.
    ///
    /// # Errors
    /// A part is missing.
    pub(super) fn from_key(key: &str) -> Result<Self, ModelError> {
        let mut parts = key.splitn(3, ':').map(str::trim);
        let (Some(id), Some(secret)) = (
            parts.next().filter(|id| !id.is_empty()),
            parts.next().filter(|part| !part.is_empty()),
        ) else {
            let message = "the key is not a pair of AWS access keys: write ACCESS_KEY_ID:SECRET_ACCESS_KEY, with :SESSION_TOKEN appended for temporary ones";
            return Err(no_access(message));
        };
        Ok(Self::new(id, secret, parts.next().filter(|token| !token.is_empty())))
    }

    /// Keys that do not expire.
    fn new(id: &str, secret: &str, token: Option<&str>) -> Self {
        Self {
            access_key_id: id.to_owned(),
            secret_access_key: SecretString::from(secret),
            session_token: token.map(SecretString::from),
            expires: None,
        }
    }

    /// Whether they are still valid after `margin`.
    pub(super) fn lasts(&self, margin: Duration) -> bool {
        self.expires.is_none_or(|end| end > SystemTime::now() + margin)
    }
}

/// Credentials as JSON, in the form that the metadata services and credential processes share.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Document {
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    /// The name that credential processes use.
    session_token: Option<String>,
    /// The name that the metadata services use.
    token: Option<String>,
    /// In the form `2026-11-22T10:00:00Z`.
    expiration: Option<String>,
}

impl Document {
    /// The credentials in it; `None` if half of the pair is missing.
    pub(super) fn into_credentials(self) -> Option<Credentials> {
        Some(Credentials {
            access_key_id: self.access_key_id?,
            secret_access_key: SecretString::from(self.secret_access_key?),
            session_token: self.session_token.or(self.token).map(SecretString::from),
            expires: self.expiration.and_then(|end| end.parse().ok()).map(Timestamp::into),
        })
    }
}

/// The credentials of the first place that has any: environment variables, a role that the profile assumes, a web
/// identity, the profile itself (single sign-on, keys, a credential process), the metadata service of a container, that
/// of an EC2 instance.
///
/// # Errors
/// No place has credentials, or the first place that should have them fails: the next place could hold the credentials
/// of another identity.
pub(super) async fn find(sts: &Sts<'_>, profile: &Profile) -> Result<Credentials, ModelError> {
    let clients = sts.clients;
    if let Some(credentials) = from_variables(clients.variables())? {
        return Ok(credentials);
    }
    if let Some(credentials) = role::of_profile(sts, profile).await? {
        return Ok(credentials);
    }
    if let Some(credentials) = role::of_web_identity(sts).await? {
        return Ok(credentials);
    }
    if let Some(credentials) = from_profile(clients, profile).await? {
        return Ok(credentials);
    }
    if let Some(credentials) = metadata::of_container(clients).await? {
        return Ok(credentials);
    }
    if let Some(credentials) = metadata::of_instance(clients).await? {
        return Ok(credentials);
    }
    Err(no_access(
        "there are no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile of ~/.aws",
    ))
}

/// The access keys in the environment.
pub(super) fn from_variables(variables: &Variables) -> Result<Option<Credentials>, ModelError> {
    let id = variables.get("AWS_ACCESS_KEY_ID");
    let secret = variables.get("AWS_SECRET_ACCESS_KEY");
    match (id, secret) {
        (Some(id), Some(secret)) => {
            Ok(Some(Credentials::new(id, secret, variables.get("AWS_SESSION_TOKEN"))))
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(half_a_pair("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
        (None, Some(_)) => Err(half_a_pair("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID")),
    }
}

/// The profile's own credentials: single sign-on, keys, a credential process.
pub(super) async fn from_profile(
    clients: &Clients,
    profile: &Profile,
) -> Result<Option<Credentials>, ModelError> {
    let name = profile.name();
    if profile.get("sso_account_id").is_some() {
        return sso::credentials(clients, profile).await.map(Some);
    }
    match (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")) {
        (Some(id), Some(secret)) => {
            let token = profile.get("aws_session_token");
            return Ok(Some(Credentials::new(id, secret, token)));
        }
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) => {
            let message = format!(
                "the AWS profile {name} has only one of aws_access_key_id and aws_secret_access_key: add the other"
            );
            return Err(no_access(message));
        }
    }
    if let Some(command) = profile.get("credential_process") {
        return process::credentials(command, name, clients.variables()).await.map(Some);
    }
    Ok(None)
}

fn half_a_pair(set: &str, missing: &str) -> ModelError {
    no_access(format!("{set} is set, but {missing} is not: set both"))
}

#[cfg(test)]
mod tests;
