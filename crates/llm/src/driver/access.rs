//! How a call proves who makes it, where that is more than a key in a header.
//!
//! Some providers take a token that a key is first exchanged for, or a signature over the whole request. Both are
//! worked out here, once a call is about to be made; a wire format sees only the outcome.

pub(super) mod aws;
pub mod copilot;
pub mod oauth;
pub(super) mod vertex;

use reqwest::Response;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::SecretString;

use super::HttpProvider;
use crate::wire::EncodedRequest;
use crate::wire::google_generative_ai::{KEY_HEADER, Service};
use crate::{Api, Model, ModelError, ModelRequest};

/// What stands in for the request's own key and model, and what is added to the encoded request.
#[derive(Debug, Default)]
pub(super) struct Access {
    /// Replaces the request's key.
    pub(super) token: Option<SecretString>,
    /// Replaces the request's model: where requests go may depend on the token.
    pub(super) model: Option<Model>,
    /// Come on top of the request's own. `authorization` stands for whatever the format makes of the token.
    pub(super) headers: HeaderMap,
    /// What the token is of, if a refused one can be replaced.
    pub(super) grant: Option<vertex::Grant>,
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

    /// Adds what a format knows nothing of: headers, and a signature over the bytes of the request.
    pub(super) fn sign(&self, mut encoded: EncodedRequest) -> Result<EncodedRequest, ModelError> {
        if self.headers.contains_key(AUTHORIZATION) {
            encoded.headers.remove(KEY_HEADER);
        }
        encoded.headers.extend(self.headers.clone());
        match &self.signer {
            Some(signer) => signer.sign(encoded),
            None => Ok(encoded),
        }
    }

    /// Whether `response` is a refusal that taught something: then a request that is signed anew may pass.
    pub(super) fn learns_from(&self, response: &Response) -> bool {
        self.signer.as_ref().is_some_and(|signer| signer.learns_time(response))
    }

    /// Throws a token away that the server refused; whether another may be had.
    pub(super) async fn discard(&self) -> bool {
        if let Some(grant) = &self.grant {
            grant.discard().await;
        }
        self.grant.is_some()
    }

    /// A failure with what only the credentials tell about it.
    pub(super) fn explain(&self, error: ModelError) -> ModelError {
        match (&self.grant, &self.signer) {
            (Some(grant), _) => grant.explain(error),
            (None, Some(signer)) => signer.explain(error),
            (None, None) => error,
        }
    }
}

impl HttpProvider {
    /// Finds out what the provider of `request` wants to see.
    ///
    /// # Errors
    /// When there are no credentials, or the server that exchanges them refuses.
    pub(super) async fn access(&self, request: &ModelRequest<'_>) -> Result<Access, ModelError> {
        match (request.model.provider.as_str(), request.model.api) {
            (copilot::PROVIDER, _) => self.copilot_access(request).await,
            (_, Api::BedrockConverse) => self.aws.access(&self.clients, request).await,
            (_, Api::GoogleGenerativeAi) if Service::of(request.model) == Service::Vertex => {
                self.vertex.access(&self.clients, request).await
            }
            _ => Ok(Access::default()),
        }
    }
}
