//! Requests that have no result.

use serde_json::{Value, json};

use crate::connection::STATELESS;

/// Why a request has no result: an error of JSON-RPC.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    code: i64,
    message: String,
    data: Option<Value>,
}

const PARSE: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const NO_METHOD: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const HEADER_MISMATCH: i64 = -32020;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;
/// The revisions that a request may name.
pub(super) const SUPPORTED: [&str; 1] = [STATELESS];

impl Refusal {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The message is not JSON.
    pub fn unreadable(why: impl Into<String>) -> Self {
        Self::new(PARSE, why)
    }

    /// The message is no request of the protocol.
    pub fn no_request(why: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, why)
    }

    /// There is no such method.
    pub(super) fn no_method(method: &str) -> Self {
        Self::new(NO_METHOD, format!("there is no method `{method}`"))
    }

    /// The parameters cannot be used.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, why)
    }

    /// A header says something else than the message.
    pub fn header(name: &str) -> Self {
        let why = format!("the header {name} is missing, or says something else than the message");
        Self::new(HEADER_MISMATCH, why)
    }

    /// The client has not said that it can do what the method needs.
    pub(super) fn needs(capabilities: &Value) -> Self {
        let why = format!("this needs a client with the capabilities {capabilities}");
        let data = json!({"requiredCapabilities": capabilities});
        Self { data: Some(data), ..Self::new(MISSING_CAPABILITY, why) }
    }

    /// The revision is not known here.
    pub(super) fn version(requested: &str) -> Self {
        let data = json!({"supported": SUPPORTED, "requested": requested});
        let why = format!("the revision `{requested}` of the protocol is not supported");
        Self { data: Some(data), ..Self::new(UNSUPPORTED_VERSION, why) }
    }

    /// The status of HTTP that the revision without sessions has for it.
    pub fn http_status(&self) -> u16 {
        if self.code == NO_METHOD { 404 } else { 400 }
    }

    /// The answer to the request with this id.
    pub fn answer(&self, id: &Value) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    }
}
