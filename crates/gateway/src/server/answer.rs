//! The form of answers.

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use myclaw_agent::FailureClass;
use myclaw_delivery::DeliveryError;
use myclaw_delivery::delivery::Delivery;
use myclaw_delivery::rows::{Incoming, MessageId, MessageState};
use myclaw_store::StoreError;
use serde_json::{Value, json};

use crate::GatewayError;

/// When a client may try again what the store could not do now, in seconds.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("2");

/// What an error says, for protocols that have another form for it.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) class: String,
    pub(super) message: String,
}

/// An error: a class for programs and a message for people.
pub(super) fn error(status: StatusCode, class: &str, message: &str) -> Response {
    let mut response = (status, Json(error_object(class, message))).into_response();
    let said = Said { class: class.to_owned(), message: message.to_owned() };
    response.extensions_mut().insert(said);
    response
}

/// The body of an error.
pub(super) fn error_object(class: &str, message: &str) -> Value {
    json!({"error": {"class": class, "message": message}})
}

/// Status and class of a failure.
pub(super) fn class_of(error: &GatewayError) -> (StatusCode, &'static str) {
    match error {
        GatewayError::Unusable(_) => (StatusCode::BAD_REQUEST, "usage"),
        GatewayError::NotFound(_) => (StatusCode::NOT_FOUND, "not_found"),
        GatewayError::Forbidden(_) => (StatusCode::FORBIDDEN, "scope"),
        GatewayError::TooOften(_) => (StatusCode::TOO_MANY_REQUESTS, "rate_limit"),
        GatewayError::InUse(_) => (StatusCode::CONFLICT, "in_use"),
        GatewayError::Delivery(DeliveryError::OtherMessage) => (StatusCode::CONFLICT, "conflict"),
        GatewayError::Delivery(DeliveryError::Full(_)) => {
            (StatusCode::TOO_MANY_REQUESTS, "queue_full")
        }
        GatewayError::Delivery(DeliveryError::Late(_)) => {
            (StatusCode::SERVICE_UNAVAILABLE, "storage")
        }
        GatewayError::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        GatewayError::Agent(error) if error.class == FailureClass::Usage => {
            (StatusCode::BAD_REQUEST, "usage")
        }
        GatewayError::Agent(error) if error.class == FailureClass::Config => {
            (StatusCode::BAD_REQUEST, "config")
        }
        // The message is not stored, or nobody knows. With its id it can be sent again.
        GatewayError::Store(
            StoreError::Io { .. } | StoreError::Database { .. } | StoreError::Unconfirmed { .. },
        ) => (StatusCode::SERVICE_UNAVAILABLE, "storage"),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
    }
}

/// Says when to try again what cannot be done now.
pub(super) fn with_retry(mut response: Response) -> Response {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
    }
    response
}

impl IntoResponse for GatewayError {
    fn into_response(self) -> Response {
        let (status, class) = class_of(&self);
        with_retry(error(status, class, &self.to_string()))
    }
}

/// A message and what became of it.
pub(super) async fn message(
    delivery: &Delivery,
    id: &MessageId,
    row: &Incoming,
) -> Result<Value, GatewayError> {
    let mut answer =
        json!({"messageId": id, "session": row.session, "acceptedAt": row.accepted_at});
    match &row.state {
        MessageState::Open => answer["state"] = json!("open"),
        MessageState::Answered { parts } => {
            let texts = delivery.parts(parts).await?;
            let reply: String = texts.iter().map(|part| part.text.as_str()).collect();
            answer["state"] = json!("answered");
            answer["reply"] = json!(reply);
            let files = super::files::links(parts, &texts);
            if !files.is_empty() {
                answer["files"] = json!(files);
            }
        }
        MessageState::Reported { class, message, .. } => {
            answer["state"] = json!("reported");
            answer["class"] = json!(class);
            answer["message"] = json!(message);
        }
        MessageState::Dropped { reason, .. } => {
            answer["state"] = json!("dropped");
            answer["message"] = json!(reason);
        }
    }
    Ok(answer)
}
