//! Messages of JSON-RPC.

use serde_json::{Map, Value, json};

use super::Refusal;

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// It wants an answer.
    Request(Request),
    /// It wants none.
    Notification {
        /// What it says.
        method: String,
        /// About what.
        params: Map<String, Value>,
    },
    /// The answer to a request of the server; the error in words.
    Response {
        /// The id of that request.
        id: Value,
        /// What the client answers.
        outcome: Result<Value, String>,
    },
}

/// A request of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// A text or a number.
    pub id: Value,
    /// What is asked.
    pub method: String,
    /// With which parameters.
    pub params: Map<String, Value>,
}

impl Message {
    /// Reads a message.
    ///
    /// # Errors
    /// It is none of JSON-RPC; the answer, with the id if that can be read.
    pub fn parse(text: &[u8]) -> Result<Self, Value> {
        let refuse = |id: &Value, refusal: &Refusal| Err(refusal.answer(id));
        let mut fields = match serde_json::from_slice(text) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => {
                let why = "a message is one JSON object; batches are not supported";
                return refuse(&Value::Null, &Refusal::no_request(why));
            }
            Err(error) => {
                let why = format!("the message is not JSON: {error}");
                return refuse(&Value::Null, &Refusal::unreadable(why));
            }
        };
        let id = fields.remove("id");
        let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
        let known = id.clone().filter(is_id).unwrap_or(Value::Null);
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return refuse(&known, &Refusal::no_request("`jsonrpc` is not \"2.0\""));
        }
        let Some(Value::String(method)) = fields.remove("method") else {
            let (result, error) = (fields.remove("result"), fields.remove("error"));
            return match (id, result, error) {
                (Some(id), Some(result), _) => Ok(Self::Response { id, outcome: Ok(result) }),
                (Some(id), None, Some(error)) => {
                    let said = error["message"].as_str().unwrap_or("an error without a message");
                    Ok(Self::Response { id, outcome: Err(said.to_owned()) })
                }
                _ => {
                    refuse(&known, &Refusal::no_request("the message has no text as its `method`"))
                }
            };
        };
        let params = match fields.remove("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => {
                let why = format!("{method}: `params` is not an object");
                return refuse(&known, &Refusal::invalid(why));
            }
        };
        match id {
            None => Ok(Self::Notification { method, params }),
            Some(id) if is_id(&id) => Ok(Self::Request(Request { id, method, params })),
            Some(_) => {
                let why = "the `id` is neither text nor a whole number";
                refuse(&Value::Null, &Refusal::no_request(why))
            }
        }
    }
}

impl Request {
    /// The answer with the result of the request.
    pub fn answer(&self, outcome: Result<Value, Refusal>) -> Value {
        match outcome {
            Ok(result) => json!({"jsonrpc": "2.0", "id": self.id, "result": result}),
            Err(refusal) => refusal.answer(&self.id),
        }
    }

    /// What the request says of itself.
    pub fn meta(&self) -> Option<&Map<String, Value>> {
        self.params.get("_meta").and_then(Value::as_object)
    }

    /// The text of a parameter.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name).and_then(Value::as_str)
    }
}

#[cfg(test)]
mod tests;
