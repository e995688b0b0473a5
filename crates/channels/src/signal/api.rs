//! Calls of signal-cli by JSON-RPC over HTTP, and its stream of events.

use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::http::{self, CallError, Refusal};

/// Time for a call. signal-cli sends to each device of each receiver before it answers.
pub(super) const CALL_TIME: Duration = Duration::from_secs(30);
/// Largest answer without the file in it, in bytes.
const MOST_ANSWER: u64 = 4 * 1024 * 1024;
/// Time for the head of the stream of events.
const CONNECT_TIME: Duration = Duration::from_secs(30);

/// A connection to the daemon for one account.
pub(super) struct Api {
    client: Client,
    base: String,
    account: String,
    most_answer: usize,
}

/// Why a call failed.
pub(super) type ApiError = CallError<Refused>;

/// What signal-cli said when it refused a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Refused {
    /// Of JSON-RPC, or of signal-cli: -1 for a wrong request, -3 for a failure of the network, -4 for a changed safety
    /// number, -5 for a limit.
    pub(super) code: i64,
    /// For people.
    pub(super) message: String,
    /// What became of each receiver, if it got so far.
    pub(super) results: Vec<Delivered>,
}

/// What became of a message for one receiver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Delivered {
    #[serde(rename = "type")]
    pub(super) outcome: String,
    pub(super) retry_after_seconds: Option<u64>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "(code {}): {}", self.code, self.message)
    }
}

impl Refusal for Refused {
    const SERVER: &'static str = "signal-cli";
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    data: Value,
}

impl Api {
    pub(super) fn new(base: &str, account: &str, most_file: u64) -> Result<Self, String> {
        let client = http::client(base)?;
        // In base64, four characters stand for three bytes.
        let most_answer = usize::try_from(most_file / 3 * 4 + MOST_ANSWER).unwrap_or(usize::MAX);
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self { client, base, account: account.to_owned(), most_answer })
    }

    /// Calls a method for the account.
    pub(super) async fn call(
        &self,
        method: &str,
        mut params: Map<String, Value>,
    ) -> Result<Value, ApiError> {
        params.insert("account".to_owned(), json!(self.account));
        self.ask(method, params, CALL_TIME).await
    }

    /// Calls a method of the daemon, which has `time` for it and more for what is sent.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: Map<String, Value>,
        time: Duration,
    ) -> Result<Value, ApiError> {
        let id = uuid::Uuid::new_v4().to_string();
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let body = body.to_string();
        // A second for each 100 KB.
        let limit = time + Duration::from_secs(body.len() as u64 / 100_000);
        let request = self
            .client
            .post(format!("{}/api/v1/rpc", self.base))
            .header("content-type", "application/json")
            .body(body);
        let answer = http::exchange(request, self.most_answer, limit).await?;
        let status = answer.status;
        let Ok(Answer { result, error }) = serde_json::from_slice(&answer.body) else {
            return Err(match status {
                500.. => ApiError::Unknown(format!("status {status}, and no JSON")),
                _ => refused(
                    i64::from(status),
                    "the answer is no JSON-RPC; is this signal-cli's daemon?",
                ),
            });
        };
        let Some(RpcError { code, message, data }) = error else { return Ok(result) };
        let results = data.pointer("/response/results").cloned().unwrap_or_default();
        Err(ApiError::Refused(Refused {
            code,
            message: message.unwrap_or_default(),
            results: serde_json::from_value(results).unwrap_or_default(),
        }))
    }

    /// The stream of events after the event `last`.
    pub(super) async fn events(&self, last: Option<&str>) -> Result<Response, String> {
        let account = utf8_percent_encode(&self.account, NON_ALPHANUMERIC);
        let mut request = self
            .client
            .get(format!("{}/api/v1/events?account={account}", self.base))
            .header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let sent = tokio::time::timeout(CONNECT_TIME, request.send()).await;
        let response =
            sent.map_err(|_| "signal-cli does not answer".to_owned())?.map_err(|_| {
                "signal-cli cannot be reached; is `signal-cli daemon --http` running?".to_owned()
            })?;
        match response.status().as_u16() {
            200 => Ok(response),
            400 => Err(format!("signal-cli has no account {}", self.account)),
            status => Err(format!("signal-cli answered {status} to the request for events")),
        }
    }
}

fn refused(code: i64, message: &str) -> ApiError {
    ApiError::Refused(Refused { code, message: message.to_owned(), results: Vec::new() })
}
