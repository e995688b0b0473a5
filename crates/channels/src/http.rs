//! Requests to other servers, and what their failures mean.

use std::fmt;
use std::time::Duration;

use myclaw_proxy::to_server;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
pub use reqwest::Client;
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, redirect, retry};

/// Time to connect.
const CONNECT: Duration = Duration::from_secs(10);

/// Why there is no answer. The texts do not hold the address, which may hold a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The request did not reach the server.
    NotSent(String),
    /// It is uncertain what the server did.
    Unknown(String),
    /// The answer has more bytes than this.
    TooLong(usize),
}

/// Why a call of a vendor's API failed. `R` is what the vendor says when it refuses one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallError<R> {
    /// The server refused it.
    Refused(R),
    /// It did not reach the server.
    NotSent(String),
    /// It is uncertain what the server did.
    Unknown(String),
}

/// What a vendor says when it refuses a call. Its text follows the word "refused".
pub(crate) trait Refusal: fmt::Display {
    /// The server, for people.
    const SERVER: &'static str;
}

impl<R: Refusal> fmt::Display for CallError<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = R::SERVER;
        match self {
            Self::Refused(refused) => write!(out, "{server} refused {refused}"),
            Self::NotSent(reason) => write!(out, "{server} cannot be reached: {reason}"),
            Self::Unknown(reason) => write!(out, "{server} gave no answer: {reason}"),
        }
    }
}

impl<R> From<Failure> for CallError<R> {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotSent(reason) => Self::NotSent(reason),
            Failure::Unknown(reason) => Self::Unknown(reason),
            Failure::TooLong(most) => Self::Unknown(format!("it has more than {most} bytes")),
        }
    }
}

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, as long as was allowed at most.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header that is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The seconds of the header `retry-after`.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after")?.trim().parse().ok().map(Duration::from_secs)
    }
}

/// A client for the server at `base`. It follows no redirects and repeats nothing.
///
/// # Errors
/// It cannot be set up; the text says why.
pub fn client(base: &str) -> Result<Client, String> {
    // An error means that one is installed already, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false);
    if base.starts_with("http://") {
        // No certificates are needed, and reading those of the system takes time.
        builder = builder.tls_certs_only([]);
    }
    to_server(builder, base).build().map_err(|error| error.to_string())
}

/// Sends a request and reads an answer of at most `most` bytes.
///
/// # Errors
/// There is no answer within `limit`, or it is too long.
pub async fn exchange(
    request: RequestBuilder,
    most: usize,
    limit: Duration,
) -> Result<Answer, Failure> {
    let asking = async {
        let mut response = request.send().await.map_err(|error| failure(&error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))? {
            if body.len() + chunk.len() > most {
                return Err(Failure::TooLong(most));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, headers, body })
    };
    tokio::time::timeout(limit, asking).await.unwrap_or_else(|_| {
        Err(Failure::Unknown(format!("no answer within {} s", limit.as_secs())))
    })
}

/// A part of a path, or a value of a query or form.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn failure(error: &reqwest::Error) -> Failure {
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
        Failure::NotSent(reason)
    } else {
        Failure::Unknown(reason)
    }
}
