//! Pairings for the command line: through the gateway that runs, else in its store.

use myclaw_agent::Home;
use myclaw_config::Config;
use myclaw_delivery::ledger::Ledger;
use myclaw_delivery::routing::{PairingChange, Pairings};
use myclaw_gateway_client::{AskedGateway, ask};
use serde_json::{Value, json};

use crate::GatewayError;
use crate::offline::open_store;

/// All pairings: from the running gateway, else from its store.
///
/// # Errors
/// The gateway refuses, or the store cannot be used.
pub async fn list_pairings(home: &Home, config: &Config) -> Result<Value, GatewayError> {
    match ask(home, config, "GET", "/api/pairing", None).await? {
        AskedGateway::Answer(list) => Ok(list),
        AskedGateway::NotRunning => Ok(stored(home).await?.list()),
    }
}

/// Changes a pairing: through the running gateway, else in its store.
///
/// # Errors
/// There is no such code or person, or the store cannot be used.
pub async fn change_pairing(
    home: &Home,
    config: &Config,
    change: PairingChange,
    name: &str,
) -> Result<Value, GatewayError> {
    let path = format!("/api/pairing/{}", change.as_str());
    match ask(home, config, "POST", &path, Some(json!({"name": name}))).await? {
        AskedGateway::Answer(changed) => Ok(changed),
        AskedGateway::NotRunning => {
            let changed = stored(home).await?.change(change, name).await?;
            Ok(json!({"sender": changed.sender_key(), "name": changed.name}))
        }
    }
}

/// The pairings in the store of a gateway that does not run. Its lock keeps a gateway from starting meanwhile.
async fn stored(home: &Home) -> Result<Pairings, GatewayError> {
    Ok(Pairings::load(Ledger::new(open_store(home).await?)).await?)
}
