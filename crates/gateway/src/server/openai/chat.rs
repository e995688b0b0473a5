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
use myclaw_delivery::ledger::now_ms;
use myclaw_delivery::rows::MessageId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::stream::{Piece, Used, Whole, pieces};
use super::turns::{Handed, Turn, wire_call};
use super::{Accepted, Content, MODEL, Said, Source, failure, named_session, options, refusal};
use crate::GatewayError;
use crate::devices::Login;
use crate::server::Server;
use crate::server::request::Body;
use myclaw_engine::ProgramRequest;

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
    /// What the model called.
    #[serde(default)]
    tool_calls: Option<Vec<WireCall>>,
    /// Of which call it is the result.
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct WireCall {
    id: String,
    function: CalledFunction,
}

#[derive(Deserialize)]
struct CalledFunction {
    name: String,
    #[serde(default)]
    arguments: String,
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
    let asked = match options::read(request.model.as_deref(), &request.asked) {
        Ok(asked) => asked,
        Err(failure) => return refusal(*failure),
    };
    let named = named_session(&headers, request.user.as_deref());
    let source = Source::new(&login, &headers);
    if let Some(asked) = &asked {
        let session = named.clone().unwrap_or_else(|| source.session());
        if let Err(failure) = server.check_asked(&session, asked, &request.asked).await {
            return refusal(*failure);
        }
    }
    let has_format = asked.as_ref().is_some_and(|asked| asked.options.format.is_some());
    let accepted = match turns(request.messages) {
        Ok(turns) => server.accept_chat(source, named, turns, asked).await,
        Err(error) => Err(error),
    };
    let Accepted { id, key, watching } = match accepted {
        Ok(accepted) => accepted,
        Err(error) => return failure(&error),
    };
    let model = request.model.unwrap_or_else(|| MODEL.to_owned());
    let form = Form { id: id.clone(), model, created: now_ms() / 1_000 };
    let pieces = pieces(server, key, watching, id, has_format);
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
            let content =
                (!answer.text.is_empty() || answer.calls.is_empty()).then_some(&answer.text);
            let mut message = json!({"role": "assistant", "content": content, "refusal": null});
            let calls = answer.calls.iter().enumerate();
            let calls: Vec<Value> = calls.map(|(at, call)| wire_call(&form.id, at, call)).collect();
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            let finish = finish_reason(&answer);
            let choice =
                json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish});
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
                    let calls = whole.calls.iter().enumerate();
                    let mut chunks: Vec<String> = calls
                        .map(|(at, call)| {
                            let mut call = wire_call(&self.id, at, call);
                            call["index"] = json!(at);
                            self.chunk(&json!({"tool_calls": [call]}), &Value::Null)
                        })
                        .collect();
                    chunks.push(self.chunk(&json!({}), &json!(finish_reason(&whole))));
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

/// Why an answer ends.
fn finish_reason(whole: &Whole) -> &'static str {
    match whole {
        Whole { calls, .. } if !calls.is_empty() => "tool_calls",
        Whole { is_cut: true, .. } => "length",
        _ => "stop",
    }
}

impl Server {
    async fn accept_chat(
        &self,
        source: Source,
        named: Option<String>,
        turns: Vec<Turn>,
        asked: Option<Box<ProgramRequest>>,
    ) -> Result<Accepted, GatewayError> {
        let named = (named, Handed::Again);
        let (session, question) = self.question_in(turns, None, named, &source).await?;
        self.accept(source, session, question, asked).await
    }
}

/// The messages one by one.
fn turns(messages: Vec<Message>) -> Result<Vec<Turn>, GatewayError> {
    let mut turns = Vec::new();
    for Message { role, content, tool_calls, tool_call_id } in messages {
        let said = content.map_or_else(|| Ok(Said::default()), Content::read)?;
        if role == "tool" {
            let why = "a message with the role `tool` needs the `tool_call_id` of the call that it answers";
            let call_id = tool_call_id.ok_or_else(|| GatewayError::Unusable(why.to_owned()))?;
            turns.push(Turn::Result { call_id, said });
            continue;
        }
        let calls = tool_calls.unwrap_or_default();
        if calls.is_empty() || !said.text.is_empty() {
            turns.push(Turn::Said(role, said));
        }
        turns.extend(calls.into_iter().map(|WireCall { id, function }| {
            let CalledFunction { name, arguments } = function;
            Turn::Call { id, name, arguments }
        }));
    }
    Ok(turns)
}
