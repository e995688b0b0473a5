//! Access keys, and the places where they are looked for.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;

use super::profile::Profile;
use super::{no_access, process};
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

/// What a profile holds if AWS's tools get its credentials from elsewhere: from single sign-on, or by assuming a role.
const ELSEWHERE: [&str; 3] = ["sso_account_id", "sso_session", "role_arn"];

/// Names the token of a pod. AWS's tools use it before the keys of a profile.
const WEB_IDENTITY: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";

/// What the environment holds where AWS's tools ask a service for credentials: that of a pod or a container.
const SERVICES: [&str; 3] =
    [WEB_IDENTITY, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"];

/// Credentials as JSON, as credential processes print them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Document {
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    session_token: Option<String>,
    /// In the form `2026-11-22T10:00:00Z`.
    expiration: Option<String>,
}

impl Document {
    /// The credentials in it; `None` if half of the pair is missing.
    pub(super) fn into_credentials(self) -> Option<Credentials> {
        Some(Credentials {
            access_key_id: self.access_key_id?,
            secret_access_key: SecretString::from(self.secret_access_key?),
            session_token: self.session_token.map(SecretString::from),
            expires: self.expiration.and_then(|end| end.parse().ok()).map(Timestamp::into),
        })
    }
}

/// The credentials of the first place that has any: environment variables, or the profile (keys, a credential process).
///
/// # Errors
/// No place has credentials, or AWS's tools would take them from a place that is not read here: the next place could
/// hold the credentials of another identity.
pub(super) async fn find(
    variables: &Variables,
    profile: &Profile,
) -> Result<Credentials, ModelError> {
    if let Some(credentials) = from_variables(variables)? {
        return Ok(credentials);
    }
    let name = profile.name();
    if let Some(key) = ELSEWHERE.into_iter().find(|key| profile.get(key).is_some()) {
        return Err(no_access(format!(
            "the AWS profile {name} has `{key}`, which only AWS's own tools can use: add a profile with `credential_process = \
             aws configure export-credentials --profile {name}` to ~/.aws/config, and set AWS_PROFILE to it (docs/use/models.md)"
        )));
    }
    let comes_first = |variable: &str| match variable {
        WEB_IDENTITY => profile.get("credential_process").is_none() || profile.has_keys(),
        _ => !profile.has_keys() && profile.get("credential_process").is_none(),
    };
    let is_asked = |name: &&str| variables.get(name).is_some() && comes_first(name);
    if let Some(variable) = SERVICES.into_iter().find(is_asked) {
        return Err(no_access(format!(
            "{variable} is set, and only AWS's own tools can ask that service: set AWS_PROFILE to a profile with a \
             `credential_process`, which docs/use/models.md shows"
        )));
    }
    if let Some(credentials) = from_profile(variables, profile).await? {
        return Ok(credentials);
    }
    Err(no_access(
        "there are no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile of ~/.aws",
    ))
}

/// The access keys in the environment.
fn from_variables(variables: &Variables) -> Result<Option<Credentials>, ModelError> {
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

/// The profile's own credentials: keys, a credential process.
async fn from_profile(
    variables: &Variables,
    profile: &Profile,
) -> Result<Option<Credentials>, ModelError> {
    let name = profile.name();
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
        return process::credentials(command, name, variables).await.map(Some);
    }
    Ok(None)
}

fn half_a_pair(set: &str, missing: &str) -> ModelError {
    no_access(format!("{set} is set, but {missing} is not: set both"))
}

#[cfg(test)]
mod tests;
