//! Calls of the client-server API over HTTP.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(super) use crate::http::encode;
use crate::http::{self, Answer, CallError, Refusal};

/// Largest answer that is read, in bytes: a sync with fifty messages in each of a hundred rooms.
const MOST_ANSWER: usize = 16 * 1024 * 1024;
/// Time for a call.
pub(super) const CALL_TIME: Duration = Duration::from_secs(30);

/// A connection to a homeserver for one account.
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
    pub(super) status: u16,
    /// The code of the Matrix specification.
    pub(super) code: String,
    /// For people.
    pub(super) error: String,
    /// When to try again.
    pub(super) retry_after: Option<Duration>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "({} {}): {}", self.status, self.code, self.error)
    }
}

impl Refusal for Refused {
    const SERVER: &'static str = "the homeserver";
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    errcode: String,
    error: String,
    retry_after_ms: Option<u64>,
}

impl Api {
    pub(super) fn new(base: &str, token: SecretString) -> Result<Self, String> {
        let client = http::client(base)?;
        Ok(Self { client, base: base.trim_end_matches('/').to_owned(), token })
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        limit: Duration,
    ) -> Result<T, ApiError> {
        json(&self.exchange(self.request(Method::GET, path, query), MOST_ANSWER, limit).await?)
    }

    pub(super) async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, ApiError> {
        self.write(self.request(Method::PUT, path, &[]), body).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, ApiError> {
        self.write(self.request(Method::POST, path, &[]), body).await
    }

    /// Stores a file at the server; gives its `mxc` address.
    pub(super) async fn upload(
        &self,
        name: &str,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<String, ApiError> {
        #[derive(Deserialize)]
        struct Uploaded {
            content_uri: String,
        }
        // A second for each 100 KB.
        let limit = CALL_TIME + Duration::from_secs(bytes.len() as u64 / 100_000);
        let request = self
            .request(Method::POST, "/_matrix/media/v3/upload", &[("filename", name)])
            .header("content-type", media_type)
            .body(bytes);
        let uploaded: Uploaded = json(&self.exchange(request, MOST_ANSWER, limit).await?)?;
        Ok(uploaded.content_uri)
    }

    /// Downloads a file of at most `most` bytes from its `mxc` address.
    pub(super) async fn download(&self, address: &str, most: u64) -> Result<Vec<u8>, ApiError> {
        let place = address.strip_prefix("mxc://").and_then(|rest| rest.split_once('/'));
        let Some((server, id)) = place.filter(|(server, id)| is_plain(server) && is_plain(id))
        else {
            return Err(refused(400, "the address of the file is no mxc address"));
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut last = refused(404, "the file is not there");
        // Servers before version 1.11 of the specification know the second one only.
        for start in ["/_matrix/client/v1/media/download", "/_matrix/media/v3/download"] {
            let request = self.request(Method::GET, &format!("{start}/{server}/{id}"), &[]);
            match self.exchange(request, most, CALL_TIME * 2).await {
                Ok(answer) => return Ok(answer.body),
                Err(ApiError::Refused(refused)) if refused.status == 404 => {
                    last = ApiError::Refused(refused);
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn request(&self, method: Method, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        let mut address = format!("{}{path}", self.base);
        for (number, (name, value)) in query.iter().enumerate() {
            address.push_str(if number == 0 { "?" } else { "&" });
            address.push_str(&format!("{name}={}", encode(value)));
        }
        self.client.request(method, address).bearer_auth(self.token.expose_secret())
    }

    async fn write<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        body: &Value,
    ) -> Result<T, ApiError> {
        let request = request.header("content-type", "application/json").body(body.to_string());
        json(&self.exchange(request, MOST_ANSWER, CALL_TIME).await?)
    }

    async fn exchange(
        &self,
        request: RequestBuilder,
        most: usize,
        limit: Duration,
    ) -> Result<Answer, ApiError> {
        let answer = http::exchange(request, most, limit).await?;
        let status = answer.status;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let after = answer.retry_after();
        let Ok(body) = serde_json::from_slice::<Body>(&answer.body) else {
            return Err(match status {
                500.. => ApiError::Unknown(format!("status {status}, and no JSON")),
                _ => refused(status, "the answer is not JSON; is this a Matrix homeserver?"),
            });
        };
        if status >= 500 {
            return Err(ApiError::Unknown(format!("status {status}: {}", body.error)));
        }
        let retry_after = body.retry_after_ms.map(Duration::from_millis).or(after);
        let Body { errcode: code, error, .. } = body;
        Err(ApiError::Refused(Refused { status, code, error, retry_after }))
    }
}

fn json<T: DeserializeOwned>(answer: &Answer) -> Result<T, ApiError> {
    serde_json::from_slice(&answer.body)
        .map_err(|error| ApiError::Unknown(format!("the answer cannot be read: {error}")))
}

fn refused(status: u16, error: &str) -> ApiError {
    ApiError::Refused(Refused { status, error: error.to_owned(), ..Refused::default() })
}

/// A part of an `mxc` address that is no path.
fn is_plain(part: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(&byte);
    !part.is_empty() && part != ".." && part != "." && part.bytes().all(is_allowed)
}
