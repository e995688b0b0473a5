//! Calls of the Web API over HTTP.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::http::{self, CallError, Refusal};
use crate::ws;

/// Largest answer that is read, in bytes: 200 messages of 40,000 characters each are rare.
const MOST_ANSWER: usize = 16 * 1024 * 1024;
/// Time for a call. A longer wait does not make an answer more likely.
pub(super) const CALL_TIME: Duration = Duration::from_secs(30);
/// Errors that say that Slack does not take the token (Web API, "Errors" of `auth.test`).
const WRONG_TOKEN: [&str; 6] = [
    "invalid_auth",
    "not_authed",
    "account_inactive",
    "token_revoked",
    "token_expired",
    "not_allowed_token_type",
];
/// Errors after which it is uncertain how much was done (Web API, "Errors" of `chat.postMessage`).
const UNCLEAR: [&str; 4] =
    ["internal_error", "fatal_error", "service_unavailable", "request_timeout"];

/// A connection to Slack for one app.
pub(super) struct Api {
    client: Client,
    base: String,
    bot: SecretString,
    app: SecretString,
}

/// Which of the app's tokens a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// That of the bot, `xoxb-…`.
    Bot,
    /// That of the app, `xapp-…`, which opens sockets.
    App,
}

/// Why a call failed.
pub(super) type ApiError = CallError<Refused>;

/// What Slack said when it refused a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Refused {
    /// Slack's name of the error.
    pub(super) code: String,
    /// The scope that the token lacks.
    needed: Option<String>,
    /// When to try again.
    pub(super) retry_after: Option<Duration>,
}

impl Refused {
    /// A refusal of this program's own.
    pub(super) fn said(reason: &str) -> Self {
        Self { code: reason.to_owned(), ..Self::default() }
    }

    pub(super) fn is(&self, codes: &[&str]) -> bool {
        codes.contains(&self.code.as_str())
    }

    /// Whether Slack does not know the token.
    pub(super) fn is_wrong_token(&self) -> bool {
        self.is(&WRONG_TOKEN)
    }

    /// Whether Slack wants fewer calls.
    pub(super) fn is_too_many(&self) -> bool {
        self.is(&["ratelimited", "rate_limited"])
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "({})", self.code)?;
        match &self.needed {
            Some(scope) => write!(
                out,
                ": the app lacks the scope {scope}; add it under OAuth & Permissions, and install the app again"
            ),
            None => Ok(()),
        }
    }
}

impl Refusal for Refused {
    const SERVER: &'static str = "Slack";
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope {
    ok: bool,
    error: String,
    needed: Option<String>,
}

impl Api {
    pub(super) fn new(base: &str, bot: SecretString, app: SecretString) -> Result<Self, String> {
        let client = http::client(base)?;
        Ok(Self { client, base: base.trim_end_matches('/').to_owned(), bot, app })
    }

