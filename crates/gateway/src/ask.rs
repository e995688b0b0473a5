//! Requests of the command line to a running gateway.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use myclaw_agent::Home;
use myclaw_agent::config::Config;
use myclaw_store::SqliteStore;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::GatewayError;
use crate::gateway::{address, directory, store_path};
use crate::token::Token;

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
) -> Result<AskedGateway, GatewayError> {
    let (address, directory) = (address(home, config), directory(home));
    // Without the gateway, whoever listens at its address would be given its token.
    if !SqliteStore::is_open(&store_path(home))? {
        return Ok(AskedGateway::NotRunning);
    }
    let Ok(stream) = TcpStream::connect(address).await else { return Ok(AskedGateway::NotRunning) };
    let Some(token) = Token::find(config, &directory)? else {
        let what = format!(
            "something listens on {address}, but this state directory has no gateway token"
        );
        return Err(GatewayError::Token(format!("{what}; set gateway.port to another port")));
    };
    let other = |reason: &str| {
        GatewayError::Token(format!(
            "what listens on {address} is not the gateway of this state directory ({reason}); stop it, or set \
             gateway.port to another port"
        ))
    };
    let asking = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        let request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header("Host", address.to_string())
            .header("Authorization", token.header())
            .header("Content-Type", "application/json")
            .body(Full::<Bytes>::from(body.map(|body| body.to_string()).unwrap_or_default()));
        let response = sender.send_request(request.ok()?).await.ok()?;
        let status = response.status();
        let body = response.into_body().collect().await.ok()?.to_bytes();
        Some((status, body))
    };
    let answer = tokio::time::timeout(WAIT, asking).await;
    let (status, body) = answer.ok().flatten().ok_or_else(|| other("it gave no answer"))?;
    let body: Value = serde_json::from_slice(&body).map_err(|_| other("it does not speak JSON"))?;
    match (status.is_success(), body["error"]["message"].as_str()) {
        (true, _) => Ok(AskedGateway::Answer(body)),
        (false, Some(message)) if status.as_u16() != 401 => {
            Err(GatewayError::Unusable(message.to_owned()))
        }
        _ => Err(other(&format!("it answered {status}"))),
    }
}
