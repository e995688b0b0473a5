//! Downloads: one GET request with its redirects, each connection only to addresses that the guard has checked.

mod body;
mod connect;
mod error;

use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{RequestBuilder, Response, StatusCode};
use url::{Origin, Url};

use crate::AddressGuard;
use connect::Connector;
pub(crate) use connect::ServiceClient;
pub use error::DownloadError;

/// Redirects followed. Sites need two or three: to https, to www, to the page.
const MAX_REDIRECTS: usize = 5;

/// How downloads are made.
#[derive(Debug, Clone, Default)]
pub struct DownloadOptions {
    /// The `user-agent` header.
    pub user_agent: String,
    /// PEM files with certificate authorities to trust besides the system's.
    pub extra_ca_files: Vec<PathBuf>,
}

/// Makes downloads. Nothing is set up before the first one, and no connection is kept after one.
#[derive(Debug)]
pub struct Downloader {
    guard: AddressGuard,
    connector: Connector,
}

/// What is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The URL.
    pub url: &'a str,
    /// The `accept` header.
    pub accept: &'a str,
    /// Most bytes of the body that are kept, counted after decompression.
    pub max_bytes: usize,
    /// How long everything may take.
    pub limit: Duration,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// The address after all redirects, without credentials.
    pub url: Url,
    /// The status.
    pub status: StatusCode,
    /// The `content-type` header.
    pub content_type: Option<String>,
    /// The body, without compression.
    pub body: Vec<u8>,
    /// Whether there was more.
    pub is_cut: bool,
}

/// User name and password for one origin.
struct Credentials {
    origin: Origin,
    user: String,
    password: Option<String>,
}

impl Downloader {
    /// Makes downloads from addresses that `guard` permits.
    pub fn new(guard: AddressGuard, options: DownloadOptions) -> Self {
        Self { guard, connector: Connector::new(options) }
    }

    /// Downloads. Dropping the future ends the connection.
    ///
    /// # Errors
    /// The address is refused, the server cannot be reached, or the answer is not complete in time.
    pub async fn get(&self, wanted: Wanted<'_>) -> Result<Download, DownloadError> {
        let downloading = self.follow(wanted);
        match tokio::time::timeout(wanted.limit, downloading).await {
            Ok(result) => result,
            Err(_) => Err(DownloadError::TooSlow { limit: wanted.limit }),
        }
    }

    async fn follow(&self, wanted: Wanted<'_>) -> Result<Download, DownloadError> {
        let mut url = self.guard.check_url(wanted.url)?;
        let credentials = take_credentials(&mut url);
        let asked_for = url.clone();
        let followed = self.follow_from(&mut url, credentials, &wanted).await;
        followed.map_err(|error| match url == asked_for {
            true => error,
            false => DownloadError::Behind(Box::new(error)),
        })
    }

    /// Downloads from `url`, which becomes the address after each redirect.
    async fn follow_from(
        &self,
        url: &mut Url,
        mut credentials: Option<Credentials>,
        wanted: &Wanted<'_>,
    ) -> Result<Download, DownloadError> {
        for _ in 0..=MAX_REDIRECTS {
            // Credentials are sent only to the origin of the URL that holds them. Credentials in a redirect are not
            // used, and after a redirect to another origin none are sent again.
            credentials = credentials.filter(|given| given.origin == url.origin());
            let response = self.request(url, wanted.accept, credentials.as_ref()).await?;
            match redirect_target(&response, url)? {
                Some(target) => {
                    *url = target;
                    self.guard.check_parsed(url)?;
                    take_credentials(url);
                }
                None => return body::read(response, url.clone(), wanted.max_bytes).await,
            }
        }
        Err(DownloadError::TooManyRedirects { limit: MAX_REDIRECTS, last: url.to_string() })
    }

    async fn request(
        &self,
        url: &Url,
        accept: &str,
        credentials: Option<&Credentials>,
    ) -> Result<Response, DownloadError> {
        let client = self.connector.client_for(&self.guard, url).await?;
        let request =
            client.get(url.clone()).header(ACCEPT, accept).header(ACCEPT_ENCODING, "gzip");
        let request = match credentials {
            Some(given) => request.basic_auth(&given.user, given.password.as_ref()),
            None => request,
        };
        request.send().await.map_err(|error| DownloadError::from_client(&error, url))
    }
}

impl Download {
    /// The media type in lower case, without parameters; empty if the server gives none.
    pub fn media_type(&self) -> String {
        let header = self.content_type.as_deref().unwrap_or_default();
        header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

/// Sends a request to a service and reads its answer.
///
/// # Errors
/// The service cannot be reached, or the answer breaks off.
pub(crate) async fn read_answer(
    request: RequestBuilder,
    url: Url,
    max_bytes: usize,
) -> Result<Download, DownloadError> {
    let response =
        request.send().await.map_err(|error| DownloadError::from_client(&error, &url))?;
    body::read(response, url, max_bytes).await
}

/// Takes user name and password out of `url`.
fn take_credentials(url: &mut Url) -> Option<Credentials> {
    let decode =
        |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let credentials =
        (!url.username().is_empty() || url.password().is_some()).then(|| Credentials {
            origin: url.origin(),
            user: decode(url.username()),
            password: url.password().map(decode),
        });
    // Both fail only for URLs without a host, which the guard has refused.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    credentials
}

/// The address that a model gave, as it may be shown.
pub(crate) fn without_credentials(url: &str) -> String {
    Url::parse(url.trim()).map_or_else(
        |_| url.to_owned(),
        |mut url| {
            take_credentials(&mut url);
            url.into()
        },
    )
}

/// Where a redirect leads; `None` for any other answer.
fn redirect_target(response: &Response, url: &Url) -> Result<Option<Url>, DownloadError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let unusable = || DownloadError::BadRedirect { url: url.as_str().to_owned() };
    let location = std::str::from_utf8(location.as_bytes()).map_err(|_| unusable())?;
    url.join(location).map(Some).map_err(|_| unusable())
}

/// The `content-type` header, as far as it is text.
fn content_type(response: &Response) -> Option<String> {
    let header = response.headers().get(CONTENT_TYPE)?;
    header.to_str().ok().map(str::to_owned)
}
