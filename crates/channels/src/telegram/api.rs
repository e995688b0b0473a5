//! Calls of the Bot API over HTTP.

use std::time::Duration;

use reqwest::{Client, redirect, retry};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Largest answer that is read, in bytes: 100 updates of a few kilobytes each.
const MOST_ANSWER: usize = 8 * 1024 * 1024;

/// A connection to the Bot API for one bot.
pub(super) struct Api {
    client: Client,
    base: String,
    token: SecretString,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApiError {
    /// The server refused it.
    Refused(Refused),
    /// It did not reach the server.
    NotSent(String),
    /// Nobody knows what the server did.
    Unknown(String),
}

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

impl std::fmt::Display for ApiError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refused) => {
                write!(out, "Telegram refused ({}): {}", refused.code, refused.description)
            }
            Self::NotSent(reason) => write!(out, "Telegram cannot be reached: {reason}"),
            Self::Unknown(reason) => write!(out, "Telegram gave no answer: {reason}"),
        }
    }
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

/// A file for [`Api::upload`].
pub(super) struct Upload {
    pub(super) field: &'static str,
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

impl Api {
    pub(super) fn new(base: &str, token: SecretString) -> Result<Self, String> {
        // An error means that one is installed already, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false);
        if let Some(rest) = base.strip_prefix("http://") {
            // No certificates are needed, and reading those of the system takes time.
            builder = builder.tls_certs_only([]);
            if ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| rest.starts_with(host)) {
                builder = builder.no_proxy();
            }
        }
        let client = builder.build().map_err(|error| error.to_string())?;
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
        let boundary = uuid::Uuid::new_v4().simple().to_string();
        let mut body = Vec::with_capacity(file.bytes.len() + 1_024);
        for (name, value) in params {
            let head = format!("content-disposition: form-data; name=\"{name}\"");
            body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n{value}\r\n").as_bytes());
        }
        let name: String = file
            .name
            .chars()
            .map(|character| match character {
                '"' | '\\' => '_',
                other if other.is_control() => '_',
                other => other,
            })
            .collect();
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{}\"; filename=\"{name}\"\r\n\
             content-type: application/octet-stream\r\n\r\n",
            file.field
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&file.bytes);
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        let request = self
            .client
            .post(self.address(method))
            .header("content-type", format!("multipart/form-data; boundary={boundary}"))
            .body(body);
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
        let loading = async {
            let mut response =
                self.client.get(address).send().await.map_err(|error| failure(&error))?;
            let status = response.status();
            let mut bytes = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))? {
                if bytes.len() + chunk.len() > most {
                    let description = format!("the file has more than {most} bytes");
                    return Err(ApiError::Refused(Refused {
                        code: 413,
                        description,
                        ..Refused::default()
                    }));
                }
                bytes.extend_from_slice(&chunk);
            }
            if !status.is_success() {
                let description = "the file is not there".to_owned();
                let code = status.as_u16();
                return Err(ApiError::Refused(Refused { code, description, ..Refused::default() }));
            }
            Ok(bytes)
        };
        tokio::time::timeout(limit, loading).await.unwrap_or_else(|_| Err(timed_out(limit)))
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
        let asking = async {
            let mut response = request.send().await.map_err(|error| failure(&error))?;
            let status = response.status().as_u16();
            let mut bytes = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))? {
                if bytes.len() + chunk.len() > MOST_ANSWER {
                    return Err(ApiError::Unknown("the answer is too long".to_owned()));
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok((status, bytes))
        };
        let asked = tokio::time::timeout(limit, asking).await;
        let (status, bytes) = asked.unwrap_or_else(|_| Err(timed_out(limit)))?;
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

fn timed_out(limit: Duration) -> ApiError {
    ApiError::Unknown(format!("no answer within {} s", limit.as_secs()))
}

/// The failure of a request, without its address.
fn failure(error: &reqwest::Error) -> ApiError {
    let mut reason = String::new();
    let mut source: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(inner) = source {
        reason = inner.to_string();
        source = inner.source();
    }
    if reason.is_empty() {
        reason = "the request failed".to_owned();
    }
    if error.is_connect() || error.is_builder() {
        ApiError::NotSent(reason)
    } else {
        ApiError::Unknown(reason)
    }
}
