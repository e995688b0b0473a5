//! Responses without an answer: refusals, and successes without content.

use std::time::{Duration, SystemTime};

use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, LOCATION};

use crate::wire::optional::Refusal;
use crate::{ErrorClass, ModelError, classify};

/// How long an error body may take.
const ERROR_BODY_LIMIT: Duration = Duration::from_secs(10);

/// Most bytes of an error body that are read: enough for any reason.
pub(super) const MAX_ERROR_BODY: usize = 64 * 1024;

/// Why a response with a status of success cannot be an answer.
pub(super) fn no_answer(response: &Response) -> Option<ModelError> {
    let status = response.status().as_u16();
    let message = match compression(response) {
        Some(name) => format!(
            "answered with a body compressed by {name}, which was not asked for: a proxy in between compresses it"
        ),
        None if matches!(status, 204 | 205) => {
            format!("answered {status}, which means without content: check the base URL")
        }
        None => return None,
    };
    Some(ModelError { status: Some(status), ..ModelError::new(ErrorClass::Unknown, message) })
}

/// The compression of the body, which is never asked for.
fn compression(response: &Response) -> Option<&str> {
    let encoding = response.headers().get(CONTENT_ENCODING)?.to_str().ok()?.trim();
    (!encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity")).then_some(encoding)
}

/// The error of a response without a status of success.
pub async fn read_refusal(response: Response) -> ModelError {
    read(response).await.0
}

/// The same, with what the body says about the fields of the request.
pub(super) async fn read(response: Response) -> (ModelError, Refusal) {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    if response.status().is_redirection() {
        let target = response
            .headers()
            .get(LOCATION)
            .and_then(|target| target.to_str().ok())
            .unwrap_or("elsewhere");
        let target = classify::one_line(target, 200);
        let message = format!(
            "answered {status}, a redirect to {target}: if that is right, make it the base URL"
        );
        let error = ModelError::new(ErrorClass::Unknown, message);
        return (ModelError { status: Some(status), ..error }, Refusal::default());
    }
    let compressed = compression(&response).map(|name| format!("(a body compressed by {name})"));
    let body = read_capped(response, MAX_ERROR_BODY, ERROR_BODY_LIMIT).await;
    let body = compressed.map_or(body, String::into_bytes);
    let body = String::from_utf8_lossy(&body);
    let error = classify::http_error(status, &headers, &body, SystemTime::now());
    (error, classify::refusal(&body))
}

/// The part of the body that arrives within the limits.
pub async fn read_capped(mut response: Response, limit: usize, time: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(limit - body.len())]);
            if body.len() == limit {
                return;
            }
        }
    };
    // Only what has arrived by then is used.
    let _ = tokio::time::timeout(time, reading).await;
    body
}
