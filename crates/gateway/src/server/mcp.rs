//! `/mcp`: MyClaw as a server of the Model Context Protocol over HTTP. Each message is a request of its own, answered by one
//! message or by a stream of them.
//!
//! What the messages mean is in [`serve`](myclaw_agent::mcp::serve). The guard has checked host, origin and token before; the
//! scope of the login decides which tools there are. What a client of the older revision has said at its beginning is in the
//! id of its session, so any process with the same store can answer. Only a question in the middle of such a request waits
//! in this one, and is repeated if the process ends.

mod headers;
mod turns;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::future::BoxFuture;
use futures_util::stream;
use myclaw_agent::mcp::serve::{Asks, Call, Client, Message, Peer, Refusal, Request};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::turns::Turns;
use super::Server;
use crate::devices::Login;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const EVENT_STREAM: &str = "text/event-stream";
/// A request without an answer and without progress after this time is answered by a stream.
const QUIET: Duration = Duration::from_secs(2);

/// What goes on in this process.
#[derive(Default)]
pub(super) struct Exchange {
    asks: Asks,
    /// The requests that are being answered, by session and id.
    running: Mutex<HashMap<(String, String), CancellationToken>>,
}

/// A message of an answer.
enum Piece {
    Message(Value),
    /// The last one, and the status of an answer that has nothing else.
    End(Value, StatusCode),
}

/// The client, while a request of it is answered.
struct Stream {
    server: Arc<Server>,
    /// It holds as much as a turn has steps.
    pieces: mpsc::UnboundedSender<Piece>,
}

impl Peer for Stream {
    fn notify(&self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask<'a>(&'a self, method: &'a str, params: Value) -> BoxFuture<'a, Result<Value, String>> {
        let asks = &self.server.mcp.asks;
        Box::pin(async move { asks.ask(method, params, &|message| self.send(message)).await })
    }
}

impl Stream {
    fn send(&self, message: Value) {
        // The client may be gone.
        let _ = self.pieces.send(Piece::Message(message));
    }
}

/// Takes a message.
pub(super) async fn post(
    State(server): State<Arc<Server>>,
    Extension(login): Extension<Login>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let says = |name, kind: &str| {
        let value: Option<&str> = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.contains(kind))
    };
    if !says(CONTENT_TYPE, "application/json") {
        let why = "send the message as JSON, with the header `Content-Type: application/json`";
        return bad(Refusal::no_request(why).answer(&Value::Null));
    }
    let session = headers.get(SESSION).and_then(|value| value.to_str().ok());
    let request = match Message::parse(&body) {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification { method, params }) => {
            if method == "notifications/cancelled"
                && let (Some(session), Some(id)) = (session, params.get("requestId"))
            {
                let key = (session.to_owned(), id.to_string());
                let running = server.mcp.running.lock().get(&key).cloned();
                running.inspect(CancellationToken::cancel);
            }
            return StatusCode::ACCEPTED.into_response();
        }
        Ok(Message::Response { id, outcome }) => {
            // Nobody waits any more for one that comes late.
            server.mcp.asks.answer(&id, outcome);
            return StatusCode::ACCEPTED.into_response();
        }
        Err(answer) => return bad(answer),
    };
    if headers::is_stateless(&request, &headers) {
        let client = headers::check(&request, &headers).and_then(|()| Client::of_request(&request));
        return match client {
            Ok(client) => {
                answer(server, login, (client, None), request, says(ACCEPT, EVENT_STREAM)).await
            }
            Err(refusal) => bad(refusal.answer(&request.id)),
        };
    }
    let client = match session {
        _ if request.method == "initialize" => Client::of_initialize(&request),
        None => Client::default(),
        Some(id) => match Client::of_session(id) {
            Some(client) => client,
            None => {
                let why = "there is no such session; begin one with `initialize`";
                let answer = Refusal::no_request(why).answer(&request.id);
                return (StatusCode::NOT_FOUND, Json(answer)).into_response();
            }
        },
    };
    let begun = (request.method == "initialize").then(|| client.session_id());
    let of = (client, session.map(str::to_owned));
    let mut response = answer(server, login, of, request, says(ACCEPT, EVENT_STREAM)).await;
    if let Some(id) = begun.and_then(|id| id.parse().ok()) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

fn bad(answer: Value) -> Response {
    (StatusCode::BAD_REQUEST, Json(answer)).into_response()
}

/// Answers a request: by one message if it is known soon, else by a stream.
async fn answer(
    server: Arc<Server>,
    login: Login,
    (mut client, session): (Client, Option<String>),
    request: Request,
    may_stream: bool,
) -> Response {
    // Questions and progress come on a stream.
    client.can_be_asked &= may_stream || client.is_stateless;
    let cancel = login.gone.child_token();
    // A client of the newer revision gives a request up by the end of its connection; one of the older says so.
    let with_connection = client.is_stateless.then(|| cancel.clone().drop_guard());
    let (sender, mut pieces) = mpsc::unbounded_channel();
    let (stop, backend) = (server.stop.clone(), Turns::new(Arc::clone(&server), login));
    let peer = Stream { server: Arc::clone(&server), pieces: sender.clone() };
    let key = session.map(|session| (session, request.id.to_string()));
    if let Some(key) = key.clone() {
        server.mcp.running.lock().insert(key, cancel.clone());
    }
    let call = Call { backend: Arc::new(backend), client, peer: Arc::new(peer), request, cancel };
    tokio::spawn(async move {
        let outcome = tokio::select! {
            outcome = call.outcome() => Some(outcome),
            // Nothing comes on a stream that nobody reads.
            () = sender.closed(), if call.request.method == "subscriptions/listen" => None,
            // The turn goes on after the next start.
            () = stop.cancelled() => None,
        };
        if let Some(key) = key {
            server.mcp.running.lock().remove(&key);
        }
        let Some(outcome) = outcome else { return };
        let status = match &outcome {
            Err(refusal) if client.is_stateless => StatusCode::from_u16(refusal.http_status()).ok(),
            _ => None,
        };
        let end = Piece::End(call.request.answer(outcome), status.unwrap_or(StatusCode::OK));
        let _ = sender.send(end);
    });
    let mut first = None;
    loop {
        let next = if may_stream {
            timeout(QUIET, pieces.recv()).await.ok()
        } else {
            Some(pieces.recv().await)
        };
        match next {
            Some(Some(Piece::End(answer, status))) => {
                return (status, Json(answer)).into_response();
            }
            Some(None) => return crate::GatewayError::Stopping.into_response(),
            Some(Some(Piece::Message(_))) if !may_stream => {}
            Some(Some(Piece::Message(message))) => first = Some(message),
            None => {}
        }
        if may_stream {
            return streamed(first, pieces, with_connection);
        }
    }
}

/// A stream of messages, whose end gives up the request if `with_connection` does.
fn streamed(
    first: Option<Value>,
    pieces: mpsc::UnboundedReceiver<Piece>,
    with_connection: Option<DropGuard>,
) -> Response {
    let begin = stream::iter(first);
    let rest = stream::unfold((pieces, with_connection), |(mut pieces, guard)| async {
        let (Piece::Message(message) | Piece::End(message, _)) = pieces.recv().await?;
        Some((message, (pieces, guard)))
    });
    let messages = futures_util::StreamExt::chain(begin, rest);
    let events = futures_util::StreamExt::map(messages, |message: Value| {
        Ok::<_, Infallible>(Event::default().event("message").data(message.to_string()))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}
