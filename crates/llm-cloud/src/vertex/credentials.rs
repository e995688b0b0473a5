//! Google Cloud's credentials, in the places where its own tools look for them (<https://google.aip.dev/auth/4110>):
//! what the caller gives, the file that `GOOGLE_APPLICATION_CREDENTIALS` names, the file of `gcloud auth
//! application-default login`, and the machine's own account.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use url::Url;

use super::auth_error;
use myclaw_llm::access::is_loopback;
use myclaw_llm::{ModelError, Variables};

/// Largest credentials file that is read, in bytes; real ones have 2,000 to 3,000.
const MAX_FILE: u64 = 64 * 1024;

/// The token server if the file names none.
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";

/// The metadata server's address on every Google machine. Not its name, because a lookup takes long on other machines.
const METADATA_HOST: &str = "169.254.169.254";

/// Credentials with their identity.
pub(super) struct Found {
    pub(super) credentials: Credentials,
    /// The same for the same credentials.
    pub(super) identity: Identity,
    /// Their source, for messages.
    pub(super) origin: String,
}

/// A hash of the credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity([u8; 32]);

impl Identity {
    fn of(text: &str) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

/// What a token is obtained with.
pub(super) enum Credentials {
    /// A service account's key.
    ServiceAccount(ServiceAccount),
    /// The login of a person.
    User(User),
    /// The account of the machine.
    Machine(Machine),
}

pub(super) struct ServiceAccount {
    pub(super) email: String,
    /// PEM.
    pub(super) private_key: SecretString,
    pub(super) key_id: Option<String>,
    pub(super) token_url: Url,
    project: Option<String>,
}

pub(super) struct User {
    pub(super) client_id: String,
    pub(super) client_secret: SecretString,
    pub(super) refresh_token: SecretString,
    pub(super) token_url: Url,
    pub(super) quota_project: Option<String>,
}

pub(super) struct Machine {
    /// Host and port of the metadata server.
    pub(super) host: String,
    pub(super) certainty: Certainty,
}

/// How it is known that there is a metadata server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    /// A variable says so.
    Named,
    /// If this is a Google machine.
    Guessed,
}

impl Credentials {
    /// The project of the credentials.
    pub(super) fn project(&self) -> Option<&str> {
        match self {
            Self::ServiceAccount(account) => account.project.as_deref(),
            Self::User(user) => user.quota_project.as_deref(),
            Self::Machine(_) => None,
        }
    }
}

/// A credentials file of any kind. It has no `Debug`, so that none of it can be printed.
#[derive(Deserialize)]
struct CredentialsFile {
    #[serde(rename = "type")]
    kind: String,
    project_id: Option<String>,
    private_key_id: Option<String>,
    private_key: Option<SecretText>,
    client_email: Option<String>,
    token_uri: Option<String>,
    client_id: Option<String>,
    client_secret: Option<SecretText>,
    refresh_token: Option<SecretText>,
    quota_project_id: Option<String>,
}

/// Text that goes straight into a [`SecretString`].
#[derive(Deserialize)]
#[serde(from = "String")]
struct SecretText(SecretString);

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

/// The credentials for a call with this key, which is a path or the text of a credentials file, an API key, or empty;
/// if it is empty, the usual places are searched. `None` for an API key, which needs no token.
pub(super) async fn find(
    key: Option<&SecretString>,
    variables: &Variables,
) -> Result<Option<Found>, ModelError> {
    let key = key.map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty());
    if let Some(key) = key {
        return match key {
            text if text.starts_with('{') => {
                parse(text, "the key given for google-vertex").map(Some)
            }
            path if is_path(path) => read(&expanded(path, variables)).await.map(Some),
            _ => Ok(None),
        };
    }
    if let Some(path) = variables.get("GOOGLE_APPLICATION_CREDENTIALS") {
        return read(&expanded(path, variables)).await.map(Some);
    }
    if let Some(path) = login_file(variables)
        && tokio::fs::try_exists(&path).await.unwrap_or(false)
    {
        return read(&path).await.map(Some);
    }
    if variables.get("NO_GCE_CHECK").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Err(none_found());
    }
    let (host, certainty) = match variables.get("GCE_METADATA_HOST") {
        Some(host) => (host, Certainty::Named),
        None => (METADATA_HOST, Certainty::Guessed),
    };
    Ok(Some(Found {
        identity: Identity::of(host),
        origin: format!("the metadata server {host}"),
        credentials: Credentials::Machine(Machine { host: host.to_owned(), certainty }),
    }))
}

