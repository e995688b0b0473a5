//! Requests to the gateway that serves a state directory.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use myclaw_agent::Home;
use myclaw_config::Config;
use myclaw_store::SqliteStore;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{
    ClientError, GatewayToken, RunningFile, gateway_address, gateway_directory, store_path, tls,
};

/// Longest wait for the answer of a running gateway.
const WAIT: Duration = Duration::from_secs(5);

/// What came of a request.
#[derive(Debug)]
pub enum AskedGateway {
    /// No gateway serves this state directory.
    NotRunning,
    /// Its answer.
    Answer(Value),
}

impl AskedGateway {
    /// The answer of a gateway that runs.
    pub fn answer(self) -> Option<Value> {
        match self {
            Self::NotRunning => None,
            Self::Answer(value) => Some(value),
        }
    }
}

/// What a running gateway says about itself; `None` if there is none.
///
/// # Errors
/// Something else answers at the address.
pub async fn state_of(home: &Home) -> Result<Option<Value>, ClientError> {
    let asked = ask_within(home, None, ("GET", "/api/status"), None, WAIT).await;
    asked.map(AskedGateway::answer)
}

/// Sends a request to the gateway of this state directory, if one runs.
///
/// # Errors
/// The gateway refuses it, something else answers at the address, or the token is missing or wrong.
pub async fn ask(
    home: &Home,
    config: &Config,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> Result<AskedGateway, ClientError> {
    ask_within(home, Some(config), (method, path), body, WAIT).await
}

/// Whether a gateway serves this state directory, by its files: nothing is connected. Blocks for a moment.
pub fn gateway_runs(home: &Home) -> bool {
    let is_named = matches!(RunningFile::read(&gateway_directory(home)), Ok(Some(_)));
    is_named && matches!(SqliteStore::is_open(&store_path(home)), Ok(true))
}

/// Like [`ask`], with another wait for the answer. Without a config, only a gateway that has written down its address is found.
pub(crate) async fn ask_within(
    home: &Home,
    config: Option<&Config>,
    (method, path): (&str, &str),
    body: Option<Value>,
    wait: Duration,
) -> Result<AskedGateway, ClientError> {
    let directory = gateway_directory(home);
    // Without the gateway, a stranger's program at its address would get its token.
    if !SqliteStore::is_open(&store_path(home))? {
        return Ok(AskedGateway::NotRunning);
    }
    let running = match (RunningFile::read(&directory)?, config) {
        (Some(running), _) => running,
        // A gateway of an earlier version writes no such file.
        (None, Some(config)) => match GatewayToken::find(config, &directory)? {
            Some(token) => {
                RunningFile { token, ..RunningFile::new(gateway_address(home, config), None) }
            }
            None => return Ok(AskedGateway::NotRunning),
        },
        (None, None) => return Ok(AskedGateway::NotRunning),
    };
    let RunningFile { address, token, .. } = &running;
    let Ok(stream) = TcpStream::connect(address).await else { return Ok(AskedGateway::NotRunning) };
    let other = |reason: &str| {
        ClientError::Token(format!(
            "what listens on {address} is not the gateway of this state directory ({reason}); stop it, or set \
             gateway.port to another port"
        ))
    };
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    let asking = async {
        let stream = encrypted(stream, &running).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        let request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header("Host", address.to_string())
            .header("Content-Type", "application/json")
            .header("Authorization", token.header())
            .body(Full::new(Bytes::from(body)));
        let response = sender.send_request(request.ok()?).await.ok()?;
        let status = response.status();
        let body = response.into_body().collect().await.ok()?.to_bytes();
        Some((status, body))
    };
    let answer = tokio::time::timeout(wait, asking).await;
    let (status, body) = answer.ok().flatten().ok_or_else(|| other("it gave no answer"))?;
    let value: Result<Value, _> = serde_json::from_slice(&body);
    if status.is_success() {
        let value = value.map_err(|_| other("it does not speak JSON"))?;
        return Ok(AskedGateway::Answer(value));
    }
    let said = value.ok().and_then(|value| Some(value["error"]["message"].as_str()?.to_owned()));
    match said {
        Some(message) if status != hyper::StatusCode::UNAUTHORIZED => {
            Err(ClientError::Unusable(message))
        }
        _ => Err(other(&format!("it answered {status}"))),
    }
}

/// A connection to the gateway, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Makes a connection what the running gateway expects; `None` if it is another one.
async fn encrypted(stream: TcpStream, running: &RunningFile) -> Option<Box<dyn Stream>> {
    if running.certificates.is_empty() {
        return Some(Box::new(stream));
    }
    let connector = TlsConnector::from(tls::pinned(running.certificates.clone()).ok()?);
    let stream = connector.connect(running.address.ip().into(), stream).await.ok()?;
    Some(Box::new(stream))
}
