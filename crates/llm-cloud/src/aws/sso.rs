//! Credentials of a user who signed in with `aws sso login`: its token is exchanged for keys of a role.

use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use ring::digest;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

use super::credentials::Credentials;
use super::profile::Profile;
use super::signature::hex;
use super::{home, metadata, no_access};
use myclaw_llm::access::Clients;
use myclaw_llm::{ModelError, Variables};

/// The file that `aws sso login` writes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CachedToken {
    access_token: String,
    /// In the form `2026-11-22T10:00:00Z`.
    expires_at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    role_credentials: RoleCredentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RoleCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    /// Milliseconds since the Unix epoch.
    expiration: u64,
}

/// The keys of the role that `profile` names.
///
/// # Errors
/// A setting is missing, nobody signed in, the sign-in has expired, or the portal refuses.
pub(super) async fn credentials(
    clients: &Clients,
    profile: &Profile,
) -> Result<Credentials, ModelError> {
    let variables = clients.variables();
    let setting = |name: &str| {
        profile.sso(name).ok_or_else(|| {
            no_access(format!(
                "the AWS profile {} has no {name}: run `aws configure sso`",
                profile.name()
            ))
        })
    };
    let token = signed_in_token(variables, profile, setting("sso_start_url")?).await?;
    let region = setting("sso_region")?;
    let base = match variables.get("AWS_ENDPOINT_URL_SSO") {
        Some(base) => base.trim_end_matches('/').to_owned(),
        None => format!("https://portal.sso.{region}.amazonaws.com"),
    };
    let mut url = Url::parse(&format!("{base}/federation/credentials"))
        .map_err(|error| no_access(format!("sso_region {region:?} is not a region: {error}")))?;
    url.query_pairs_mut()
        .append_pair("role_name", setting("sso_role_name")?)
        .append_pair("account_id", setting("sso_account_id")?);
    let client = metadata::client(clients, &url).await?;
    let request = client.get(url.clone()).header("x-amz-sso_bearer_token", token.expose_secret());
    let answer: Answer = metadata::asked(request, &url).await.map_err(|mut error| {
        if matches!(error.status, Some(401 | 403)) {
            error.message = format!("{}; {}", error.message, sign_in_again(profile));
        }
        error
    })?;
    let keys = answer.role_credentials;
    Ok(Credentials {
        access_key_id: keys.access_key_id,
        secret_access_key: SecretString::from(keys.secret_access_key),
        session_token: Some(SecretString::from(keys.session_token)),
        expires: SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(keys.expiration)),
    })
}

/// The token of the last sign-in, from the file in which AWS's tools keep it. The file's name is a hash of the
/// session's name or, in older profiles, of the address to sign in at.
async fn signed_in_token(
    variables: &Variables,
    profile: &Profile,
    start_url: &str,
) -> Result<SecretString, ModelError> {
    let home = home(variables).ok_or_else(|| {
        no_access("there is no home directory to look for the AWS sign-in in: set HOME")
    })?;
    let name = profile.get("sso_session").unwrap_or(start_url);
    let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, name.as_bytes());
    let file = format!("{}.json", hex(hash.as_ref()));
    let path = Path::new(home).join(".aws").join("sso").join("cache").join(file);
    let not_signed_in = |why: &str| no_access(format!("{why}: {}", sign_in_again(profile)));
    let text = tokio::fs::read_to_string(&path)
        .await
        .map_err(|_| not_signed_in("nobody is signed in to AWS here"))?;
    let unreadable = || not_signed_in("the record of the last AWS sign-in cannot be read");
    let token: CachedToken = serde_json::from_str(&text).map_err(|_| unreadable())?;
    let end: Timestamp = token.expires_at.parse().map_err(|_| unreadable())?;
    if SystemTime::from(end) <= SystemTime::now() {
        return Err(not_signed_in("the AWS sign-in has expired"));
    }
    Ok(SecretString::from(token.access_token))
}

fn sign_in_again(profile: &Profile) -> String {
    format!("run `aws sso login --profile {}`", profile.name())
}
