//! Authentication that needs more than a key in a header.
//!
//! Some providers require a token that is obtained with the key, or a signature over the whole request. A type that
//! provides these implements [`Access`] and is passed to the [`HttpProvider`](crate::HttpProvider); a wire format sees
//! only the outcome. The functions in this module are helpers for such types.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use secrecy::SecretString;

pub use crate::classify::{aws_error_name, one_line};
pub use crate::driver::{read_capped, read_refusal};
pub use crate::http::{Clients, transport_error};
pub use crate::redact::redact;
pub use crate::retry_after::http_date;
pub use crate::wire::google_generative_ai::{
    KEY_HEADER as GOOGLE_KEY_HEADER, REGIONAL_HOST as VERTEX_REGIONAL_HOST,
    Service as GoogleService, VERTEX_HOST, VERTEX_MULTI_REGION,
};
pub use crate::wire::{host_label, is_link_local, is_loopback};

use crate::wire::EncodedRequest;
use crate::{Model, ModelError, ModelRequest};

/// Provides the credentials of calls, for the models of one kind of provider.
pub trait Access: Debug + Send + Sync {
    /// Whether this implementation handles calls of `model`.
    fn serves(&self, model: &Model) -> bool;

    /// Provides the credentials that the provider of `request` requires. It is called before each call, so it should
    /// keep what can be used again.
    ///
    /// # Errors
    /// There are no credentials, or the server that exchanges them refuses.
    fn caller<'a>(
        &'a self,
        clients: &'a Clients,
        request: &'a ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Caller, ModelError>>;
}

/// Replacements for the request's own key and model, and additions to the encoded request.
#[derive(Debug, Default)]
pub struct Caller {
    /// Replaces the request's key.
    pub token: Option<SecretString>,
    /// Replaces the request's model: where requests go may depend on the token.
    pub model: Option<Model>,
    /// Added to the request's own.
    pub headers: HeaderMap,
    /// Further steps for requests and refusals.
    pub credential: Option<Box<dyn Credential>>,
}

impl Caller {
    /// `request` as it is to be encoded.
    pub(crate) fn apply<'a>(&'a self, request: ModelRequest<'a>) -> ModelRequest<'a> {
        let signs = self.credential.as_ref().is_some_and(|credential| credential.replaces_key());
        let own_key = if signs { None } else { request.api_key };
        ModelRequest {
            api_key: self.token.as_ref().or(own_key),
            model: self.model.as_ref().unwrap_or(request.model),
            ..request
        }
    }

    /// Adds what the format does not know: headers, and the credential's changes to the request.
    pub(crate) fn sign(&self, mut encoded: EncodedRequest) -> Result<EncodedRequest, ModelError> {
        encoded.headers.extend(self.headers.clone());
        match &self.credential {
            Some(credential) => credential.sign(encoded),
            None => Ok(encoded),
        }
    }

    pub(crate) fn learns_from(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        self.credential.as_ref().is_some_and(|credential| credential.learns_from(status, headers))
    }

    pub(crate) async fn may_replace(&self, error: &ModelError) -> bool {
        match &self.credential {
            Some(credential) => credential.may_replace(error).await,
            None => false,
        }
    }

    pub(crate) fn explain(&self, error: ModelError) -> ModelError {
        match &self.credential {
            Some(credential) => credential.explain(error),
            None => error,
        }
    }
}

/// The credential of one call. Every function has a default that does nothing.
pub trait Credential: Debug + Send + Sync {
    /// Whether requests carry no key because a signature replaces it.
    fn replaces_key(&self) -> bool {
        false
    }

    /// Completes a request, for example with a signature over its bytes.
    ///
    /// # Errors
    /// It cannot be signed.
    fn sign(&self, encoded: EncodedRequest) -> Result<EncodedRequest, ModelError> {
        Ok(encoded)
    }

    /// Whether an answer with this status and these headers is a refusal that a new signature can avoid. The request is
    /// then signed again and sent once more.
    fn learns_from(&self, _status: StatusCode, _headers: &HeaderMap) -> bool {
        false
    }

    /// Discards the credential that `error` refuses. Returns whether another call may get a new one, and so succeed.
    fn may_replace<'a>(&'a self, _error: &'a ModelError) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }

    /// A failure, with advice that depends on the credential.
    fn explain(&self, error: ModelError) -> ModelError {
        error
    }
}
