//! Logins with a code (RFC 8628): a person types it on the vendor's page, while this program asks until that is done.

use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use myclaw_llm::HttpProvider;
use myclaw_llm::access::{is_loopback, read_capped, read_refusal, transport_error};
use myclaw_llm::{ErrorClass, ModelError};

/// The grant type of such a login.
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The pause between two polls if the server names none, and the time that `slow_down` adds (RFC 8628).
const INTERVAL: Duration = Duration::from_secs(5);

/// Longest pause between two polls.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// Longest wait for the code to be typed; GitHub's codes are valid for 15 minutes.
const LONGEST_LIFE: Duration = Duration::from_secs(60 * 60);

/// Limit for the connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long one request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// Largest response, in bytes; real ones have some thousand.
const MAX_ANSWER: usize = 256 * 1024;

/// The server where a person logs in.
#[derive(Debug, Clone)]
pub struct DeviceServer {
    /// Who that is, for messages.
    pub vendor: String,
    /// Where codes are asked for.
    pub device_url: Url,
    /// Where tokens are asked for.
    pub token_url: Url,
    /// The id of this program there.
    pub client_id: String,
    /// What the login should permit.
    pub scope: String,
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
    server: DeviceServer,
}

/// What a login gives.
#[derive(Debug, Clone)]
pub struct Granted {
    /// The token for calls.
    pub access: SecretString,
    /// The token for a renewal, if there is one.
    pub refresh: Option<SecretString>,
    /// How long the token for calls lasts, if the server says so.
    pub expires_in: Option<Duration>,
    /// What the login permits, if the server says so.
    pub scope: Option<String>,
    /// Who has logged in, as a JSON web token, if the server says so.
    pub id_token: Option<String>,
}

/// How a login ended without a token.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LoginError {
    /// The user refused.
    #[error("the login was refused on {0}'s page")]
    Denied(String),
    /// Nobody typed the code in time.
    #[error("the code has expired before it was typed: start the login again")]
    Expired,
    /// The caller aborted.
    #[error("the login was aborted")]
    Aborted,
    /// The server could not be reached, or its response cannot be used.
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
    refresh_token: Option<String>,
    /// In seconds.
    expires_in: Option<f64>,
    scope: Option<String>,
    id_token: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
    interval: Option<u64>,
}

/// Asks for a code.
///
/// # Errors
/// The server cannot be reached, refuses, or sends a response that cannot be used.
pub async fn start_login(
    provider: &HttpProvider,
    server: DeviceServer,
) -> Result<DeviceLogin, ModelError> {
    for url in [&server.device_url, &server.token_url] {
        if url.scheme() != "https" && !is_loopback(url) {
            let message = format!("{url}, where one logs in, must begin with https://");
            return Err(ModelError::new(ErrorClass::Unknown, message));
        }
    }
    let fields = [("client_id", server.client_id.as_str()), ("scope", &server.scope)];
    let begun: Begun =
        ask(provider, &server, &server.device_url, &fields, Refusals::AsErrors).await?;
    Ok(DeviceLogin {
        user_code: begun.user_code,
        verification_uri: begun.verification_uri,
        expires_in: Duration::from_secs(begun.expires_in).min(LONGEST_LIFE),
        device_code: begun.device_code.into(),
        interval: begun.interval.map_or(INTERVAL, Duration::from_secs).min(LONGEST_INTERVAL),
        server,
    })
}

/// Waits until the user has typed the code.
///
/// # Errors
/// The user refuses, the code expires, `cancel` fires, or the server cannot be reached. A poll that fails on the network is
/// repeated until the code expires.
pub async fn finish_login(
    provider: &HttpProvider,
    login: &DeviceLogin,
    cancel: &CancellationToken,
) -> Result<Granted, LoginError> {
    let deadline = Instant::now() + login.expires_in;
    let server = &login.server;
    let mut interval = login.interval;
    let fields = [
        ("client_id", server.client_id.as_str()),
        ("device_code", login.device_code.expose_secret()),
        ("grant_type", GRANT_TYPE),
    ];
    loop {
        let question = async {
            tokio::time::sleep(interval).await;
            ask::<Polled>(provider, server, &server.token_url, &fields, Refusals::AsAnswers).await
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
        if let Some(token) = answer.access_token.filter(|token| !token.is_empty()) {
            let life = answer.expires_in.and_then(|life| Duration::try_from_secs_f64(life).ok());
            return Ok(Granted {
                access: token.into(),
                refresh: answer.refresh_token.map(SecretString::from),
                expires_in: life,
                scope: answer.scope,
                id_token: answer.id_token,
            });
        }
        match answer.error.as_deref() {
            Some("authorization_pending") => {}
            Some("slow_down") => {
                let asked = answer.interval.map(Duration::from_secs);
                interval = asked.unwrap_or(interval + INTERVAL).min(LONGEST_INTERVAL);
            }
            // The second word is that of Microsoft.
            Some("access_denied" | "authorization_declined") => {
                return Err(LoginError::Denied(server.vendor.clone()));
            }
            Some("expired_token" | "token_expired") => return Err(LoginError::Expired),
            other => {
                let why = answer.error_description.as_deref().or(other).unwrap_or("no reason");
                let message = format!("{} refused the login: {why}", server.vendor);
                return Err(ModelError::new(ErrorClass::Auth, message).into());
            }
        }
    }
}

/// What the statuses 400 and 401 are: most servers say with them that the person has not finished yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusals {
    AsAnswers,
    AsErrors,
}

/// Posts a form and reads the JSON of the answer.
async fn ask<T: DeserializeOwned>(
    provider: &HttpProvider,
    server: &DeviceServer,
    url: &Url,
    fields: &[(&str, &str)],
    refusals: Refusals,
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
        let is_answer =
            refusals == Refusals::AsAnswers && matches!(response.status().as_u16(), 400 | 401);
        if !response.status().is_success() && !is_answer {
            let refusal = read_refusal(response).await;
            let message = format!("{} {}", url.host_str().unwrap_or_default(), refusal.message);
            return Err(ModelError { message, ..refusal });
        }
        let body = read_capped(response, MAX_ANSWER, REQUEST_LIMIT).await;
        serde_json::from_slice(&body).map_err(|_| {
            let message =
                format!("{} answered the login with something that is not JSON", server.vendor);
            ModelError::new(ErrorClass::Unknown, message)
        })
    };
    tokio::time::timeout(REQUEST_LIMIT, asking).await.unwrap_or_else(|_| {
        let message = format!("no answer from {url} within {} s", REQUEST_LIMIT.as_secs());
        Err(ModelError::new(ErrorClass::Timeout, message))
    })
}
