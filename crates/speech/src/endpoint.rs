//! A server with the interface of OpenAI: `/audio/speech` and `/audio/transcriptions`.

use std::time::Duration;

use myclaw_proxy::to_server;
use reqwest::{Client, RequestBuilder, redirect, retry};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use crate::{AudioFormat, MOST_TRANSCRIPT_BYTES, SpeechError};

/// Time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Most characters of a server's error that are shown.
const MOST_ERROR_CHARS: usize = 300;
/// Most bytes of a server's error that are read.
const MOST_ERROR_BYTES: usize = 64 * 1024;
/// The voice of OpenAI if none is named.
const VOICE: &str = "alloy";

/// A server that speaks or listens.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its address up to the version, such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// The model.
    pub model: String,
    /// The key, if it needs one.
    pub api_key: Option<SecretString>,
}

impl Endpoint {
    pub(crate) async fn speak(
        &self,
        text: &str,
        voice: Option<&str>,
        most: usize,
        limit: Duration,
    ) -> Result<Vec<u8>, SpeechError> {
        let body = json!({
            "model": self.model,
            "input": text,
            "voice": voice.unwrap_or(VOICE),
            // Ogg with Opus: what chats show as a voice note.
            "response_format": "opus",
        });
        let request = self.request("audio/speech")?.header("content-type", "application/json");
        self.exchange(request.body(body.to_string()), most, limit).await
    }

    pub(crate) async fn transcribe(
        &self,
        audio: &[u8],
        format: AudioFormat,
        language: Option<&str>,
        limit: Duration,
    ) -> Result<String, SpeechError> {
        let boundary = uuid::Uuid::new_v4().simple().to_string();
        let mut body = Vec::with_capacity(audio.len() + 1024);
        let texts = [("model", Some(self.model.as_str())), ("response_format", Some("json"))];
        for (name, value) in texts.into_iter().chain([("language", language)]) {
            if let Some(value) = value {
                let head = format!("content-disposition: form-data; name=\"{name}\"");
                body.extend_from_slice(
                    format!("--{boundary}\r\n{head}\r\n\r\n{value}\r\n").as_bytes(),
                );
            }
        }
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"voice.{}\"\r\n\
             content-type: {}\r\n\r\n",
            format.ending(),
            format.media_type()
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(audio);
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        let kind = format!("multipart/form-data; boundary={boundary}");
        let request = self.request("audio/transcriptions")?.header("content-type", kind);
        let answer = self.exchange(request.body(body), MOST_TRANSCRIPT_BYTES, limit).await?;
        let value: Option<Value> = serde_json::from_slice(&answer).ok();
        let text = value.as_ref().and_then(|value| value.get("text")?.as_str());
        text.map(str::to_owned).ok_or_else(|| {
            SpeechError::Failed(format!(
                "{} answered with something else than {{\"text\": …}}",
                self.name()
            ))
        })
    }

    fn request(&self, path: &str) -> Result<RequestBuilder, SpeechError> {
        let cannot = |error: reqwest::Error| {
            SpeechError::Failed(format!("no client can be made for {}: {error}", self.name()))
        };
        // An error means that one is installed already, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false);
        if self.base_url.starts_with("http://") {
            // No certificates are needed, and reading those of the system takes time.
            builder = builder.tls_certs_only([]);
        }
        builder = to_server(builder, &self.base_url);
        let address = format!("{}/{path}", self.base_url.trim_end_matches('/'));
        let mut request = builder.build().map_err(cannot)?.post(address);
        if let Some(key) = &self.api_key {
            request = request.bearer_auth(key.expose_secret());
        }
        Ok(request)
    }

    /// Sends a request and reads an answer of at most `most` bytes.
    async fn exchange(
        &self,
        request: RequestBuilder,
        most: usize,
        limit: Duration,
    ) -> Result<Vec<u8>, SpeechError> {
        let asking = async {
            let mut response = request.send().await.map_err(|error| self.unreachable(&error))?;
            let status = response.status();
            let most = if status.is_success() { most } else { MOST_ERROR_BYTES };
            let mut body = Vec::new();
            while let Some(chunk) =
                response.chunk().await.map_err(|error| self.unreachable(&error))?
            {
                if body.len() + chunk.len() > most {
                    let what = format!("{} sent more than {most} bytes", self.name());
                    return Err(SpeechError::TooMuch(what));
                }
                body.extend_from_slice(&chunk);
            }
            if !status.is_success() {
                return Err(self.refused(status.as_u16(), &body));
            }
            Ok(body)
        };
        tokio::time::timeout(limit, asking).await.unwrap_or_else(|_| {
            Err(SpeechError::Failed(format!(
                "{} gave no answer within {} s",
                self.name(),
                limit.as_secs_f64()
            )))
        })
    }

    /// The host, for people.
    fn name(&self) -> String {
        let rest = self.base_url.split_once("://").map_or(self.base_url.as_str(), |(_, rest)| rest);
        let host = rest.split('/').next().unwrap_or_default();
        host.rsplit('@').next().unwrap_or_default().to_owned()
    }

    fn unreachable(&self, error: &reqwest::Error) -> SpeechError {
        let mut reason = String::new();
        let mut source: Option<&dyn std::error::Error> = std::error::Error::source(error);
        while let Some(inner) = source {
            reason = inner.to_string();
            source = inner.source();
        }
        SpeechError::Failed(format!("{} cannot be reached: {reason}", self.name()))
    }

    /// What a server says when it refuses, in one short line without the key.
    fn refused(&self, status: u16, body: &[u8]) -> SpeechError {
        let value: Option<Value> = serde_json::from_slice(body).ok();
        let said = value.as_ref().and_then(|value| {
            let error = value.get("error")?;
            error.get("message").unwrap_or(error).as_str()
        });
        let mut said: String =
            said.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(key) =
            self.api_key.as_ref().map(|key| key.expose_secret()).filter(|key| !key.is_empty())
        {
            said = said.replace(key, "[redacted]");
        }
        let said: String = said.chars().take(MOST_ERROR_CHARS).collect();
        let said = if said.is_empty() { said } else { format!(": {said}") };
        SpeechError::Failed(format!("{} refused with status {status}{said}", self.name()))
    }
}
