//! The WebSocket of nodes, and requests about them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use myclaw_gateway_client::message::{
    Answer, FromNode, Hello, MAX_FRAME, PROTOCOL, REPLACED, ToNode, bounded,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::Server;
use super::answer::error;
use super::request::Body;
use crate::GatewayError;
use crate::devices::Login;
use crate::nodes::Order;

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
    Json(server.delivery.nodes.listed())
}

async fn node(
    State(server): State<Arc<Server>>,
    Path(node): Path<String>,
) -> Result<Json<Value>, GatewayError> {
    let nodes = &server.delivery.nodes;
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
    let content = server.delivery.nodes.call(&node, &body.capability, body.arguments).await?;
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
        Connection { server, socket, waiting: HashMap::new() }.serve(&id, login).await;
        drop(place);
    })
}

/// The connection of a node.
struct Connection {
    server: Arc<Server>,
    socket: WebSocket,
    /// The calls that have no answer yet. When the connection ends, they fail.
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
}

impl Connection {
    async fn serve(mut self, id: &str, login: Login) {
        let Some(hello) = self.hello().await else { return };
        let (place, orders) = self.server.delivery.nodes.join(id, hello.bounded());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        if !self.send(&ToNode::Welcome { protocol: PROTOCOL, version }).await {
            return;
        }
        let (stop, replaced) = (self.server.stop.clone(), place.replaced());
        let why = tokio::select! {
            () = self.work(orders) => None,
            () = stop.cancelled() => Some((close_code::AWAY, "the gateway stops")),
            () = login.gone.cancelled() => {
                Some((close_code::POLICY, "the token was replaced or revoked"))
            }
            () = replaced.cancelled() => {
                Some((REPLACED, "another connection of this node took its place"))
            }
        };
        // No new calls from here on, and those that wait fail.
        drop(place);
        self.waiting.clear();
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
            Some(FromNode::Hello(hello)) if hello.protocol == PROTOCOL => return Some(hello),
            Some(FromNode::Hello(_)) => {
                let why = "this gateway speaks protocol 1; update the older of the two";
                self.close(close_code::PROTOCOL, why).await;
            }
            _ => self.close(close_code::POLICY, "the first frame must say hello").await,
        }
        None
    }

    /// Passes orders and answers on until the node is gone.
    async fn work(&mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let (mut last_heard, mut ping) = (Instant::now(), tokio::time::interval(PING));
        loop {
            let goes_on = tokio::select! {
                frame = self.socket.recv() => {
                    last_heard = Instant::now();
                    match frame {
                        Some(Ok(Message::Text(text))) => self.take(&text).await,
                        Some(Ok(Message::Ping(_) | Message::Pong(_))) => true,
                        _ => false,
                    }
                }
                Some(order) = orders.recv() => self.order(order).await,
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

    async fn order(&mut self, order: Order) -> bool {
        match order {
            Order::Call { call, answer } => {
                self.waiting.insert(call.id, answer);
                self.send(&ToNode::Call(call)).await
            }
            // Without an entry it was answered.
            Order::Cancel(id) => match self.waiting.remove(&id) {
                Some(_) => self.send(&ToNode::Cancel { id }).await,
                None => true,
            },
        }
    }

    /// Takes what the node says. An answer counts if its call waits in this connection; others are dropped.
    async fn take(&mut self, text: &str) -> bool {
        match serde_json::from_str(text) {
            Ok(FromNode::Result { id, content, error }) => {
                if let Some(answer) = self.waiting.remove(&id) {
                    // Nobody may wait any more.
                    let _ = answer.send(bounded(content, error));
                }
                true
            }
            Ok(FromNode::Hello(_)) | Err(_) => {
                self.close(close_code::POLICY, "the frame is not an answer to a call").await;
                false
            }
        }
    }

    /// False if the node is gone.
    async fn send(&mut self, frame: &ToNode) -> bool {
        let Ok(text) = serde_json::to_string(frame) else { return false };
        let sending = self.socket.send(Message::text(text));
        matches!(tokio::time::timeout(FRAME_TIME, sending).await, Ok(Ok(())))
    }

    async fn close(&mut self, code: u16, reason: &'static str) {
        let message = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
        // The node may be gone already.
        let _ = tokio::time::timeout(FRAME_TIME, self.socket.send(message)).await;
    }
}
