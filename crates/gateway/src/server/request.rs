//! What handlers take from a request. What cannot be used is an error like all others: JSON, with what to do.

use std::error::Error;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::GatewayError;

/// The body of a request, which is JSON.
pub(crate) struct Body<T>(pub(crate) T);

/// What follows the question mark of the address.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = GatewayError;

    async fn from_request(request: Request, state: &S) -> Result<Self, GatewayError> {
        let body = Json::from_request(request, state).await;
        body.map(|Json(body)| Self(body)).map_err(|error| {
            GatewayError::Unusable(match &error {
                JsonRejection::MissingJsonContentType(_) => {
                    "send the body as JSON, with the header `Content-Type: application/json`"
                        .to_owned()
                }
                JsonRejection::JsonDataError(data) => format!(
                    "the body cannot be used: {}; docs/operate/gateway.md describes the requests",
                    reason(data)
                ),
                JsonRejection::JsonSyntaxError(syntax) => {
                    format!("the body is not JSON: {}", reason(syntax))
                }
                other => other.body_text(),
            })
        })
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = GatewayError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, GatewayError> {
        let query = Query::from_request_parts(parts, state).await;
        query.map(|Query(query)| Self(query)).map_err(|error| {
            let why = format!(
                "the parameters of the address cannot be used: {}; docs/operate/gateway.md describes them",
                reason(&error)
            );
            GatewayError::Unusable(why)
        })
    }
}

/// What is wrong, without the words of the framework.
fn reason(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
