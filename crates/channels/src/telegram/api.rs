//! Calls of the Bot API over HTTP.

use std::time::Duration;

use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::form::Upload;
use crate::http::{self, CallError, Failure, Refusal};

/// Largest answer that is read, in bytes: 100 updates of a few kilobytes each.
const MOST_ANSWER: usize = 8 * 1024 * 1024;

/// A connection to the Bot API for one bot.
pub(super) struct Api {
    client: Client,
    base: String,
    token: SecretString,
}

/// Why a call failed.
pub(super) type ApiError = CallError<Refused>;

/// What the server said when it refused a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Refused {
    /// Like an HTTP status.
    pub(super) code: u16,
    /// For people.
    pub(super) description: String,
    /// When to try again.
    pub(super) retry_after: Option<Duration>,
    /// The group has become a supergroup with this id.
    pub(super) moved_to: Option<i64>,
}

impl Refused {
    pub(super) fn says(&self, words: &str) -> bool {
        self.description.to_ascii_lowercase().contains(words)
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "({}): {}", self.code, self.description)
    }
}

impl Refusal for Refused {
    const SERVER: &'static str = "Telegram";
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    ok: bool,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error_code: Option<u16>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Parameters>,
}

#[derive(Deserialize)]
struct Parameters {
    #[serde(default)]
    retry_after: Option<u64>,
    #[serde(default)]
    migrate_to_chat_id: Option<i64>,
}

impl Api {
    pub(super) fn new(base: &str, token: SecretString) -> Result<Self, String> {
        let client = http::client(base)?;
        Ok(Self { client, base: base.trim_end_matches('/').to_owned(), token })
    }

    /// Calls a method.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<T, ApiError> {
        let request = self
            .client
            .post(self.address(method))
            .header("content-type", "application/json")
            .body(params.to_string());
        self.finish(request, limit).await
    }

    /// Calls a method that takes a file. The other parameters are texts.
    pub(super) async fn upload<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &[(&str, String)],
        file: Upload,
        limit: Duration,
    ) -> Result<T, ApiError> {
        let (content_type, body) = file.form(params);
        let request =
            self.client.post(self.address(method)).header("content-type", content_type).body(body);
        self.finish(request, limit).await
    }

    /// Downloads a file of at most `most` bytes. `path` comes from the method `getFile`.
    pub(super) async fn download(
        &self,
        path: &str,
        most: u64,
        limit: Duration,
    ) -> Result<Vec<u8>, ApiError> {
        let address = format!("{}/file/bot{}/{path}", self.base, self.token.expose_secret());
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let refused = |code: u16, description: String| {
            ApiError::Refused(Refused { code, description, ..Refused::default() })
        };
        let answer = match http::exchange(self.client.get(address), most, limit).await {
            Err(Failure::TooLong(most)) => {
                return Err(refused(413, format!("the file has more than {most} bytes")));
            }
            answer => answer?,
        };
        match answer.status {
            200..=299 => Ok(answer.body),
            status => Err(refused(status, "the file is not there".to_owned())),
        }
    }

    /// The address of a method. It holds the token, so it is never part of a message.
    fn address(&self, method: &str) -> String {
        format!("{}/bot{}/{method}", self.base, self.token.expose_secret())
    }

    async fn finish<T: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
        limit: Duration,
    ) -> Result<T, ApiError> {
        let http::Answer { status, body: bytes, .. } =
            http::exchange(request, MOST_ANSWER, limit).await?;
        let Ok(envelope) = serde_json::from_slice::<Envelope>(&bytes) else {
            return Err(match status {
                400..=499 => {
                    let description =
                        "the answer is not JSON; is this a Bot API server?".to_owned();
                    ApiError::Refused(Refused { code: status, description, ..Refused::default() })
                }
                _ => ApiError::Unknown(format!("status {status}, and no JSON")),
            });
        };
        if envelope.ok {
            let result = envelope.result.unwrap_or(Value::Null);
            return serde_json::from_value(result)
                .map_err(|error| ApiError::Unknown(format!("the answer cannot be read: {error}")));
        }
        let code = envelope.error_code.unwrap_or(status);
        let description = envelope.description.unwrap_or_default();
        if code >= 500 {
            return Err(ApiError::Unknown(format!("status {code}: {description}")));
        }
        let parameters = envelope.parameters;
        Err(ApiError::Refused(Refused {
            code,
            description,
            retry_after: parameters
                .as_ref()
                .and_then(|parameters| parameters.retry_after)
                .map(Duration::from_secs),
            moved_to: parameters.and_then(|parameters| parameters.migrate_to_chat_id),
        }))
    }
}
