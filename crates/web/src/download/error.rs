//! The errors of downloads, in words for a model.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};
use std::time::Duration;

use myclaw_llm::outside::{mark, visible};
use url::Url;

use crate::Refusal;

/// Why a download failed. The text says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    /// The address is refused.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// Nothing answers, or the connection failed.
    #[error("no answer from {origin}: {why}")]
    NoAnswer {
        /// Scheme, host and port.
        origin: String,
        /// What happened, and what to do.
        why: String,
    },
    /// The time is up.
    #[error(
        "the download was not complete within {} s, so it was ended; try a smaller page, or try again later",
        limit.as_secs_f32()
    )]
    TooSlow {
        /// The limit.
        limit: Duration,
    },
    /// The address led elsewhere, and that failed.
    #[error("the address redirects: {0}")]
    Behind(Box<Self>),
    /// The redirects do not end.
    #[error(
        "more than {limit} redirects, the last one to {last}; use the address of the page itself"
    )]
    TooManyRedirects {
        /// How many are followed.
        limit: usize,
        /// Where the last one led.
        last: String,
    },
    /// A redirect without a usable target.
    #[error("{url} redirects to an invalid URL; use another address")]
    BadRedirect {
        /// The address that redirects.
        url: String,
    },
    /// A compression that was not asked for.
    #[error("{url} is compressed as {encoding:?}, which cannot be read here; use another source")]
    Encoding {
        /// The address.
        url: String,
        /// The compression.
        encoding: String,
    },
    /// The client cannot be made.
    #[error("cannot set up HTTP: {why}; check the certificates of this machine")]
    SetUp {
        /// What happened.
        why: String,
    },
}

impl DownloadError {
    /// The error for a model. What a server chose, such as the target of a redirect, is marked as text from outside.
    pub(crate) fn for_model(&self) -> String {
        match self {
            Self::Behind(error) => format!(
                "the address redirects, and what it leads to cannot be loaded; use another address\n{}",
                mark(&visible(&error.to_string()))
            ),
            error => error.to_string(),
        }
    }

    pub(super) fn set_up(error: &dyn StdError) -> Self {
        Self::SetUp { why: innermost(error) }
    }

    pub(super) fn damaged(url: &Url, error: &io::Error) -> Self {
        let why = format!("the compressed answer is damaged ({error}); try again later");
        Self::NoAnswer { origin: origin(url), why }
    }

    /// What a failed request or a broken answer means.
    pub(super) fn from_client(error: &reqwest::Error, url: &Url) -> Self {
        let mut next = error.source();
        let mut kind = None;
        while let Some(source) = next {
            if let Some(refusal) = source.downcast_ref::<Refusal>() {
                return Self::Refused(refusal.clone());
            }
            kind = source.downcast_ref::<io::Error>().map(io::Error::kind).or(kind);
            next = source.source();
        }
        let why = match kind {
            _ if error.is_timeout() => "no connection in time; try again later".to_owned(),
            Some(ErrorKind::ConnectionRefused) => {
                "nothing listens there; check the address and the port".to_owned()
            }
            _ if error.is_connect() => {
                format!("no connection ({}); check the address and the network", innermost(error))
            }
            _ => format!("the connection broke ({}); try again later", innermost(error)),
        };
        Self::NoAnswer { origin: origin(url), why }
    }
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The last error of the chain: the one that says what happened.
fn innermost(error: &dyn StdError) -> String {
    let mut last = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        last = source.to_string();
        next = source.source();
    }
    last
}
