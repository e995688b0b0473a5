//! What the server keeps of each request.

use std::sync::OnceLock;
use std::time::Instant;

use serde_json::{Value, json};

/// How the answer to a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// Every byte was handed to the kernel.
    Complete,
    /// The script cut it on purpose.
    Cut,
    /// The client closed the connection before the answer was over.
    ClientGone,
}

/// One whole request, as it came over the wire.
#[derive(Debug)]
pub struct RecordedRequest {
    /// Such as `POST`.
    pub method: String,
    /// Path with its query, such as `/v1/messages?beta=true`.
    pub path: String,
    /// Header names in lower case, with their values, in order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body, decoded if it came in chunks. Empty once the server has forgotten it (see
    /// [`crate::Script::keep_last_bodies`]).
    pub body: Vec<u8>,
    /// Length of the body in bytes, also of one that is forgotten.
    pub body_length: usize,
    /// Which connection it came on, from 0 in order of acceptance.
    pub connection: usize,
    /// When the request line and the headers had arrived.
    pub head_arrived: Instant,
    /// When the last byte of the body had arrived.
    pub arrived: Instant,
    pub(crate) json: OnceLock<Value>,
    pub(crate) end: OnceLock<(AnswerEnd, Instant)>,
}

impl RecordedRequest {
    /// The value of a header (`name` in any case); the first one if it was sent twice.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The path without its query.
    pub fn route(&self) -> &str {
        self.path.split_once('?').map_or(self.path.as_str(), |(route, _)| route)
    }

    /// The tool and the arguments that the last message names, as `call NAME {…}`.
    pub fn ordered_call(&self) -> Option<(String, Value)> {
        let content = &self.messages().last()?["content"];
        let blocks = content.as_array().cloned().unwrap_or_else(|| vec![json!({"text": content})]);
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        let (name, rest) =
            texts.filter_map(|text| text.rsplit_once("call ")).next()?.1.split_once(' ')?;
        let end = rest.rfind('}')?;
        Some((name.to_owned(), serde_json::from_str(&rest[..=end]).ok()?))
    }

    /// The body as JSON, parsed on first use.
    ///
    /// # Panics
    /// When the body is not JSON; [`RecordedRequest::try_json`] returns an error instead.
    pub fn json(&self) -> &Value {
        self.try_json().unwrap_or_else(|error| {
            panic!(
                "{} {}: the body is not JSON ({error}): {}",
                self.method,
                self.path,
                self.body_text()
            )
        })
    }

    /// The body as JSON, or why it is not JSON.
    ///
    /// # Panics
    /// When the server has forgotten the body.
    pub fn try_json(&self) -> Result<&Value, serde_json::Error> {
        if let Some(value) = self.json.get() {
            return Ok(value);
        }
        assert!(
            self.body.len() == self.body_length,
            "the server has forgotten the body of this request"
        );
        let value = serde_json::from_slice(&self.body)?;
        Ok(self.json.get_or_init(|| value))
    }

    /// The same request without its body.
    pub(crate) fn without_body(&self) -> Self {
        Self {
            method: self.method.clone(),
            path: self.path.clone(),
            headers: self.headers.clone(),
            body: Vec::new(),
            json: OnceLock::new(),
            end: self.end.clone(),
            ..*self
        }
    }

    /// The body as text, with replacement characters where it is not UTF-8.
    pub fn body_text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The messages: the `messages` of the body, or its `input`; empty if it has neither.
    pub fn messages(&self) -> &[Value] {
        let body = self.json();
        let messages = body.get("messages").or_else(|| body.get("input"));
        messages.and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// How the answer ended and when its last byte was handed to the kernel; `None` while it is under way.
    pub fn answer_end(&self) -> Option<(AnswerEnd, Instant)> {
        self.end.get().copied()
    }
}
