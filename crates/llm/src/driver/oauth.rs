//! Renewing a login: a refresh token is exchanged for a new token (RFC 6749, section 6).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::refusal::MAX_ERROR_BODY;
use super::{HttpProvider, read_capped, read_refusal};
use crate::classify::one_line;
use crate::http::transport_error;
use crate::redact::redact;
use crate::wire::{host_label, is_loopback};
use crate::{ErrorClass, ModelError};

/// How long a renewal may take.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Limit for the connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Most characters of a server's refusal that are shown.
const SHOWN_REASON: usize = 200;

/// The parameters of the request.
#[derive(Debug, Clone, Copy)]
pub struct TokenRequest<'a> {
    /// The token endpoint: `https`, or a server on this machine.
    pub token_url: &'a str,
    /// The id of the application that the person signed in to.
    pub client_id: &'a str,
    /// Its secret, where it has one.
    pub client_secret: Option<&'a SecretString>,
    /// Whether that is sent in a header, not in the form.
    pub secret_in_header: bool,
    /// The scope, if the server requires it again.
    pub scope: Option<&'a str>,
    /// What the tokens are for, if they are for one server only (RFC 8707).
    pub resource: Option<&'a str>,
    /// Proves that the person signed in.
    pub refresh_token: &'a SecretString,
}

/// The response.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// The token for calls.
    pub access: SecretString,
    /// The refresh token for the next renewal, if it has changed.
    pub refresh: Option<SecretString>,
    /// How long the token lasts, if the server says so.
    pub expires_in: Option<Duration>,
}

#[derive(Deserialize)]
struct Answer {
    access_token: Option<String>,
    refresh_token: Option<String>,
    /// In seconds.
    expires_in: Option<f64>,
    error: Option<String>,
    error_description: Option<String>,
}

/// Asks for a new token.
///
/// # Errors
/// [`ErrorClass::Auth`] if the server refuses, so that only a new sign-in helps; other classes if it cannot be reached
/// or its response cannot be used. No message holds a secret.
pub async fn renew_login(
    provider: &HttpProvider,
    request: &TokenRequest<'_>,
) -> Result<Tokens, ModelError> {
    let asking = ask(provider, request);
    let outcome = tokio::time::timeout(TIME_LIMIT, asking).await.unwrap_or_else(|_| {
        let message = format!(
            "{} gave no new token within {} s",
            one_line(request.token_url, SHOWN_REASON),
            TIME_LIMIT.as_secs()
        );
        Err(ModelError::new(ErrorClass::Timeout, message))
    });
    outcome.map_err(|mut error| {
        let secrets = [Some(request.refresh_token), request.client_secret];
        for secret in secrets.into_iter().flatten() {
            error.message = redact(&error.message, Some(secret.expose_secret()));
        }
        error
    })
}

async fn ask(provider: &HttpProvider, request: &TokenRequest<'_>) -> Result<Tokens, ModelError> {
    let url = address(request.token_url)?;
    let client = provider.clients.client(&url, CONNECT_LIMIT).await?;
    let mut asking = client
        .post(url.clone())
        .header(ACCEPT, HeaderValue::from_static("application/json"))
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form(request));
    if let Some(secret) = request.client_secret.filter(|_| request.secret_in_header) {
        asking = asking.header(AUTHORIZATION, client_header(request.client_id, secret));
    }
    let response =
        asking.send().await.map_err(|error| transport_error(&error, &url, CONNECT_LIMIT))?;
    let status = response.status();
    // Refusals come as 400 or 401 with their reason as JSON.
    if !status.is_success() && !matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED)
    {
        let refusal = read_refusal(response).await;
        let message = format!("{} {}", host_label(&url), refusal.message);
        return Err(ModelError { message, ..refusal });
    }
    let body = read_capped(response, MAX_ERROR_BODY, TIME_LIMIT).await;
    let answer = serde_json::from_slice::<Answer>(&body).ok();
    tokens(answer, status, &url)
}

fn form(request: &TokenRequest<'_>) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token")
        .append_pair("refresh_token", request.refresh_token.expose_secret());
    if !request.secret_in_header {
        form.append_pair("client_id", request.client_id);
        if let Some(secret) = request.client_secret {
            form.append_pair("client_secret", secret.expose_secret());
        }
    }
    for (name, value) in [("scope", request.scope), ("resource", request.resource)] {
        if let Some(value) = value {
            form.append_pair(name, value);
        }
    }
    form.finish()
}

/// The id and the secret of an application as a header (RFC 6749, section 2.3.1).
pub fn client_header(id: &str, secret: &SecretString) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let both = format!("{}:{}", encoded(id), encoded(secret.expose_secret()));
    format!("Basic {}", STANDARD.encode(both))
}

fn tokens(answer: Option<Answer>, status: StatusCode, url: &Url) -> Result<Tokens, ModelError> {
    let host = host_label(url);
    match answer {
        Some(Answer { error: Some(code), error_description, .. }) => {
            let why = error_description.map(|why| format!(" ({why})")).unwrap_or_default();
            let reason = one_line(&format!("{code}{why}"), SHOWN_REASON);
            Err(ModelError {
                status: Some(status.as_u16()),
                code: Some(code),
                ..ModelError::new(ErrorClass::Auth, format!("{host} refused: {reason}"))
            })
        }
        Some(Answer { access_token: Some(access), refresh_token, expires_in, .. })
            if status.is_success() && !access.trim().is_empty() =>
        {
            let expires_in = expires_in.and_then(|life| Duration::try_from_secs_f64(life).ok());
            Ok(Tokens {
                access: access.into(),
                refresh: refresh_token.map(SecretString::from),
                expires_in,
            })
        }
        _ => {
            let message = format!(
                "{host} answered {} with something that is not a token: check tokenUrl",
                status.as_u16()
            );
            Err(ModelError::new(ErrorClass::Unknown, message))
        }
    }
}

/// The URL, if secrets may be sent to it.
fn address(token_url: &str) -> Result<Url, ModelError> {
    let unusable = |why: &str| {
        let message = format!("the tokenUrl {:?} {why}", one_line(token_url, SHOWN_REASON));
        ModelError::new(ErrorClass::Unknown, message)
    };
    let url = Url::parse(token_url.trim()).map_err(|_| unusable("is not a URL"))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        _ => Err(unusable("must begin with https://")),
    }
}