    /// Calls a method. Every method takes a form; values that are no texts are written as JSON.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        token: Token,
        method: &str,
        params: &Value,
    ) -> Result<T, ApiError> {
        let fields = params.as_object().into_iter().flatten();
        let pairs = fields.map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{name}={}", http::encode(&text))
        });
        let secret = match token {
            Token::Bot => &self.bot,
            Token::App => &self.app,
        };
        let request = self
            .client
            .post(format!("{}/{method}", self.base))
            .bearer_auth(secret.expose_secret())
            .header("content-type", "application/x-www-form-urlencoded")
            .body(pairs.collect::<Vec<_>>().join("&"));
        finish(request).await
    }

    /// Opens the socket at `address`, which Slack has named.
    pub(super) async fn open(&self, address: &str, most: usize) -> Result<ws::Socket, ApiError> {
        let http = ws::http_address(address);
        if !http.is_some_and(|http| self.is_own(&http)) {
            let reason = "the socket is at another server than baseUrl; it is not opened";
            return Err(ApiError::NotSent(reason.to_owned()));
        }
        ws::connect(&self.client, address, most).await.map_err(ApiError::NotSent)
    }

    /// Puts the bytes of a file where Slack wants them.
    pub(super) async fn upload(&self, address: &str, bytes: Vec<u8>) -> Result<(), ApiError> {
        if !self.is_own(address) {
            return Err(refused("the upload is at another server than baseUrl"));
        }
        // A second for each 100 KB.
        let limit = CALL_TIME + Duration::from_secs(bytes.len() as u64 / 100_000);
        let request = self
            .client
            .post(address)
            .header("content-type", "application/octet-stream")
            .body(bytes);
        let answer = http::exchange(request, MOST_ANSWER, limit).await?;
        match answer.status {
            200..=299 => Ok(()),
            status => Err(ApiError::Unknown(format!("the upload ended with status {status}"))),
        }
    }

    /// Downloads a file of at most `most` bytes. The token goes to no other server than Slack's.
    pub(super) async fn download(&self, address: &str, most: u64) -> Result<Vec<u8>, ApiError> {
        if !self.is_own(address) {
            return Err(refused("it is at another server than baseUrl"));
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let request = self.client.get(address).bearer_auth(self.bot.expose_secret());
        let answer = http::exchange(request, most, CALL_TIME * 2).await?;
        match answer.status {
            200..=299 => Ok(answer.body),
            // Slack sends people who may not see a file to a page where they can log in.
            300..=399 | 401 | 403 => Err(refused("the app lacks the scope files:read")),
            500.. => Err(ApiError::Unknown(format!("status {}", answer.status))),
            status => Err(refused(&format!("status {status}"))),
        }
    }

    /// Whether an address is at the server of `base` or below its name, as `files.slack.com` is below `slack.com`.
    fn is_own(&self, address: &str) -> bool {
        let (Ok(base), Ok(address)) = (Url::parse(&self.base), Url::parse(address)) else {
            return false;
        };
        let (Some(own), Some(host)) = (base.host_str(), address.host_str()) else { return false };
        let is_below = base.domain().is_some()
            && host.strip_suffix(own).is_some_and(|rest| rest.ends_with('.'));
        base.scheme() == address.scheme()
            && base.port_or_known_default() == address.port_or_known_default()
            && (host == own || is_below)
    }
}

async fn finish<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, ApiError> {
    let answer = http::exchange(request, MOST_ANSWER, CALL_TIME).await?;
    let (status, retry_after) = (answer.status, answer.retry_after());
    if status == 429 {
        let code = "ratelimited".to_owned();
        return Err(ApiError::Refused(Refused { code, needed: None, retry_after }));
    }
    let Ok(envelope) = serde_json::from_slice::<Envelope>(&answer.body) else {
        return Err(match status {
            400..=499 => refused("the answer is not JSON; is this a Slack server?"),
            _ => ApiError::Unknown(format!("status {status}, and no JSON")),
        });
    };
    if envelope.ok {
        return serde_json::from_slice(&answer.body)
            .map_err(|error| ApiError::Unknown(format!("the answer cannot be read: {error}")));
    }
    let Envelope { error: code, needed, .. } = envelope;
    if status >= 500 || UNCLEAR.contains(&code.as_str()) {
        return Err(ApiError::Unknown(format!("status {status}: {code}")));
    }
    Err(ApiError::Refused(Refused { code, needed, retry_after }))
}

fn refused(code: &str) -> ApiError {
    ApiError::Refused(Refused::said(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_to_no_other_server() {
        let api = |base: &str| {
            Api::new(base, SecretString::from("b"), SecretString::from("a")).expect("a client")
        };
        let slack = api("https://slack.com/api");
        for own in
            ["https://files.slack.com/x", "https://slack.com/x", "https://wss-1.slack.com:443/"]
        {
            assert!(slack.is_own(own), "{own}");
        }
        for other in [
            "http://files.slack.com/x",
            "https://evilslack.com/x",
            "https://slack.com.evil.org/x",
            "https://slack.com@evil.org/x",
            "https://files.slack.com:8443/x",
            "file:///etc/passwd",
            "no address",
        ] {
            assert!(!slack.is_own(other), "{other}");
        }
        assert!(!api("http://127.0.0.1:1/api").is_own("http://127.0.0.1:2/api"));
    }
}
