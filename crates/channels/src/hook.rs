//! Requests that a vendor sends to a channel over HTTP, and their answers.

use percent_encoding::percent_decode_str;

/// A request of a vendor.
#[derive(Debug, Clone)]
pub struct HookRequest {
    /// The method, in upper case.
    pub method: String,
    /// What stands behind the `?` of the address.
    pub query: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl HookRequest {
    /// The first header of this name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first parameter of this name in the address, decoded; `None` if it is no text.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        let value = value.replace('+', " ");
        Some(percent_decode_str(&value).decode_utf8().ok()?.into_owned())
    }
}

/// The answer to a vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookAnswer {
    /// HTTP status.
    pub status: u16,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl HookAnswer {
    /// An answer with a JSON body.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { status, content_type: "application/json", body: body.to_string() }
    }

    /// An answer that is a text.
    pub fn text(status: u16, body: String) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body }
    }

    /// An error with a class for programs, which follows from the status, and a message for people.
    pub fn error(status: u16, message: &str) -> Self {
        let class = match status {
            401 | 403 => "unauthorized",
            404 => "not_found",
            405 => "method",
            503 => "storage",
            _ => "usage",
        };
        Self::json(status, &serde_json::json!({"error": {"class": class, "message": message}}))
    }
}
