//! The device login: the user types a short code on GitHub's page, while this program polls until that is done.

use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{EXCHANGE_LIMIT, MAX_ANSWER};
use myclaw_llm::HttpProvider;
use myclaw_llm::access::is_loopback;
use myclaw_llm::access::transport_error;
use myclaw_llm::access::{read_capped, read_refusal};
use myclaw_llm::{ErrorClass, ModelError};

/// The id of the application: that of GitHub's own editor plug-ins, because no other may use Copilot.
const CLIENT_ID: &str = "Iv1.b507a08c87ecfe98";

/// The requested scope: to identify the user.
const SCOPE: &str = "read:user";

/// The grant type of a device login (RFC 8628).
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The pause between two polls if the server names none, and the time that `slow_down` adds (RFC 8628).
const INTERVAL: Duration = Duration::from_secs(5);

/// Longest pause between two polls.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// Longest wait for the code to be typed; GitHub's codes are valid for 15 minutes.
const LONGEST_LIFE: Duration = Duration::from_secs(60 * 60);

/// Limit for the connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Precedes a company's host in the address of its models.
pub(super) const ENTERPRISE_MODELS: &str = "copilot-api.";

/// Where GitHub is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopilotHosts {
    /// Where a person signs in, such as `https://github.com`.
    pub github: String,
}

impl Default for CopilotHosts {
    fn default() -> Self {
        Self { github: "https://github.com".to_owned() }
    }
}

impl CopilotHosts {
    /// A company's own GitHub, such as `company.ghe.com`. Its models are at [`CopilotHosts::models`], which the base URL
    /// of the provider must name. A URL may be given too; without TLS only for this machine.
    ///
    /// # Errors
    /// It is not a valid host name.
    pub fn enterprise(host: &str) -> Result<Self, ModelError> {
        let host = host.trim().trim_end_matches('/');
        let address =
            if host.contains("://") { host.to_owned() } else { format!("https://{host}") };
        let is_usable = |url: &Url| {
            let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url));
            let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
            is_safe && is_bare && url.username().is_empty() && url.host_str().is_some()
        };
        match Url::parse(&address) {
            Ok(url) if is_usable(&url) => Ok(Self { github: address }),
            _ => Err(ModelError::new(
                ErrorClass::Unknown,
                format!("{host:?} is not a host of GitHub: write it like company.ghe.com"),
            )),
        }
    }

    /// The GitHub for a base URL of models: that of the company in the URL, if it names one.
    pub fn of_base_url(base_url: &str) -> Self {
        let url = Url::parse(base_url.trim()).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        match host.strip_prefix(ENTERPRISE_MODELS) {
            Some(company) => Self { github: format!("https://{company}") },
            None => Self::default(),
        }
    }

    /// The base URL of the models for a token of a company's GitHub.
    pub fn models(&self) -> String {
        let host = self.github.split_once("://").map_or(self.github.as_str(), |(_, host)| host);
        format!("https://{ENTERPRISE_MODELS}{host}")
    }
}

/// A login that has begun: show [`DeviceLogin::user_code`] and [`DeviceLogin::verification_uri`], then wait with
/// [`finish_login`].
#[derive(Debug, Clone)]
pub struct DeviceLogin {
    /// The code that the user types.
    pub user_code: String,
    /// Where.
    pub verification_uri: String,
    /// How long the code is valid.
    pub expires_in: Duration,
    device_code: SecretString,
    interval: Duration,
    token_url: Url,
}

/// How a login ended without a token.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LoginError {
    /// The user refused.
    #[error("the login was refused on GitHub's page")]
    Denied,
    /// Nobody typed the code in time.
    #[error("the code has expired before it was typed: start the login again")]
    Expired,
    /// The caller aborted.
    #[error("the login was aborted")]
    Aborted,
    /// GitHub could not be reached, or its response cannot be used.
    #[error("{0}")]
    Failed(ModelError),
}

impl From<ModelError> for LoginError {
    fn from(error: ModelError) -> Self {
        Self::Failed(error)
    }
}

#[derive(Deserialize)]
struct Begun {
    device_code: String,
    user_code: String,
    verification_uri: String,
    expires_in: u64,
    interval: Option<u64>,
}

#[derive(Deserialize)]
struct Polled {
    access_token: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
    interval: Option<u64>,
}