/// The error of a machine without credentials: what to do.
pub(super) fn none_found() -> ModelError {
    auth_error(
        "no Google Cloud credentials found: run `gcloud auth application-default login`, or set \
         GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, or GOOGLE_CLOUD_API_KEY to an API key",
    )
}

/// API keys hold neither slashes nor `.json`.
fn is_path(key: &str) -> bool {
    key.contains(['/', '\\']) || key.ends_with(".json")
}

fn expanded(path: &str, variables: &Variables) -> PathBuf {
    match (path.strip_prefix("~/"), variables.get("HOME")) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// The file that `gcloud auth application-default login` writes.
fn login_file(variables: &Variables) -> Option<PathBuf> {
    let directory = match (variables.get("CLOUDSDK_CONFIG"), variables.get("APPDATA")) {
        (Some(directory), _) => PathBuf::from(directory),
        (None, Some(app_data)) => Path::new(app_data).join("gcloud"),
        (None, None) => Path::new(variables.get("HOME")?).join(".config").join("gcloud"),
    };
    Some(directory.join("application_default_credentials.json"))
}

async fn read(path: &Path) -> Result<Found, ModelError> {
    let origin = format!("the file {}", path.display());
    let unreadable = |why: &dyn std::fmt::Display| {
        auth_error(format!(
            "{origin}, which should hold Google Cloud credentials, cannot be read: {why}"
        ))
    };
    let file = tokio::fs::File::open(path).await.map_err(|error| unreadable(&error))?;
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text).await.map_err(|error| unreadable(&error))?;
    parse(&text, &origin)
}

fn parse(text: &str, origin: &str) -> Result<Found, ModelError> {
    // The reason of the parser is not shown: it could quote a secret.
    let file: CredentialsFile = serde_json::from_str(text).map_err(|error| {
        auth_error(format!(
            "{origin} holds no Google Cloud credentials: no JSON of that form at line {}",
            error.line()
        ))
    })?;
    let missing = |field: &str| auth_error(format!("{origin} has no `{field}`: download it again"));
    let token_url = token_url(file.token_uri.as_deref().unwrap_or(TOKEN_URL), origin)?;
    let credentials = match file.kind.as_str() {
        "service_account" => Credentials::ServiceAccount(ServiceAccount {
            email: file.client_email.ok_or_else(|| missing("client_email"))?,
            private_key: file.private_key.ok_or_else(|| missing("private_key"))?.0,
            key_id: file.private_key_id,
            token_url,
            project: file.project_id,
        }),
        "authorized_user" => Credentials::User(User {
            client_id: file.client_id.ok_or_else(|| missing("client_id"))?,
            client_secret: file.client_secret.ok_or_else(|| missing("client_secret"))?.0,
            refresh_token: file.refresh_token.ok_or_else(|| missing("refresh_token"))?.0,
            token_url,
            quota_project: file.quota_project_id,
        }),
        other => {
            return Err(auth_error(format!(
                "{origin} holds credentials of type {other:?}, which are not supported: use a service account, or run \
                 `gcloud auth application-default login`"
            )));
        }
    };
    Ok(Found { credentials, identity: Identity::of(text), origin: origin.to_owned() })
}

/// Secrets are sent to this address, so it must use TLS.
fn token_url(text: &str, origin: &str) -> Result<Url, ModelError> {
    let url = Url::parse(text).ok().filter(|url| url.scheme() == "https" || is_loopback(url));
    url.ok_or_else(|| auth_error(format!("the `token_uri` in {origin} must begin with https://")))
}
