//! The way to the gateway.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use myclaw_config::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::client::Stream;
use crate::message::MAX_FRAME;
use crate::remote::RemoteGateway;
use crate::{ClientError, ConnectError};

/// Longest time to connect, or for an answer.
const CONNECT_TIME: Duration = Duration::from_secs(15);
/// Largest answer to a request to pair, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// A connected WebSocket.
pub(super) type Socket = WebSocketStream<Box<dyn Stream>>;

/// Why there is no connection.
pub(super) enum Trouble {
    /// The owner has not approved the node yet.
    Pending,
    /// The gateway does not accept the token.
    Unknown,
    /// It may work later.
    Later(String),
}

impl RemoteGateway {
    /// Asks to be paired.
    pub(super) async fn pair(&self, body: &Value) -> Result<Value, ClientError> {
        let asking = async {
            let stream = self.stream().await.map_err(said)?;
            let text = |error: hyper::Error| error.to_string();
            let (mut sender, connection) =
                http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
            tokio::spawn(connection);
            let request = hyper::Request::builder()
                .method("POST")
                .uri(self.at("api/devices/pair").path())
                .header("Host", self.authority())
                .header("Content-Type", "application/json")
                .body(Full::new(Bytes::from(body.to_string())))
                .map_err(|error| error.to_string())?;
            let response = sender.send_request(request).await.map_err(text)?;
            let status = response.status();
            let bytes = Limited::new(response.into_body(), MAX_ANSWER)
                .collect()
                .await
                .map_err(|error| error.to_string())?
                .to_bytes();
            let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            if status.is_success() {
                return Ok(value);
            }
            let said = value["error"]["message"].as_str().unwrap_or("it is no gateway");
            Err(said.to_owned())
        };
        let answer = tokio::time::timeout(CONNECT_TIME, asking).await;
        let answer = answer.unwrap_or_else(|_| Err("it gave no answer".to_owned()));
        answer.map_err(|why| ClientError::Unusable(format!("not paired: {why}")))
    }

    /// Connects as the node with this token.
    pub(super) async fn connect_node(&self, token: &SecretString) -> Result<Socket, Trouble> {
        match tokio::time::timeout(CONNECT_TIME, self.connect_node_at_leisure(token)).await {
            Ok(connected) => connected,
            Err(_) => Err(Trouble::Later(format!("{} gives no answer", self.label()))),
        }
    }

    async fn connect_node_at_leisure(&self, token: &SecretString) -> Result<Socket, Trouble> {
        let later = |error: Error| Trouble::Later(error.to_string());
        let mut request = self.at("node").as_str().into_client_request().map_err(later)?;
        let bearer = format!("Bearer {}", token.expose_secret());
        let mut bearer = HeaderValue::from_str(&bearer).map_err(|_| Trouble::Unknown)?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, bearer);
        let stream = self.stream().await.map_err(|why| Trouble::Later(said(why)))?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MAX_FRAME))
            .max_frame_size(Some(MAX_FRAME));
        match client_async_with_config(request, stream, Some(limits)).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(response)) => Err(refusal(&response)),
            Err(error) => Err(later(error)),
        }
    }
}

/// Why nothing answers. A certificate that is not accepted may be renewed, so a node keeps trying.
fn said(error: ConnectError) -> String {
    match error {
        ConnectError::Unreachable(why) | ConnectError::Refused(why) => why,
    }
}

/// What an answer other than a WebSocket means.
fn refusal(response: &hyper::Response<Option<Vec<u8>>>) -> Trouble {
    let body = response.body().as_deref().unwrap_or_default();
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    match (response.status().as_u16(), body["error"]["class"].as_str()) {
        (403, Some("pending")) => Trouble::Pending,
        (401 | 403, Some(_)) => Trouble::Unknown,
        (status, _) => Trouble::Later(format!("the gateway answered {status}")),
    }
}
