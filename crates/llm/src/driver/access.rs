//! How a call proves who makes it, where that is more than a key in a header.
//!
//! Some providers take a token that a key is first exchanged for, or a signature over the whole request. Both are
//! worked out here, once a call is about to be made; a wire format sees only the outcome.

pub mod copilot;

use reqwest::header::HeaderMap;
use secrecy::SecretString;

use super::HttpProvider;
use crate::wire::EncodedRequest;
use crate::{Model, ModelError, ModelRequest};

/// What stands in for the request's own key and model, and what is added to the encoded request.
#[derive(Debug, Default)]
pub(super) struct Access {
    /// Replaces the request's key.
    pub(super) token: Option<SecretString>,
    /// Replaces the request's model: where requests go may depend on the token.
    pub(super) model: Option<Model>,
    /// Added to the encoded request.
    pub(super) headers: HeaderMap,
}

impl Access {
    /// `request` as it is to be encoded.
    pub(super) fn apply<'a>(&'a self, request: ModelRequest<'a>) -> ModelRequest<'a> {
        ModelRequest {
            api_key: self.token.as_ref().or(request.api_key),
            model: self.model.as_ref().unwrap_or(request.model),
            ..request
        }
    }

    /// Adds what the provider wants to see, and what depends on the bytes of the request: a signature.
    pub(super) fn sign(&self, mut encoded: EncodedRequest) -> Result<EncodedRequest, ModelError> {
        encoded.headers.extend(self.headers.clone());
        Ok(encoded)
    }
}

impl HttpProvider {
    /// Finds out what the provider of `request` wants to see.
    ///
    /// # Errors
    /// When there are no credentials, or the server that exchanges them refuses.
    pub(super) async fn access(&self, request: &ModelRequest<'_>) -> Result<Access, ModelError> {
        match request.model.provider.as_str() {
            copilot::PROVIDER => self.copilot_access(request).await,
            _ => Ok(Access::default()),
        }
    }
}
