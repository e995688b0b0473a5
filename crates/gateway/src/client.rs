//! Requests to the gateway that serves a state directory.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use myclaw_agent::Home;
use myclaw_agent::config::Config;
use myclaw_store::{SqliteStore, Store, StoreError};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::GatewayError;
use crate::gateway::{STORE_FILE, address, directory, store_path};
use crate::running::RunningFile;
use crate::tls;
use crate::token::Token;

/// Longest wait for the answer of a running gateway.
const WAIT: Duration = Duration::from_secs(5);

/// The answer of a gateway.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) value: Value,
}

/// Asks the gateway that runs for this state directory; `None` if no gateway runs.
///
/// # Errors
/// Something else answers at the address, the token is missing or wrong, or the gateway refuses the request.
pub(crate) async fn ask(
    home: &Home,
    config: Option<&Config>,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Option<Reply>, GatewayError> {
    let directory = directory(home);
    // Without the gateway, a stranger's program at its address would get its token.
    if !SqliteStore::is_open(&directory.join(STORE_FILE))? {
        return Ok(None);
    }
    let running = match (RunningFile::read(&directory)?, config) {
        (Some(running), _) => running,
        // A gateway of an earlier version writes no such file.
        (None, Some(config)) => match Token::find(config, &directory)? {
            Some(token) => RunningFile { token, ..RunningFile::new(address(home, config), None) },
            None => return Ok(None),
        },
        (None, None) => return Ok(None),
    };
    let RunningFile { address, token, .. } = &running;
    let Ok(stream) = TcpStream::connect(address).await else { return Ok(None) };
    let other = |reason: &str| {
        GatewayError::Token(format!(
            "what listens on {address} is not the gateway of this state directory ({reason}); stop it, or set \
             gateway.port to another port"
        ))
    };
    let body = body.map(ToString::to_string).unwrap_or_default();
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
    let answer = tokio::time::timeout(WAIT, asking).await;
    let (status, body) = answer.ok().flatten().ok_or_else(|| other("it gave no answer"))?;
    let value: Result<Value, _> = serde_json::from_slice(&body);
    if status.is_success() {
        let value = value.map_err(|_| other("it does not speak JSON"))?;
        return Ok(Some(Reply { value }));
    }
    let said = value.ok().and_then(|value| Some(value["error"]["message"].as_str()?.to_owned()));
    match said {
        Some(message) if status != hyper::StatusCode::UNAUTHORIZED => {
            Err(GatewayError::Unusable(message))
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

/// Looks for damage in the gateway's store; `None` if there is no store yet. Blocks, also while a gateway runs.
pub fn examine_store(home: &Home) -> Option<Result<(), GatewayError>> {
    let path = store_path(home);
    path.exists().then(|| SqliteStore::examine(&path).map_err(GatewayError::from))
}

/// Opens the store while no gateway runs.
///
/// # Errors
/// A gateway has it open after all, or it cannot be opened.
pub(crate) async fn open_store(home: &Home) -> Result<Arc<dyn Store>, GatewayError> {
    let path = store_path(home);
    let opening = tokio::task::spawn_blocking(move || SqliteStore::open(&path));
    let opened = opening.await.map_err(|error| GatewayError::Internal(error.to_string()))?;
    Ok(Arc::new(opened.map_err(|error| match error {
        StoreError::InUse { process_id, .. } => {
            GatewayError::AlreadyRuns { directory: home.paths.state_dir().to_owned(), process_id }
        }
        error => error.into(),
    })?))
}
