//! The checks of `myclaw doctor` for channels: whether each can be used, and whether its vendor knows the account.

use std::time::Duration;

use myclaw_agent::Home;
use myclaw_config::Config;
use myclaw_delivery::channels::ChannelSetup;
use myclaw_gateway::channels_of;

use super::Check;

const NAME: &str = "channels";
/// Longest wait for a vendor.
const PATIENCE: Duration = Duration::from_secs(15);

/// One check for each channel of the config. Runs do not need channels, so a problem is only a warning.
pub(super) async fn check(config: &Config, home: &Home) -> Vec<Check> {
    let mut checks = Vec::new();
    for ChannelSetup { channel, account, made, .. } in channels_of(home, config) {
        let found = match made {
            Ok(made) => match tokio::time::timeout(PATIENCE, made.probe()).await {
                Ok(probed) => probed.map_err(|failure| failure.to_string()),
                Err(_) => Err(format!("no answer within {} seconds", PATIENCE.as_secs())),
            },
            Err(reason) => Err(reason),
        };
        checks.push(match found {
            Ok(found) => Check::ok(NAME, format!("{channel} {account}: {found}")),
            Err(reason) => {
                let next = format!("correct it, then try `myclaw channels probe {channel}`");
                Check::warn(NAME, format!("{channel} {account}: {reason}"), next)
            }
        });
    }
    checks
}
