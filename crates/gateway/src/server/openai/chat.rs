//! Chat completions.
//!
//! With `user`, or the header `x-myclaw-session`, a request continues that session: its last message is the user's, and
//! the session knows the ones before. Without, each request is a session of its own, and the messages before are part of
//! the question.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::stream::{Piece, Used, Whole, pieces};
use super::{
    Accepted, CONTINUE, Content, MODEL, Said, Source, failure, named_session, options, refusal,
    with_earlier,
};
use crate::GatewayError;
use crate::devices::Login;
use crate::ledger::now_ms;
use crate::rows::MessageId;
use crate::server::Server;
use crate::server::request::Body;

#[derive(Deserialize)]
pub(in crate::server) struct Request {
    #[serde(default)]
    model: Option<String>,
    messages: Vec<Message>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    user: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    asked: Map<String, Value>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Option<Content>,
}

/// What all objects of one answer have in common.
struct Form {
    id: MessageId,
    model: String,
    created: u64,
}

pub(in crate::server) async fn chat_completions(
    State(server): State<Arc<Server>>,
    Extension(login): Extension<Login>,
    headers: HeaderMap,
    body: Result<Body<Request>, GatewayError>,
) -> Response {
    let request = match body {
        Ok(Body(request)) => request,
        Err(error) => return failure(&error),
    };
    if let Err(failure) = options::check(request.model.as_deref(), &request.asked) {
        return refusal(*failure);
    }
    let named = named_session(&headers, request.user.as_deref());
    let question = match &named {
        Some(_) => continued(request.messages),
        None => whole_question(request.messages),
    };
    let accepted = match question {
        Ok(question) => server.accept(Source::new(&login, &headers), named, question).await,
        Err(error) => Err(error),
    };
    let Accepted { id, key, watching } = match accepted {
        Ok(accepted) => accepted,
        Err(error) => return failure(&error),
    };
    let model = request.model.unwrap_or_else(|| MODEL.to_owned());
    let form = Form { id: id.clone(), model, created: now_ms() / 1_000 };
    let pieces = pieces(server, key, watching, id);
    if request.stream.unwrap_or(false) {
        let options = request.stream_options;
        let with_usage = options.and_then(|options| options.include_usage).unwrap_or(false);
        let role = form.chunk(&json!({"role": "assistant", "content": ""}), &Value::Null);
        let rest = pieces.flat_map(move |piece| stream::iter(form.chunks(piece, with_usage)));
        let chunks = stream::iter([role]).chain(rest);
        let events = chunks.map(|chunk| Ok::<_, Infallible>(Event::default().data(chunk)));
        return Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    }
    match whole(pieces).await {
        Some(Ok(answer)) => {
            let message = json!({"role": "assistant", "content": answer.text, "refusal": null});
            let choice =
                json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"});
            let mut object = form.object("chat.completion", &json!([choice]));
            if let Some(used) = answer.usage {
                object["usage"] = usage(used);
            }
            Json(object).into_response()
        }
        Some(Err((status, body))) => (status, Json(body)).into_response(),
        None => failure(&GatewayError::Stopping),
    }
}

/// The end of an answer, without its pieces.
pub(super) async fn whole(
    pieces: impl stream::Stream<Item = Piece>,
) -> Option<Result<Whole, super::Failure>> {
    let mut pieces = std::pin::pin!(pieces);
    while let Some(piece) = pieces.next().await {
        if let Piece::End(end) = piece {
            return Some(*end);
        }
    }
    None
}

impl Form {
    /// The chunks of a piece, as texts.
    fn chunks(&self, piece: Piece, with_usage: bool) -> Vec<String> {
        match piece {
            Piece::Text(text) => vec![self.chunk(&json!({"content": text}), &Value::Null)],
            Piece::End(end) => match *end {
                Ok(whole) => {
                    let mut chunks = vec![self.chunk(&json!({}), &json!("stop"))];
                    if let Some(used) = whole.usage.filter(|_| with_usage) {
                        let mut last = self.object("chat.completion.chunk", &json!([]));
                        last["usage"] = usage(used);
                        chunks.push(last.to_string());
                    }
                    chunks.push("[DONE]".to_owned());
                    chunks
                }
                Err((_, body)) => vec![body.to_string()],
            },
        }
    }

    fn chunk(&self, delta: &Value, finish: &Value) -> String {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        self.object("chat.completion.chunk", &json!([choice])).to_string()
    }

    fn object(&self, kind: &str, choices: &Value) -> Value {
        let Self { id, model, created } = self;
        let id = format!("chatcmpl-{id}");
        json!({"id": id, "object": kind, "created": created, "model": model, "choices": choices})
    }
}

fn usage(used: Used) -> Value {
    json!({
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cached},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    })
}

/// The message to answer. A last message of the assistant is the beginning of an answer, which is to be continued.
fn last_message(messages: &mut Vec<Message>) -> Result<Said, GatewayError> {
    if messages.last().is_some_and(|message| message.role == "assistant") {
        return Ok(CONTINUE.to_owned().into());
    }
    let last = messages.pop().filter(|message| message.role == "user");
    let why =
        "the last message must be the user's or the assistant's; tool results cannot be handed in";
    last.ok_or_else(|| GatewayError::Unusable(why.to_owned()))?.read()
}

/// The last message, where the session knows the ones before. It does not know the beginning of an answer that the
/// program wrote.
fn continued(mut messages: Vec<Message>) -> Result<Said, GatewayError> {
    let question = last_message(&mut messages)?;
    let begun =
        messages.pop().filter(|message| message.role == "assistant" && question.text == CONTINUE);
    let before = begun.map(|message| Ok(("assistant".to_owned(), message.read()?)));
    Ok(with_earlier(before.into_iter().collect::<Result<_, GatewayError>>()?, question))
}

/// The last message, after what was said before it.
fn whole_question(mut messages: Vec<Message>) -> Result<Said, GatewayError> {
    let last = last_message(&mut messages)?;
    let before = messages.into_iter().map(|message| Ok((message.role.clone(), message.read()?)));
    Ok(with_earlier(before.collect::<Result<_, GatewayError>>()?, last))
}

impl Message {
    fn read(self) -> Result<Said, GatewayError> {
        self.content.map_or_else(|| Ok(Said::default()), Content::read)
    }
}
