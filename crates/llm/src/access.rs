//! How a call proves who makes it, where that is more than a key in a header.
//!
//! Some providers take a token that a key is first exchanged for, or a signature over the whole request. Who knows how
//! to get them implements [`Access`] and is given to the [`HttpProvider`](crate::HttpProvider); a wire format sees only
//! the outcome. The functions here are what such an implementation needs beside its own rules.

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

/// Finds out who calls, for the models of one kind of provider.
pub trait Access: Debug + Send + Sync {
    /// Whether calls of `model` are this implementation's.
    fn serves(&self, model: &Model) -> bool;

    /// Finds out what the provider of `request` wants to see. It is asked before each call, so whatever can be kept
    /// between calls should be.
    ///
    /// # Errors
    /// When there are no credentials, or the server that exchanges them refuses.
    fn caller<'a>(
        &'a self,
        clients: &'a Clients,
        request: &'a ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Caller, ModelError>>;
}

/// What stands in for the request's own key and model, and what is added to the encoded request.
#[derive(Debug, Default)]
pub struct Caller {
    /// Replaces the request's key.
    pub token: Option<SecretString>,
    /// Replaces the request's model: where requests go may depend on the token.
    pub model: Option<Model>,
    /// Come on top of the request's own.
    pub headers: HeaderMap,
    /// What else is to be done with requests and refusals.
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

    /// Adds what a format knows nothing of: headers, and what the credential makes of the bytes.
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

/// The credential behind one call. Every function has a default that does nothing.
pub trait Credential: Debug + Send + Sync {
    /// Whether requests carry no key because their signature stands for it.
    fn replaces_key(&self) -> bool {
        false
    }

    /// Puts the last hand to a request, such as a signature over its bytes.
    ///
    /// # Errors
    /// When it cannot be signed.
    fn sign(&self, encoded: EncodedRequest) -> Result<EncodedRequest, ModelError> {
        Ok(encoded)
    }

    /// Whether an answer with this status and these headers is a refusal that taught something: then the request is
    /// signed anew and sent once more.
    fn learns_from(&self, _status: StatusCode, _headers: &HeaderMap) -> bool {
        false
    }

    /// Forgets what `error` says is refused. Whether another call may get a new credential, and so succeed.
    fn may_replace<'a>(&'a self, _error: &'a ModelError) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }

    /// A failure with the facts that only the credential knows.
    fn explain(&self, error: ModelError) -> ModelError {
        error
    }
}
