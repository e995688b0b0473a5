//! Renewal of logins: its input, its result, and the trait that makes the request.
//!
//! This crate has no network access, so a caller that has it implements [`RenewLogin`]. [`crate::KeyResolver`] decides
//! when to renew, makes sure that only one of several processes does, and stores the result.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use secrecy::SecretString;

use crate::store::AuthStore;

/// The parameters of a renewal (RFC 6749, section 6).
#[derive(Debug, Clone)]
pub struct Renewal {
    /// The token endpoint.
    pub token_url: String,
    /// The id of the application that the person signed in to.
    pub client_id: String,
    /// The application's secret, if it has one.
    pub client_secret: Option<SecretString>,
    /// Whether that is sent in a header, not in the form.
    pub secret_in_header: bool,
    /// The scope, if the server requires it again.
    pub scope: Option<String>,
    /// What the tokens are for, if they are for one server only (RFC 8707).
    pub resource: Option<String>,
    /// Proves that the person signed in.
    pub refresh_token: SecretString,
}

/// A login that was just made, to be stored.
#[derive(Debug, Clone)]
pub struct NewLogin {
    /// The token for calls.
    pub access: SecretString,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires: Option<u64>,
    /// Who has issued it.
    pub issuer: String,
    /// What it permits, if that is known.
    pub granted: Option<String>,
    /// How it is renewed; the refresh token is empty if it cannot be.
    pub renewal: Renewal,
}

/// The result of a renewal.
#[derive(Debug, Clone)]
pub struct RenewedLogin {
    /// The token for calls.
    pub access: SecretString,
    /// The token for the next renewal, if it has changed.
    pub refresh: Option<SecretString>,
    /// How long the token lasts, if the server says so.
    pub expires_in: Option<Duration>,
}

/// Why a login was not renewed; one line for a person, without any secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewalError {
    /// The server refused. The user has to sign in again.
    Refused(String),
    /// The server could not be reached, or returned no token.
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

/// The future of [`RenewLogin::renew`].
pub type RenewalAnswer<'a> =
    Pin<Box<dyn Future<Output = Result<RenewedLogin, RenewalError>> + Send + 'a>>;

/// Requests new tokens from servers.
pub trait RenewLogin: fmt::Debug + Send + Sync {
    /// Makes one request, within a bounded time.
    fn renew<'a>(&'a self, renewal: &'a Renewal) -> RenewalAnswer<'a>;
}

/// A login in a store that can be renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenewableLogin {
    /// The store that holds the login and receives the new tokens.
    pub(crate) store: AuthStore,
    /// The name of the login in that store.
    pub(crate) name: String,
}
