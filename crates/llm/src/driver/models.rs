//! The list of models that a server offers.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{HttpProvider, read_capped, read_refusal};
use crate::http::model_transport_error;
use crate::redact::redact;
use crate::wire::{auth_headers, host_label, models_url};
use crate::{Api, ErrorClass, HttpOptions, ModelError};

/// Largest list read, in bytes; the longest real one (OpenRouter's) is below one mebibyte.
const MAX_LIST: usize = 8 * 1024 * 1024;

/// Asks the server at `base_url` which models it offers, and gives their ids in its order.
///
/// # Errors
/// When it does not answer within `timeout`, refuses, or answers with something else than a list.
pub async fn list_models(
    base_url: &str,
    api: Api,
    key: Option<&SecretString>,
    timeout: Duration,
) -> Result<Vec<String>, ModelError> {
    HttpProvider::new(HttpOptions::default()).list_models(base_url, api, key, timeout).await
}

impl HttpProvider {
    /// Asks the server at `base_url` which models it offers, and gives their ids in its order.
    ///
    /// # Errors
    /// When it does not answer within `timeout`, refuses, or answers with something else than a list.
    pub async fn list_models(
        &self,
        base_url: &str,
        api: Api,
        key: Option<&SecretString>,
        timeout: Duration,
    ) -> Result<Vec<String>, ModelError> {
        let url = models_url(api, base_url)?;
        let host = host_label(&url);
        let asking = async {
            let client = self.clients.client(&url, timeout).await?;
            let request = client.get(url.clone()).headers(auth_headers(api, key)?);
            let response = request
                .send()
                .await
                .map_err(|error| model_transport_error(&error, &url, timeout))?;
            let at_host = |mut error: ModelError| {
                error.message = format!("{host}: {}", error.message);
                error
            };
            if !response.status().is_success() {
                return Err(at_host(read_refusal(response).await));
            }
            let body = read_capped(response, MAX_LIST, timeout).await;
            ids(&body).ok_or_else(|| {
                let message =
                    "answered with something that is not a list of models: check the base URL";
                at_host(ModelError {
                    status: Some(200),
                    ..ModelError::new(ErrorClass::Unknown, message)
                })
            })
        };
        let outcome = tokio::time::timeout(timeout, asking).await.unwrap_or_else(|_| {
            let message = format!("{host}: no list of models within {} s", timeout.as_secs_f32());
            Err(ModelError::new(ErrorClass::Timeout, message))
        });
        outcome.map_err(|mut error| {
            error.message = redact(&error.message, key.map(SecretString::expose_secret));
            error
        })
    }
}

/// The ids in a list: under `data` or `models` or bare, as objects or strings.
fn ids(body: &[u8]) -> Option<Vec<String>> {
    let list: Value = serde_json::from_slice(body).ok()?;
    let entries = [&list["data"], &list["models"], &list].into_iter().find_map(Value::as_array)?;
    let id = |entry: &Value| {
        [&entry["id"], &entry["name"], &entry["model"], entry]
            .into_iter()
            .find_map(Value::as_str)
            // Google names the collection too.
            .map(|id| id.strip_prefix("models/").unwrap_or(id).to_owned())
    };
    Some(entries.iter().filter_map(id).collect())
}
