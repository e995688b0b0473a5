//! A WebSocket to a gateway, for front-ends: that of this user on this machine, or one elsewhere.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use myclaw_agent::Home;
use myclaw_agent::config::{ExposeSecret as _, SecretString};
use myclaw_store::SqliteStore;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::{Error, Message};
use url::{Host, Url};

use crate::client::Stream;
use crate::gateway::{STORE_FILE, directory};
use crate::running::RunningFile;
use crate::{GatewayError, tls};

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
        url: Url,
        token: SecretString,
        /// How it is recognised; none for plain HTTP.
        tls: Option<Arc<ClientConfig>>,
    },
}

/// Whether a plain connection to another machine is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainLink {
    /// Only to this machine.
    Refused,
    /// Something else encrypts the way.
    Protected,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// It may work later.
    Unreachable(String),
    /// It has to be corrected first.
    Refused(String),
}

/// A connection whose token was accepted.
pub struct GatewaySocket(WebSocketStream<Box<dyn Stream>>);

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
    ) -> Result<Self, GatewayError> {
        let refused = |why: &str| Err(GatewayError::Unusable(why.to_owned()));
        let Ok(mut url) = Url::parse(address) else {
            return refused("the address of a gateway is such as wss://claw.example.org:18789");
        };
        if url.query().is_some() || !url.username().is_empty() || url.password().is_some() {
            return refused(
                "a token does not belong into an address, which is kept in histories; use --token-file",
            );
        }
        let is_encrypted = match url.scheme() {
            "wss" | "https" => true,
            "ws" | "http" => false,
            _ => return refused("the address of a gateway begins with wss:// or ws://"),
        };
        let is_near = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => return refused("the address names no host"),
        };
        if !is_encrypted && !is_near && link == PlainLink::Refused {
            return refused(
                "ws:// would show the token to everybody in between; use wss://, or an SSH tunnel, or --protected-link if \
                 a VPN encrypts the whole way",
            );
        }
        let path = format!("{}/ws", url.path().trim_end_matches('/'));
        url.set_path(&path);
        // The scheme is one of the same kind, which can always be set.
        let _ = url.set_scheme(if is_encrypted { "wss" } else { "ws" });
        let tls = is_encrypted.then(|| tls::trusting(ca)).transpose()?;
        Ok(Self(Place::Remote { url, token, tls }))
    }

    /// How it is shown.
    pub fn label(&self) -> String {
        match &self.0 {
            Place::Own(_) => "the gateway of this machine".to_owned(),
            Place::Remote { url, .. } => url.origin().ascii_serialization(),
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
        let (url, bearer, tls) = match &self.0 {
            Place::Own(home) => {
                let running = find(home).await?;
                let tls = match running.certificates.is_empty() {
                    true => None,
                    false => Some(tls::pinned(running.certificates.clone())?),
                };
                let url = running.url().replacen("http", "ws", 1) + "/ws";
                let url = Url::parse(&url).map_err(|error| {
                    ConnectError::Refused(format!("{url} is no address: {error}"))
                })?;
                (url, running.token.header(), tls)
            }
            Place::Remote { url, token, tls } => {
                (url.clone(), format!("Bearer {}", token.expose_secret()), tls.clone())
            }
        };
        let stream = connect_to(&url, tls).await?;
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
            Ok((socket, _)) => Ok(GatewaySocket(socket)),
            Err(error) => Err(refusal(&self.label(), &error)),
        }
    }
}

/// The gateway that runs for a state directory.
async fn find(home: &Home) -> Result<RunningFile, ConnectError> {
    let directory = directory(home);
    let finding = tokio::task::spawn_blocking(move || {
        if !SqliteStore::is_open(&directory.join(STORE_FILE))? {
            return Ok(None);
        }
        RunningFile::read(&directory)
    });
    let found: Result<_, GatewayError> =
        finding.await.unwrap_or_else(|error| Err(GatewayError::Internal(error.to_string())));
    found?.ok_or_else(|| {
        let message = "no gateway runs; start one with `myclaw gateway`, or name one with --url";
        ConnectError::Unreachable(message.to_owned())
    })
}

impl From<GatewayError> for ConnectError {
    fn from(error: GatewayError) -> Self {
        Self::Refused(error.to_string())
    }
}

async fn connect_to(
    url: &Url,
    tls: Option<Arc<ClientConfig>>,
) -> Result<Box<dyn Stream>, ConnectError> {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or_default();
    let stream = TcpStream::connect((host, port)).await.map_err(|error| {
        ConnectError::Unreachable(format!("{host} port {port} cannot be reached: {error}"))
    })?;
    // Small frames leave at once.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return Ok(Box::new(stream)) };
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| ConnectError::Refused(format!("{host} is no name of a host")))?;
    match TlsConnector::from(tls).connect(name, stream).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(ConnectError::Refused(format!(
                "there is no encrypted connection to {host} port {port}: {error}; --ca FILE names a certificate to trust"
            )))
        }
        Err(error) => {
            let message = format!("the connection to {host} port {port} broke: {error}");
            Err(ConnectError::Unreachable(message))
        }
    }
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
        loop {
            let next = tokio::time::timeout(SILENCE, self.0.next()).await.ok()??;
            match next.ok()? {
                Message::Text(text) => return serde_json::from_str(&text).ok(),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// Sends a frame. False if the connection has ended.
    pub async fn send(&mut self, frame: &Value) -> bool {
        let sent = tokio::time::timeout(SEND_TIME, self.0.send(Message::text(frame.to_string())));
        matches!(sent.await, Ok(Ok(())))
    }
}
