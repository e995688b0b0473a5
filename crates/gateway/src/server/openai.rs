//! The chat completions of OpenAI, for programs that speak nothing else.
//!
//! With `user`, or the header `x-myclaw-session`, a request continues that session: its last message is the user's, and
//! the session knows the ones before. Without, each request is a session of its own, and the messages before are part of
//! the question.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{class_of, message as message_object};
use super::{Server, route};
use crate::GatewayError;
use crate::delivery::NewMessage;
use crate::rows::MessageId;

/// The only model of the list: the agent.
const MODEL: &str = "myclaw";
/// The header that names the session.
const SESSION_HEADER: &str = "x-myclaw-session";
/// The header with which programs name a request.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Longest wait for an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(14 * 60);

#[derive(Deserialize)]
pub(super) struct Request {
    #[serde(default)]
    model: Option<String>,
    messages: Vec<Message>,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    user: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    r#type: String,
    #[serde(default)]
    text: Option<String>,
}

pub(super) async fn models() -> Json<Value> {
    let model = json!({"id": MODEL, "object": "model", "created": 0, "owned_by": "myclaw"});
    Json(json!({"object": "list", "data": [model]}))
}

pub(super) async fn chat_completions(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    body: Result<Json<Request>, JsonRejection>,
) -> Response {
    let request = match body {
        Ok(Json(request)) => request,
        Err(error) => return failure(&GatewayError::Unusable(error.body_text())),
    };
    let (is_stream, model) = (request.stream, request.model.clone());
    let model = model.unwrap_or_else(|| MODEL.to_owned());
    let id = match accept(&server, &headers, &request).await {
        Ok(id) => id,
        Err(error) => return failure(&error),
    };
    if is_stream {
        let events = stream::once(async move {
            let chunks = match reply(&server, &id).await {
                Ok(text) => chunks(&id, &model, &text),
                Err((_, body)) => vec![body.to_string()],
            };
            stream::iter(
                chunks.into_iter().map(|chunk| Ok::<_, Infallible>(Event::default().data(chunk))),
            )
        });
        let events = futures_util::StreamExt::flatten(events);
        return Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    }
    match reply(&server, &id).await {
        Ok(text) => {
            let message = json!({"role": "assistant", "content": text});
            let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
            Json(object("chat.completion", &id, &model, &choice)).into_response()
        }
        Err((status, body)) => (status, Json(body)).into_response(),
    }
}

async fn accept(
    server: &Server,
    headers: &HeaderMap,
    request: &Request,
) -> Result<MessageId, GatewayError> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let source_id = header(IDEMPOTENCY_KEY).map(str::to_owned);
    let source_id = source_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let named = header(SESSION_HEADER).map(str::to_owned);
    let named = named.or_else(|| request.user.as_ref().map(|user| format!("openai-{user}")));
    let text = match &named {
        Some(_) => last_message(&request.messages)?,
        None => whole_question(&request.messages)?,
    };
    // The same request again is the same session.
    let session =
        named.unwrap_or_else(|| format!("openai-{}", MessageId::of(&route(), &source_id)));
    let new = NewMessage { route: route(), source_id, session, text, images: Vec::new() };
    Ok(server.delivery.accept(new).await?.id)
}

/// The text of the answer, or the status and the body of an error.
async fn reply(server: &Server, id: &MessageId) -> Result<String, (StatusCode, Value)> {
    let failed = |error: &GatewayError| {
        let (status, class) = class_of(error);
        (status, error_object(class, &error.to_string()))
    };
    let until = async {
        tokio::select! {
            () = tokio::time::sleep(LONGEST_WAIT) => {}
            () = server.stop.cancelled() => {}
        }
    };
    let row = server.delivery.outcome(id, until).await.map_err(|error| failed(&error))?;
    let row =
        row.ok_or_else(|| failed(&GatewayError::Internal("the message is gone".to_owned())))?;
    let answer =
        message_object(&server.delivery, id, &row).await.map_err(|error| failed(&error))?;
    match (answer["reply"].as_str(), answer["message"].as_str()) {
        (Some(reply), _) => Ok(reply.to_owned()),
        (None, Some(report)) => {
            let class = answer["class"].as_str().unwrap_or("failed");
            Err((StatusCode::BAD_GATEWAY, error_object(class, report)))
        }
        (None, None) => {
            let message =
                "there is no answer yet; repeat the request with the same Idempotency-Key";
            Err((StatusCode::GATEWAY_TIMEOUT, error_object("timeout", message)))
        }
    }
}

fn failure(error: &GatewayError) -> Response {
    let (status, class) = class_of(error);
    (status, Json(error_object(class, &error.to_string()))).into_response()
}

/// An error in OpenAI's form.
fn error_object(class: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": class, "param": null, "code": class}})
}

fn chunks(id: &MessageId, model: &str, text: &str) -> Vec<String> {
    let first = json!({"role": "assistant", "content": text});
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        object("chat.completion.chunk", id, model, &choice).to_string()
    };
    vec![chunk(first, Value::Null), chunk(json!({}), json!("stop")), "[DONE]".to_owned()]
}

fn object(kind: &str, id: &MessageId, model: &str, choice: &Value) -> Value {
    let created = crate::ledger::now_ms() / 1_000;
    json!({"id": format!("chatcmpl-{id}"), "object": kind, "created": created, "model": model, "choices": [choice]})
}

fn last_message(messages: &[Message]) -> Result<String, GatewayError> {
    let last = messages.last().filter(|message| message.role == "user");
    let why = "the last message must be the user's; tool results cannot be handed in";
    last.ok_or_else(|| GatewayError::Unusable(why.to_owned()))?.text()
}

/// The last message, after what was said before it.
fn whole_question(messages: &[Message]) -> Result<String, GatewayError> {
    let last = last_message(messages)?;
    let before = &messages[..messages.len() - 1];
    if before.is_empty() {
        return Ok(last);
    }
    let mut text = "[Earlier messages, as the program that asks has them:]\n".to_owned();
    for message in before {
        text.push_str(&format!("{}: {}\n", message.role, message.text()?));
    }
    Ok(format!("{text}[The message to answer:]\n{last}"))
}

impl Message {
    fn text(&self) -> Result<String, GatewayError> {
        match &self.content {
            None => Ok(String::new()),
            Some(Content::Text(text)) => Ok(text.clone()),
            Some(Content::Parts(parts)) => {
                let mut all = String::new();
                for part in parts {
                    let text = part.text.as_deref().filter(|_| part.r#type == "text");
                    all.push_str(text.ok_or_else(|| {
                        let kind = &part.r#type;
                        GatewayError::Unusable(format!(
                            "content of type `{kind}` is not supported; send text"
                        ))
                    })?);
                }
                Ok(all)
            }
        }
    }
}
