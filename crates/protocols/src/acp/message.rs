//! Parses the client's messages: one JSON-RPC message per line.

use agent_client_protocol_schema::v1::{Error, ErrorCode, RequestId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::failure::{failure, invalid};

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    /// A request, which is answered.
    Request(RequestId, Call),
    /// A notification, which is not answered.
    Notification(Call),
    /// The response to a request of this program: the result, or the message of an error.
    Response(RequestId, Result<Value, String>),
}

/// A method with its parameters.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    /// Such as `session/prompt`.
    pub(super) method: String,
    params: Option<Value>,
}

/// Why a line is not a valid message, with the id of the request if it can be read.
#[derive(Debug, PartialEq)]
pub(super) struct BadMessage {
    pub(super) id: RequestId,
    pub(super) error: Box<Error>,
}

impl Message {
    /// Reads a line.
    ///
    /// # Errors
    /// The line is not JSON, or not a message of JSON-RPC 2.0.
    pub(super) fn parse(line: &str) -> Result<Self, BadMessage> {
        let value: Value = serde_json::from_str(line)
            .map_err(|error| BadMessage::unreadable(format!("the line is not JSON: {error}")))?;
        let mut fields = match value {
            Value::Object(fields) => fields,
            Value::Array(_) => {
                let why = "batches are not used in this protocol; write one message a line";
                return Err(BadMessage::invalid(RequestId::Null, why));
            }
            _ => {
                let why = "the line is JSON but no object";
                return Err(BadMessage::invalid(RequestId::Null, why));
            }
        };
        let id = take_id(&mut fields)?;
        let known_id = id.clone().unwrap_or(RequestId::Null);
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(BadMessage::invalid(known_id, "`jsonrpc` is not \"2.0\""));
        }
        match fields.remove("method") {
            Some(Value::String(method)) => {
                let call = Call { method, params: fields.remove("params") };
                Ok(match id {
                    Some(id) => Self::Request(id, call),
                    None => Self::Notification(call),
                })
            }
            None if fields.contains_key("result") || fields.contains_key("error") => {
                let error = fields.get("error").map(|error| {
                    let message = error.get("message").and_then(Value::as_str);
                    message.unwrap_or("an error without a message").to_owned()
                });
                let result = fields.remove("result").unwrap_or_default();
                Ok(Self::Response(known_id, error.map_or(Ok(result), Err)))
            }
            _ => Err(BadMessage::invalid(known_id, "the message has no text as its `method`")),
        }
    }
}

impl Call {
    /// The parameters of the method.
    ///
    /// # Errors
    /// A parameter is missing or has the wrong type.
    pub(super) fn params<T: DeserializeOwned>(self) -> Result<T, Error> {
        let params = match self.params {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(params @ Value::Object(_)) => params,
            Some(_) => return Err(invalid(format!("{}: `params` is not an object", self.method))),
        };
        serde_json::from_value(params).map_err(|error| invalid(format!("{}: {error}", self.method)))
    }
}

impl BadMessage {
    /// A line that is not JSON.
    pub(super) fn unreadable(why: impl Into<String>) -> Self {
        Self { id: RequestId::Null, error: failure(ErrorCode::ParseError, why).into() }
    }

    fn invalid(id: RequestId, why: &str) -> Self {
        Self { id, error: failure(ErrorCode::InvalidRequest, why).into() }
    }
}

fn take_id(fields: &mut Map<String, Value>) -> Result<Option<RequestId>, BadMessage> {
    let id = match fields.remove("id") {
        None => return Ok(None),
        Some(Value::Null) => Some(RequestId::Null),
        Some(Value::String(text)) => Some(RequestId::Str(text)),
        Some(Value::Number(number)) => number.as_i64().map(RequestId::Number),
        Some(_) => None,
    };
    let why = "the `id` is neither text nor a whole number";
    id.map(Some).ok_or_else(|| BadMessage::invalid(RequestId::Null, why))
}

#[cfg(test)]
mod tests;
