//! Requests of the command line to a running gateway.

use myclaw_agent::Home;
use myclaw_agent::config::Config;
use serde_json::Value;

use crate::GatewayError;
use crate::client;

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
    let answer = client::ask(home, Some(config), method, path, body.as_ref()).await?;
    Ok(answer.map_or(AskedGateway::NotRunning, |reply| AskedGateway::Answer(reply.value)))
}
