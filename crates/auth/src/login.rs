//! Logins that are renewed: what a renewal needs and gives, and who asks for it.
//!
//! This room has no network. Whoever has one implements [`RenewLogin`]; [`crate::KeyResolver`] decides when it is
//! asked, sees to it that of several processes one alone asks, and keeps what comes of it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use secrecy::SecretString;

use crate::AuthStore;

/// What a renewal is asked with (RFC 6749, section 6).
#[derive(Debug, Clone)]
pub struct Renewal {
    /// Where tokens are given out.
    pub token_url: String,
    /// The id of the application that the person signed in to.
    pub client_id: String,
    /// Its secret, where it has one.
    pub client_secret: Option<SecretString>,
    /// What is asked for, if the server wants it said again.
    pub scope: Option<String>,
    /// Proves that the person signed in.
    pub refresh_token: SecretString,
}

/// What a renewal gives.
#[derive(Debug, Clone)]
pub struct RenewedLogin {
    /// The token for calls.
    pub access: SecretString,
    /// What the next renewal is asked with, if not the same as before.
    pub refresh: Option<SecretString>,
    /// How long the token lasts, if the server says so.
    pub expires_in: Option<Duration>,
}

/// Why a login was not renewed; one line for a person, without any secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewalError {
    /// The server said no: only the person can help, by signing in again.
    Refused(String),
    /// The server could not be asked, or gave no token.
    Failed(String),
}

impl fmt::Display for RenewalError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => {
                write!(formatter, "{why}; sign in again where the login was made")
            }
            Self::Failed(why) => formatter.write_str(why),
        }
    }
}

/// The answer to [`RenewLogin::renew`], later.
pub type RenewalAnswer<'a> =
    Pin<Box<dyn Future<Output = Result<RenewedLogin, RenewalError>> + Send + 'a>>;

/// Asks servers for new tokens.
pub trait RenewLogin: fmt::Debug + Send + Sync {
    /// Makes one request, within a bounded time.
    fn renew<'a>(&'a self, renewal: &'a Renewal) -> RenewalAnswer<'a>;
}

/// A login in a store that says how it is renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewableLogin {
    /// The store that it lies in, and that gets the new tokens.
    pub(crate) store: AuthStore,
    /// Its name there.
    pub(crate) name: String,
}
