//! Calls of the Cloud API over HTTP.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::payload::ErrorData;
use crate::form::{FormFile, form};
use crate::http::{self, Answer, CallError, Failure, Refusal};

/// Largest answer that is read, in bytes. They are a few hundred bytes long.
const MOST_ANSWER: usize = 1024 * 1024;
/// Time for a call. Answers come within seconds; the vendor names no time.
pub(super) const CALL_TIME: Duration = Duration::from_secs(20);
/// Where files of the public API are ("Download media" in the vendor's reference of media).
const MEDIA_HOST: &str = "lookaside.fbsbx.com";
/// The host of the public API.
const API_HOST: &str = "graph.facebook.com";
/// The media server refuses clients that do not name themselves.
const USER_AGENT: &str = concat!("myclaw/", env!("CARGO_PKG_VERSION"));

/// A connection for one phone number.
pub(super) struct Api {
    client: Client,
    base: Url,
    /// The base address with the version.
    versioned: String,
    number: String,
    token: SecretString,
}

/// Why a call failed.
pub(super) type ApiError = CallError<Refused>;

/// What the vendor said when it refused a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) status: u16,
    /// The code of the Cloud API or of the Graph API; 0 if there is none.
    pub(super) code: u32,
    /// For people.
    pub(super) reason: String,
    pub(super) retry_after: Option<Duration>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "(status {}, code {}): {}", self.status, self.code, self.reason)
    }
}

impl Refusal for Refused {
    const SERVER: &'static str = "WhatsApp";
}

#[derive(Deserialize)]
struct Envelope {
    error: GraphError,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GraphError {
    message: String,
    code: u32,
    error_data: ErrorData,
}

/// A file at the vendor.
#[derive(Debug, Deserialize)]
struct Place {
    url: String,
    #[serde(default)]
    file_size: Option<u64>,
}

/// What the vendor knows of a number.
#[derive(Debug, Deserialize)]
pub(super) struct Number {
    pub(super) display_phone_number: String,
    #[serde(default)]
    pub(super) verified_name: Option<String>,
}

impl Api {
    pub(super) fn new(
        base: &str,
        version: &str,
        number: &str,
        token: SecretString,
    ) -> Result<Self, String> {
        let client = http::client(base)?;
        let parsed =
            Url::parse(base).map_err(|error| format!("the base URL is invalid: {error}"))?;
        let versioned = format!("{}/{version}", base.trim_end_matches('/'));
        Ok(Self { client, base: parsed, versioned, number: number.to_owned(), token })
    }

    /// Asks about the own number.
    pub(super) async fn number(&self) -> Result<Number, ApiError> {
        let fields = "fields=display_phone_number,verified_name";
        let address = format!("{}/{}?{fields}", self.versioned, self.number);
        self.ask(self.client.get(address), CALL_TIME).await
    }

    /// Posts to `messages`.
    pub(super) async fn post<T: DeserializeOwned>(&self, body: &Value) -> Result<T, ApiError> {
        let request = self
            .client
            .post(format!("{}/{}/messages", self.versioned, self.number))
            .header("content-type", "application/json")
            .body(body.to_string());
        self.ask(request, CALL_TIME).await
    }

    /// Stores a file at the vendor; gives its id.
    pub(super) async fn upload(
        &self,
        name: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<String, ApiError> {
        #[derive(Deserialize)]
        struct Uploaded {
            id: String,
        }
        let texts = [("messaging_product", "whatsapp".to_owned()), ("type", media_type.to_owned())];
        let (content_type, body) =
            form(&texts, &FormFile { field: "file", name, media_type, bytes });
        // A second for each 100 KB.
        let limit = CALL_TIME + Duration::from_secs(bytes.len() as u64 / 100_000);
        let request = self
            .client
            .post(format!("{}/{}/media", self.versioned, self.number))
            .header("content-type", content_type)
            .body(body);
        Ok(self.ask::<Uploaded>(request, limit).await?.id)
    }

    /// Downloads a file of at most `most` bytes. Its id comes from a webhook.
    pub(super) async fn download(&self, id: &str, most: u64) -> Result<Vec<u8>, ApiError> {
        let is_id = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if id.is_empty() || !id.bytes().all(is_id) {
            return Err(refused(400, "the id of the file is no id"));
        }
        let address = format!("{}/{id}?phone_number_id={}", self.versioned, self.number);
        let place: Place = self.ask(self.client.get(address), CALL_TIME).await?;
        let too_long = |size: u64| {
            refused(413, &format!("it has {size} bytes, and at most {most} are downloaded"))
        };
        if let Some(size) = place.file_size.filter(|size| *size > most) {
            return Err(too_long(size));
        }
        let url = Url::parse(&place.url).ok().filter(|url| self.may_have_token(url));
        let Some(url) = url else {
            return Err(refused(400, "the file is at a host that is not WhatsApp's"));
        };
        let limit = CALL_TIME + Duration::from_secs(place.file_size.unwrap_or(most) / 100_000);
        let request = self.authorized(self.client.get(url));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match http::exchange(request, most, limit).await {
            Ok(answer) if answer.status == 200 => Ok(answer.body),
            // Another attempt may succeed.
            Ok(Answer { status: status @ 500.., .. }) => {
                Err(ApiError::Unknown(format!("status {status}")))
            }
            Ok(answer) => Err(refused(answer.status, "the file is not there")),
            Err(Failure::TooLong(most)) => Err(too_long(most as u64 + 1)),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Whether the token may be sent to an address: it is that of the API, or the media server of the public one.
    fn may_have_token(&self, url: &Url) -> bool {
        let is_public = self.base.host_str() == Some(API_HOST) && self.base.scheme() == "https";
        let is_media = url.host_str() == Some(MEDIA_HOST)
            && url.scheme() == "https"
            && url.port_or_known_default() == Some(443);
        url.origin() == self.base.origin() || (is_public && is_media)
    }

    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        request.header("user-agent", USER_AGENT).bearer_auth(self.token.expose_secret())
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        limit: Duration,
    ) -> Result<T, ApiError> {
        let answer = http::exchange(self.authorized(request), MOST_ANSWER, limit).await?;
        if (200..300).contains(&answer.status) {
            return serde_json::from_slice(&answer.body)
                .map_err(|error| ApiError::Unknown(format!("the answer cannot be read: {error}")));
        }
        Err(failure(&answer))
    }
}

fn failure(answer: &Answer) -> ApiError {
    let (status, retry_after) = (answer.status, answer.retry_after());
    let Ok(Envelope { error }) = serde_json::from_slice(&answer.body) else {
        return match status {
            500.. => ApiError::Unknown(format!("status {status}, and no JSON")),
            _ => refused(status, "the answer is not of the Graph API; is the address right?"),
        };
    };
    let GraphError { message, code, error_data } = error;
    // The code 1 with a server error means that the outcome is uncertain.
    if status >= 500 && matches!(code, 0 | 1) {
        return ApiError::Unknown(format!("status {status}: {message}"));
    }
    let reason = match error_data.details.is_empty() {
        true => message,
        false => format!("{message}: {}", error_data.details),
    };
    ApiError::Refused(Refused { status, code, reason, retry_after })
}

fn refused(status: u16, reason: &str) -> ApiError {
    ApiError::Refused(Refused { status, reason: reason.to_owned(), ..Refused::default() })
}

#[cfg(test)]
mod tests;
