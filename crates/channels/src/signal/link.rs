//! A phone's account for this machine: signal-cli becomes a further device of it.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::api::{Api, ApiError, CALL_TIME};

/// How long a person has to scan the code. Signal's servers end the request earlier.
const SCAN_TIME: Duration = Duration::from_secs(300);
/// JSON-RPC: a daemon for one account has no such method.
const NO_SUCH_METHOD: i64 = -32_601;
/// What a phone takes, of newer versions of signal-cli and of older ones.
const ADDRESSES: [&str; 2] = ["sgnl://linkdevice?", "tsdevice:/?"];

/// Begins to link signal-cli's daemon at `base_url` to an account. Gives the address that the phone scans as a QR code. It is
/// valid for a short time.
///
/// # Errors
/// The daemon cannot do that; the text says why.
pub async fn begin_signal_link(base_url: &str) -> Result<String, String> {
    let answer = ask(base_url, "startLink", Map::new(), CALL_TIME).await?;
    let address = answer["deviceLinkUri"].as_str().unwrap_or_default();
    match ADDRESSES.iter().any(|begin| address.starts_with(begin)) {
        true => Ok(address.to_owned()),
        false => Err("signal-cli gave no address to scan; a newer version may".to_owned()),
    }
}

/// Waits until the phone has scanned `address`. Gives the number of the account, or its id if it has no number. `name` is what
/// the phone calls this device.
///
/// # Errors
/// It was not scanned in time, or the daemon has the account already; the text says so.
pub async fn finish_signal_link(
    base_url: &str,
    address: &str,
    name: &str,
) -> Result<String, String> {
    let params = Map::from_iter([
        ("deviceLinkUri".to_owned(), json!(address)),
        ("deviceName".to_owned(), json!(name)),
    ]);
    let answer = ask(base_url, "finishLink", params, SCAN_TIME).await?;
    let account = answer["number"].as_str().or_else(|| answer["aci"].as_str());
    account
        .map(str::to_owned)
        .ok_or_else(|| "signal-cli does not say which account it is".to_owned())
}

async fn ask(
    base_url: &str,
    method: &str,
    params: Map<String, Value>,
    limit: Duration,
) -> Result<Value, String> {
    let api = Api::new(base_url, "", 0)?;
    api.ask(method, params, limit).await.map_err(|error| match error {
        ApiError::Refused(refused) if refused.code == NO_SUCH_METHOD => {
            "signal-cli runs for one account and cannot link another; start its daemon without `-a`"
                .to_owned()
        }
        error => format!("{error}; check `signal-cli daemon --http` and baseUrl"),
    })
}
