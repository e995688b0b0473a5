//! A WebSocket to a gateway, for front-ends: that of this user on this machine, or one elsewhere.

use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use myclaw_agent::Home;
use myclaw_config::{ExposeSecret as _, SecretString};
use myclaw_store::SqliteStore;
use serde_json::Value;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::client::Stream;
use crate::remote::RemoteGateway;
use crate::{
    ClientError, ConnectError, GatewayToken, PlainLink, RunningFile, gateway_directory, store_path,
};

/// Longest time to connect, TLS and the WebSocket's handshake included.
const CONNECT_TIME: Duration = Duration::from_secs(15);
/// Time without any frame after which a gateway counts as gone. It sends a ping every 30 seconds.
const SILENCE: Duration = Duration::from_secs(90);
/// Longest time for a frame to leave.
const SEND_TIME: Duration = Duration::from_secs(30);

/// Where a gateway is, and what it wants to see.
pub struct GatewayAddress(Place);

enum Place {
    /// The one that runs for a state directory, which may be another process each time.
    Own(Box<Home>),
    Remote {
        gateway: RemoteGateway,
        token: SecretString,
    },
}

/// A connection whose token was accepted.
pub struct GatewaySocket {
    stream: WebSocketStream<Box<dyn Stream>>,
    /// When the gateway last gave a sign.
    heard: Instant,
}

/// An id for a request or a message, which nobody else uses.
pub fn request_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

impl GatewayAddress {
    /// The gateway of a state directory.
    pub fn own(home: &Home) -> Self {
        Self(Place::Own(Box::new(home.clone())))
    }

    /// A gateway elsewhere. `ca` is a PEM file with its certificate, or with the authority that signed it; without one
    /// those of the system count.
    ///
    /// # Errors
    /// The address cannot be used, would show the token to others, or the file cannot be read.
    pub fn remote(
        address: &str,
        token: SecretString,
        ca: Option<&Path>,
        link: PlainLink,
    ) -> Result<Self, ClientError> {
        let gateway = RemoteGateway::new(address, ca, link)?;
        Ok(Self(Place::Remote { gateway, token }))
    }

    /// A gateway by the hashes of its certificates; without any it speaks plain HTTP.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn pinned(
        address: &str,
        certificates: Vec<String>,
        token: &GatewayToken,
    ) -> Result<Self, ClientError> {
        let gateway = RemoteGateway::pinned(address, certificates)?;
        Ok(Self(Place::Remote { gateway, token: token.secret() }))
    }

    /// How it is shown.
    pub fn label(&self) -> String {
        match &self.0 {
            Place::Own(_) => "the gateway of this machine".to_owned(),
            Place::Remote { gateway, .. } => gateway.label(),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// Nothing answers there, or not as a gateway that lets this client in.
    pub async fn connect(&self) -> Result<GatewaySocket, ConnectError> {
        match tokio::time::timeout(CONNECT_TIME, self.connect_at_leisure()).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::Unreachable(format!("{} gives no answer", self.label()))),
        }
    }

    async fn connect_at_leisure(&self) -> Result<GatewaySocket, ConnectError> {
        let own;
        let (gateway, bearer) = match &self.0 {
            Place::Own(home) => {
                let running = find(home).await?;
                own = RemoteGateway::pinned(&running.url(), running.certificates.clone())?;
                (&own, running.token.header())
            }
            Place::Remote { gateway, token } => {
                (gateway, format!("Bearer {}", token.expose_secret()))
            }
        };
        let (url, stream) = (gateway.at("ws"), gateway.stream().await?);
        let mut request = url
            .as_str()
            .into_client_request()
            .map_err(|error| ConnectError::Refused(format!("{url} cannot be asked: {error}")))?;
        let mut bearer = HeaderValue::from_str(&bearer).map_err(|_| {
            ConnectError::Refused("the token holds characters that no token has".to_owned())
        })?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, bearer);
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((stream, _)) => Ok(GatewaySocket { stream, heard: Instant::now() }),
            Err(error) => Err(refusal(&self.label(), &error)),
        }
    }
}

/// The gateway that runs for a state directory.
async fn find(home: &Home) -> Result<RunningFile, ConnectError> {
    let (directory, store) = (gateway_directory(home), store_path(home));
    let finding = tokio::task::spawn_blocking(move || {
        if !SqliteStore::is_open(&store)? {
            return Ok(None);
        }
        RunningFile::read(&directory)
    });
    let found: Result<_, ClientError> =
        finding.await.unwrap_or_else(|error| Err(ClientError::Internal(error.to_string())));
    found?.ok_or_else(|| {
        let message = "no gateway runs; start one with `myclaw gateway`, or name one with --url";
        ConnectError::Unreachable(message.to_owned())
    })
}

/// What an answer other than a WebSocket means.
fn refusal(label: &str, error: &Error) -> ConnectError {
    let Error::Http(response) = error else {
        return ConnectError::Unreachable(format!("{label} does not answer as a gateway: {error}"));
    };
    let body = response.body().as_deref().unwrap_or_default();
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = body["error"]["message"]
        .as_str()
        .unwrap_or("it is no gateway, or one behind a proxy that fails");
    let status = response.status().as_u16();
    match status {
        401 => ConnectError::Refused(format!(
            "{label} does not accept the token; it is in the file that `myclaw gateway status` names on its machine"
        )),
        429 | 500..=599 => ConnectError::Unreachable(format!("{label} answers {status}: {said}")),
        _ => ConnectError::Refused(format!("{label} answers {status}: {said}")),
    }
}

impl GatewaySocket {
    /// The next frame; `None` when the connection has ended. Nothing is lost if the future is dropped.
    pub async fn receive(&mut self) -> Option<Value> {
        serde_json::from_str(&self.receive_text().await?).ok()
    }

    /// The same as text.
    pub async fn receive_text(&mut self) -> Option<Utf8Bytes> {
        loop {
            let silence = tokio::time::timeout_at(self.heard + SILENCE, self.stream.next());
            let next = silence.await.ok()??;
            self.heard = Instant::now();
            match next.ok()? {
                Message::Text(text) => return Some(text),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// Sends a frame. False if the connection has ended.
    pub async fn send(&mut self, frame: &Value) -> bool {
        let sent = self.stream.send(Message::text(frame.to_string()));
        matches!(tokio::time::timeout(SEND_TIME, sent).await, Ok(Ok(())))
    }
}
