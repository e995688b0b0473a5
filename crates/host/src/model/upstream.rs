//! The model server to which the host passes calls.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use myclaw_llm::access::{read_refusal, transport_error};
use myclaw_llm::{HttpOptions, HttpProvider, ModelCatalog, Price, redact};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::OwnedSemaphorePermit;
use url::Url;

use super::Body;
use super::filter::SecretFilter;
use super::usage::Meter;
use crate::Secrets;

/// A key of this value means a local Ollama.
const OLLAMA: &str = "ollama";
const OLLAMA_URL: &str = "http://127.0.0.1:11434/v1";
const OLLAMA_MODEL: &str = "llama3.2";
const OPENROUTER_URL: &str = "https://openrouter.ai/api/v1";
const OPENROUTER_MODEL: &str = "liquid/lfm-2.5";
/// Shortest key that is kept out of answers, in bytes, as in error texts.
const MIN_SECRET: usize = 8;
/// Longest wait for a connection to the server.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// What a group may ask of the model.
#[derive(Debug, Clone)]
pub struct ModelLimits {
    /// Longest request, in bytes; 16 MiB.
    pub body: usize,
    /// Most calls at a time; 4.
    pub at_once: usize,
    /// Most calls within a minute; 60.
    pub per_minute: usize,
    /// Tokens of a day after which no call is begun; unlimited.
    pub tokens_per_day: Option<u64>,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self { body: 16 * 1024 * 1024, at_once: 4, per_minute: 60, tokens_per_day: None }
    }
}

/// The only model that runners can call, and the server that has it.
pub struct ModelUpstream {
    /// The address, without names and passwords.
    base: Url,
    /// Where calls go.
    call: Url,
    pub(super) model: String,
    key: Option<SecretString>,
    pub(super) price: Option<Price>,
    pub(crate) limits: ModelLimits,
    http: HttpProvider,
}

impl fmt::Debug for ModelUpstream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} at {}", self.model, self.base)
    }
}

