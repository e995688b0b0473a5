//! The WebSocket of nodes, and requests about them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use myclaw_gateway_client::message::{Hello, MAX_FRAME, Opening, PROTOCOL, REPLACED};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::Server;
use super::answer::error;
use super::request::Body;
use crate::GatewayError;
use crate::devices::Login;
use crate::nodes::Place;

/// Time for the first frame, and for a frame to leave.
const FRAME_TIME: Duration = Duration::from_secs(10);
/// Pause between two pings, and time without any frame after which a node counts as gone.
const PING: Duration = Duration::from_secs(15);
const SILENCE: Duration = Duration::from_secs(45);

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new()
        .route("/node", get(upgrade))
        .route("/api/nodes", get(nodes))
        .route("/api/nodes/{node}", get(node))
        .route("/api/nodes/{node}/call", post(call))
}

async fn nodes(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(server.nodes.listed())
}

async fn node(
    State(server): State<Arc<Server>>,
    Path(node): Path<String>,
) -> Result<Json<Value>, GatewayError> {
    let nodes = &server.nodes;
    nodes.named(&node).map(|node| Json(nodes.described(&node)))
}

#[derive(Deserialize)]
struct CallBody {
    capability: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

async fn call(
    State(server): State<Arc<Server>>,
    Path(node): Path<String>,
    Body(body): Body<CallBody>,
) -> Result<Json<Value>, GatewayError> {
    let content = server.nodes.call(&node, &body.capability, body.arguments).await?;
    Ok(Json(json!({"content": content})))
}

async fn upgrade(
    State(server): State<Arc<Server>>,
    Extension(login): Extension<Login>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let (Some((id, _)), Ok(place)) =
        (login.device.clone(), Arc::clone(&server.sockets).try_acquire_owned())
    else {
        let message = "too many WebSockets are open; close one";
        return error(StatusCode::SERVICE_UNAVAILABLE, "too_many", message);
    };
    let upgrade = upgrade.max_message_size(MAX_FRAME).max_frame_size(MAX_FRAME);
    upgrade.on_upgrade(async move |socket| {
        Connection { server, socket }.serve(&id, login).await;
        drop(place);
    })
}

/// The connection of a node.
struct Connection {
    server: Arc<Server>,
    socket: WebSocket,
}

impl Connection {
    async fn serve(mut self, id: &str, login: Login) {
        let Some(hello) = self.hello().await else { return };
        let (place, requests) = self.server.nodes.join(id, hello.bounded());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        if !self.send(json!(Opening::Welcome { protocol: PROTOCOL, version }).to_string()).await {
            return;
        }
        let (stop, replaced) = (self.server.stop.clone(), place.replaced());
        let why = tokio::select! {
            () = self.work(requests, &place) => None,
            () = stop.cancelled() => Some((close_code::AWAY, "the gateway stops")),
            () = login.gone.cancelled() => {
                Some((close_code::POLICY, "the token was replaced or revoked"))
            }
            () = replaced.cancelled() => {
                Some((REPLACED, "another connection of this node took its place"))
            }
        };
        drop(place);
        if let Some((code, reason)) = why {
            self.close(code, reason).await;
        }
    }

    /// Reads the first frame.
    async fn hello(&mut self) -> Option<Hello> {
        let first = tokio::time::timeout(FRAME_TIME, self.socket.recv()).await;
        let frame = match &first {
            Ok(Some(Ok(Message::Text(text)))) => serde_json::from_str(text).ok(),
            _ => None,
        };
        match frame {
            Some(Opening::Hello(hello)) if hello.protocol == PROTOCOL => return Some(hello),
            Some(Opening::Hello(hello)) => {
                let older = if hello.protocol < PROTOCOL { "the node" } else { "the gateway" };
                let why = format!(
                    "the gateway speaks protocol {PROTOCOL}, the node {}; update MyClaw on the machine of {older}",
                    hello.protocol
                );
                self.close(close_code::PROTOCOL, &why).await;
            }
            _ => self.close(close_code::POLICY, "the first frame must say hello").await,
        }
        None
    }

    /// Passes requests and replies on until the node is gone.
    async fn work(&mut self, mut requests: mpsc::UnboundedReceiver<String>, place: &Place) {
        let (mut last_heard, mut ping) = (Instant::now(), tokio::time::interval(PING));
        loop {
            let goes_on = tokio::select! {
                frame = self.socket.recv() => {
                    last_heard = Instant::now();
                    match frame {
                        Some(Ok(Message::Text(text))) => self.take(&text, place).await,
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => true,
                        _ => false,
                    }
                }
                Some(request) = requests.recv() => self.send(request).await,
                _ = ping.tick() => {
                    let message = Message::Ping(Vec::new().into());
                    let sent = tokio::time::timeout(FRAME_TIME, self.socket.send(message)).await;
                    last_heard.elapsed() < SILENCE && matches!(sent, Ok(Ok(())))
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Takes what the node says. A reply counts if its call waits in this connection; others are dropped.
    async fn take(&mut self, text: &str, place: &Place) -> bool {
        let is_reply = place.calls().take_text(text).is_ok();
        if !is_reply {
            self.close(close_code::POLICY, "the frame is not an answer to a call").await;
        }
        is_reply
    }

    /// False if the node is gone.
    async fn send(&mut self, text: String) -> bool {
        let sending = self.socket.send(Message::text(text));
        matches!(tokio::time::timeout(FRAME_TIME, sending).await, Ok(Ok(())))
    }

    async fn close(&mut self, code: u16, reason: &str) {
        let message = Message::Close(Some(CloseFrame { code, reason: reason.to_owned().into() }));
        // The node may be gone already.
        let _ = tokio::time::timeout(FRAME_TIME, self.socket.send(message)).await;
    }
}