/// Asks GitHub for a code.
///
/// # Errors
/// GitHub cannot be reached, refuses, or sends a response that cannot be used.
pub async fn start_login(
    provider: &HttpProvider,
    hosts: &CopilotHosts,
) -> Result<DeviceLogin, ModelError> {
    let url = address(&hosts.github, "login/device/code")?;
    let begun: Begun = ask(provider, &url, &[("client_id", CLIENT_ID), ("scope", SCOPE)]).await?;
    Ok(DeviceLogin {
        user_code: begun.user_code,
        verification_uri: begun.verification_uri,
        expires_in: Duration::from_secs(begun.expires_in).min(LONGEST_LIFE),
        device_code: begun.device_code.into(),
        interval: begun.interval.map_or(INTERVAL, Duration::from_secs).min(LONGEST_INTERVAL),
        token_url: address(&hosts.github, "login/oauth/access_token")?,
    })
}

/// Waits until the user has typed the code, and returns the GitHub token: the key of the provider `github-copilot`.
///
/// # Errors
/// The user refuses, the code expires, `cancel` fires, or GitHub cannot be reached. A poll that fails on the network is
/// repeated until the code expires.
pub async fn finish_login(
    provider: &HttpProvider,
    login: &DeviceLogin,
    cancel: &CancellationToken,
) -> Result<SecretString, LoginError> {
    let deadline = Instant::now() + login.expires_in;
    let mut interval = login.interval;
    let fields = [
        ("client_id", CLIENT_ID),
        ("device_code", login.device_code.expose_secret()),
        ("grant_type", GRANT_TYPE),
    ];
    loop {
        let question = async {
            tokio::time::sleep(interval).await;
            ask::<Polled>(provider, &login.token_url, &fields).await
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(LoginError::Aborted),
            () = tokio::time::sleep_until(deadline) => return Err(LoginError::Expired),
            answer = question => answer,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if error.class == ErrorClass::Timeout => {
                // The network may be down for a moment. A poll that fails at once must not be repeated at once.
                interval = interval.max(INTERVAL);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(token) = answer.access_token {
            return Ok(token.into());
        }
        match answer.error.as_deref() {
            Some("authorization_pending") => {}
            Some("slow_down") => {
                let asked = answer.interval.map(Duration::from_secs);
                interval = asked.unwrap_or(interval + INTERVAL).min(LONGEST_INTERVAL);
            }
            Some("access_denied") => return Err(LoginError::Denied),
            Some("expired_token" | "token_expired") => return Err(LoginError::Expired),
            other => {
                let why = answer.error_description.as_deref().or(other).unwrap_or("no reason");
                let message = format!("GitHub refused the login: {why}");
                return Err(ModelError::new(ErrorClass::Auth, message).into());
            }
        }
    }
}

/// Posts a form and reads the JSON of the answer.
async fn ask<T: serde::de::DeserializeOwned>(
    provider: &HttpProvider,
    url: &Url,
    fields: &[(&str, &str)],
) -> Result<T, ModelError> {
    let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let client = provider.clients().client(url, CONNECT_LIMIT).await?;
    let asking = async {
        let response = client
            .post(url.clone())
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form)
            .send()
            .await
            .map_err(|error| transport_error(&error, url, CONNECT_LIMIT))?;
        if !response.status().is_success() {
            let refusal = read_refusal(response).await;
            let message = format!("{} {}", url.host_str().unwrap_or_default(), refusal.message);
            return Err(ModelError { message, ..refusal });
        }
        let body = read_capped(response, MAX_ANSWER, EXCHANGE_LIMIT).await;
        serde_json::from_slice(&body).map_err(|_| {
            let host = url.host_str().unwrap_or_default();
            let message = format!("{host} answered the login with something that is not JSON");
            ModelError::new(ErrorClass::Unknown, message)
        })
    };
    tokio::time::timeout(EXCHANGE_LIMIT, asking).await.unwrap_or_else(|_| {
        let message = format!("no answer from {url} within {} s", EXCHANGE_LIMIT.as_secs());
        Err(ModelError::new(ErrorClass::Timeout, message))
    })
}

fn address(github: &str, path: &str) -> Result<Url, ModelError> {
    Url::parse(&format!("{}/{path}", github.trim_end_matches('/'))).map_err(|error| {
        let message = format!("{github:?} is not an address of GitHub: {error}");
        ModelError::new(ErrorClass::Unknown, message)
    })
}