impl ModelUpstream {
    /// The model that the secrets name, as a runner would find it.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn new(secrets: &Secrets, limits: ModelLimits, http: HttpOptions) -> Result<Self, String> {
        let value = |name: &str| secrets.get(name).map(|value| value.trim().to_owned());
        let key = value("OPENROUTER_API_KEY");
        let is_ollama = key.as_deref() == Some(OLLAMA);
        let (url, model) = match is_ollama {
            true => (OLLAMA_URL, OLLAMA_MODEL),
            false => (OPENROUTER_URL, OPENROUTER_MODEL),
        };
        let address = value("OPENROUTER_BASE_URL").unwrap_or_else(|| url.to_owned());
        let unusable = |why: &str| {
            format!("OPENROUTER_BASE_URL cannot be used ({why}); write it like https://host/v1")
        };
        let base = Url::parse(&address).map_err(|error| unusable(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.query().is_some() {
            return Err(unusable("it must begin with http:// or https:// and have no query"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(unusable("it has a password; give the key as OPENROUTER_API_KEY"));
        }
        let mut call = base.clone();
        call.set_path(&format!("{}/chat/completions", base.path().trim_end_matches('/')));
        let model = value("MODEL_NAME").unwrap_or_else(|| model.to_owned());
        let price =
            ModelCatalog::builtin().find("openrouter", &model).and_then(|model| model.price);
        // Prices are those of the server that they are known for.
        let price = price.filter(|_| base.host_str() == Some("openrouter.ai"));
        let key = key.map(SecretString::from);
        Ok(Self { base, call, model, key, price, limits, http: HttpProvider::new(http) })
    }

    /// The options by which a runner finds the model: what it needs to know besides the socket. The connection to the
    /// socket is not encrypted.
    pub(crate) fn runner_options(&self) -> Vec<String> {
        let mut base = self.base.clone();
        if base.scheme() == "https" {
            // This cannot fail between these two schemes.
            let _ = base.set_scheme("http");
        }
        ["--model-url", base.as_str(), "--model", &self.model].map(str::to_owned).to_vec()
    }

    pub(super) fn call_path(&self) -> &str {
        self.call.path()
    }

    fn key(&self) -> &str {
        self.key.as_ref().map_or("", ExposeSecret::expose_secret)
    }

    /// The key, if it is a secret: keys of local servers are often words such as `ollama`, which a text may hold.
    fn secret(&self) -> &str {
        if self.key().len() < MIN_SECRET { "" } else { self.key() }
    }

    pub(super) fn has_key(&self, bytes: &[u8]) -> bool {
        !self.secret().is_empty() && memchr::memmem::find(bytes, self.secret().as_bytes()).is_some()
    }

    /// Makes a call. The error says why there is no answer, without the key.
    pub(super) async fn send(&self, body: Bytes) -> Result<reqwest::Response, String> {
        let failed = |message: &str| redact(message, [self.key()]);
        let clients = self.http.clients();
        let client = clients.client(&self.call, CONNECT_LIMIT).await;
        let client = client.map_err(|error| failed(&error.message))?;
        let mut request = client
            .post(self.call.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        if !self.key().is_empty() {
            let value = HeaderValue::from_str(&format!("Bearer {}", self.key()));
            let mut value = value.map_err(|_| {
                "the key of the host has signs that a header cannot have; correct OPENROUTER_API_KEY".to_owned()
            })?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let sent = request.send().await;
        sent.map_err(|error| failed(&transport_error(&error, &self.call, CONNECT_LIMIT).message))
    }

    /// What a refusal says, without the key.
    pub(super) async fn refusal(&self, answer: reqwest::Response) -> String {
        let status = answer.status();
        if matches!(status.as_u16(), 401 | 403) {
            // Servers quote parts of the keys that they refuse.
            return format!(
                "the model server refuses the key of the host (status {}); the owner has to correct OPENROUTER_API_KEY",
                status.as_u16()
            );
        }
        redact(&read_refusal(answer).await.message, [self.key()])
    }

    /// The body of an answer, chunk by chunk as it comes, counted and without the key. `kept` is dropped at its end.
    pub(super) fn streamed(
        &self,
        answer: reqwest::Response,
        (meter, place): (Meter, OwnedSemaphorePermit),
    ) -> Body {
        let filter = SecretFilter::new(self.secret());
        let begun = Some((answer, filter, meter, place));
        let chunks = stream::unfold(begun, |state| async move {
            let (mut answer, mut filter, mut meter, place) = state?;
            loop {
                match answer.chunk().await {
                    Ok(Some(chunk)) => {
                        meter.saw(&chunk);
                        let passed = filter.push(&chunk);
                        if !passed.is_empty() {
                            return Some((Ok(frame(passed)), Some((answer, filter, meter, place))));
                        }
                    }
                    Ok(None) => {
                        let rest = filter.finish();
                        return (!rest.is_empty()).then(|| (Ok(frame(rest)), None));
                    }
                    Err(_) => {
                        // An error ends the connection without what is not written yet.
                        tokio::task::yield_now().await;
                        let error = io::Error::other("the answer of the model server broke off");
                        return Some((Err(error), None));
                    }
                }
            }
        });
        StreamBody::new(chunks).boxed_unsync()
    }
}

fn frame(bytes: Vec<u8>) -> Frame<Bytes> {
    Frame::data(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(key: &str) -> ModelUpstream {
        let secrets = Secrets::default().with("OPENROUTER_API_KEY", key.to_owned().into());
        let made = ModelUpstream::new(&secrets, ModelLimits::default(), HttpOptions::default());
        made.expect("the usual address can be used")
    }

    #[test]
    fn a_key_that_is_a_word_stays_in_texts_and_a_secret_does_not() {
        let (local, remote) = (upstream("ollama"), upstream("sk-or-0123456789"));
        assert_eq!(local.call.as_str(), "http://127.0.0.1:11434/v1/chat/completions");
        assert!(!local.has_key(b"start ollama first"));
        assert_eq!(remote.call.as_str(), "https://openrouter.ai/api/v1/chat/completions");
        assert!(remote.has_key(b"the key sk-or-0123456789 is bad"));
        let options = remote.runner_options();
        assert_eq!(options[1], "http://openrouter.ai/api/v1");
    }
}
