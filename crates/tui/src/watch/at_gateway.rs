//! Whether the gateway of this machine has a session, so that one can attach to it.

use std::time::Duration;

use myclaw_agent::Home;
use myclaw_gateway_client::GatewayAddress;
use serde_json::json;

/// Longest wait for the gateway.
const TIME: Duration = Duration::from_secs(3);
/// The id of the request.
const ID: &str = "watch";

/// Says why if one cannot attach to the session.
pub(super) async fn has_it(home: &Home, session: &str) -> Result<(), String> {
    let elsewhere = "the session is in another program of this machine: y, n, Enter and s work, and nobody can attach to it";
    let asking = async {
        let mut socket = GatewayAddress::own(home).connect().await.ok()?;
        let params = json!({"session": session});
        let request = json!({"type": "request", "id": ID, "method": "watch", "params": params});
        if !socket.send(&request).await {
            return None;
        }
        loop {
            let frame = socket.receive().await?;
            if frame["type"] == "response" && frame["id"] == ID {
                return Some(frame["result"]["busy"] == true);
            }
        }
    };
    match tokio::time::timeout(TIME, asking).await {
        Ok(Some(true)) => Ok(()),
        Ok(Some(false) | None) => Err(elsewhere.to_owned()),
        Err(_) => Err("the gateway does not answer; try again".to_owned()),
    }
}
