//! How a call proves who makes it, where that is more than a key in a header.
//!
//! Some providers take a token that a key is first exchanged for, or a signature over the whole request. Both are
//! worked out here, once a call is about to be made; a wire format sees only the outcome.

pub(super) mod aws;

use reqwest::Response;
use secrecy::SecretString;

use super::HttpProvider;
use crate::wire::EncodedRequest;
use crate::{Api, Model, ModelError, ModelRequest};

/// What stands in for the request's own key and model, and what is added to the encoded request.
#[derive(Debug, Default)]
pub(super) struct Access {
    /// Replaces the request's key.
    pub(super) token: Option<SecretString>,
    /// Replaces the request's model: where requests go may depend on the token.
    pub(super) model: Option<Model>,
    /// Signs the request, which carries no key then.
    pub(super) signer: Option<aws::Signer>,
}

impl Access {
    /// `request` as it is to be encoded.
    pub(super) fn apply<'a>(&'a self, request: ModelRequest<'a>) -> ModelRequest<'a> {
        let own_key = if self.signer.is_some() { None } else { request.api_key };
        ModelRequest {
            api_key: self.token.as_ref().or(own_key),
            model: self.model.as_ref().unwrap_or(request.model),
            ..request
        }
    }

    /// Adds what depends on the bytes of the request: a signature.
    pub(super) fn sign(&self, encoded: EncodedRequest) -> Result<EncodedRequest, ModelError> {
        match &self.signer {
            Some(signer) => signer.sign(encoded),
            None => Ok(encoded),
        }
    }

    /// Whether `response` is a refusal that taught something: then a request that is signed anew may pass.
    pub(super) fn learns_from(&self, response: &Response) -> bool {
        self.signer.as_ref().is_some_and(|signer| signer.learns_time(response))
    }

    /// A refusal with what only the signer knows about it, and without its secrets.
    pub(super) fn explain(&self, error: ModelError) -> ModelError {
        match &self.signer {
            Some(signer) => signer.explain(error),
            None => error,
        }
    }
}

impl HttpProvider {
    /// Finds out what the provider of `request` wants to see.
    ///
    /// # Errors
    /// When there are no credentials, or the server that exchanges them refuses.
    pub(super) async fn access(&self, request: &ModelRequest<'_>) -> Result<Access, ModelError> {
        match request.model.api {
            Api::BedrockConverse => self.aws.access(&self.clients, request).await,
            _ => Ok(Access::default()),
        }
    }
}
