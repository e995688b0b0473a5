//! Devices for the command line: through the gateway that runs, else in its store.

use myclaw_agent::Home;
use myclaw_config::Config;
use myclaw_delivery::ledger::Ledger;
use myclaw_gateway_client::{AskedGateway, ask};
use serde_json::{Value, json};

use super::{Devices, Scope};
use crate::GatewayError;
use crate::offline::open_store;

/// What the owner decides about a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChange {
    /// It is let in.
    Approve,
    /// It is not let in.
    Deny,
    /// It is no longer let in, and its connections end.
    Revoke,
    /// It gets another token, and its connections end.
    Rotate,
}

impl DeviceChange {
    const ALL: [Self; 4] = [Self::Approve, Self::Deny, Self::Revoke, Self::Rotate];

    fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Revoke => "revoke",
            Self::Rotate => "rotate",
        }
    }

    /// The change with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|change| change.as_str() == name)
    }
}

/// All devices: from the running gateway, else from its store.
///
/// # Errors
/// The gateway refuses, or the store cannot be used.
pub async fn list_devices(home: &Home, config: &Config) -> Result<Value, GatewayError> {
    match ask(home, config, "GET", "/api/devices", None).await? {
        AskedGateway::Answer(list) => Ok(list),
        AskedGateway::NotRunning => Ok(stored(home).await?.listed()),
    }
}

/// Changes the device with this id or name: through the running gateway, else in its store.
///
/// # Errors
/// There is no such device, or the store cannot be used.
pub async fn change_device(
    home: &Home,
    config: &Config,
    change: DeviceChange,
    name: &str,
) -> Result<Value, GatewayError> {
    let path = format!("/api/devices/{}", change.as_str());
    match ask(home, config, "POST", &path, Some(json!({"name": name}))).await? {
        AskedGateway::Answer(changed) => Ok(changed),
        AskedGateway::NotRunning => Ok(stored(home).await?.change(change, name).await?.1),
    }
}

/// Makes a code with which one device can pair. Only a running gateway can: codes live in its memory.
///
/// # Errors
/// No gateway runs, or it refuses.
pub async fn new_device_code(
    home: &Home,
    config: &Config,
    scope: Scope,
) -> Result<Value, GatewayError> {
    match ask(home, config, "POST", "/api/devices/code", Some(json!({"scope": scope}))).await? {
        AskedGateway::Answer(code) => Ok(code),
        AskedGateway::NotRunning => Err(GatewayError::Unusable(
            "no gateway runs that a device could pair with; start one with `myclaw gateway`"
                .to_owned(),
        )),
    }
}

/// Makes a link that signs the owner in once, in one browser. Only a running gateway can: links live in its memory.
///
/// # Errors
/// No gateway runs, or it refuses.
pub async fn new_link(home: &Home, config: &Config) -> Result<Value, GatewayError> {
    match ask(home, config, "POST", "/api/devices/link", None).await? {
        AskedGateway::Answer(link) => Ok(link),
        AskedGateway::NotRunning => Err(GatewayError::Unusable(
            "no gateway runs to sign in at; start one with `myclaw gateway`".to_owned(),
        )),
    }
}

/// The devices in the store of a gateway that does not run. Its lock keeps a gateway from starting meanwhile.
async fn stored(home: &Home) -> Result<Devices, GatewayError> {
    Devices::load(Ledger::new(open_store(home).await?)).await
}
