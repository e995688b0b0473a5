//! The checks of `myclaw doctor` for the gateway: whether its store is sound, whether clients will accept its certificate, and
//! what heartbeats cost.

use myclaw_agent::Home;
use myclaw_config::Config;
use myclaw_delivery::schedule::describe_heartbeats;
use myclaw_gateway::{CertificateReport, examine_certificate, examine_store};

use super::Check;

const NAME: &str = "gateway";
/// Days before the end of a certificate from which on its owner is reminded. Those of Let's Encrypt are renewed 30 days
/// before, so something is wrong by then.
const SOON_DAYS: i64 = 14;

/// What heartbeats do, where they call a model.
pub(super) fn check_heartbeats(config: &Config) -> Vec<Check> {
    let planned = describe_heartbeats(config).into_iter();
    planned.map(|heartbeat| Check::ok("heartbeat", heartbeat.line)).collect()
}

/// The checks of the store and of the certificate, if there are any. Runs need neither, so a problem is only a warning.
pub(super) fn check(config: &Config, home: &Home) -> Vec<Check> {
    check_store(home).into_iter().chain(check_certificate(config, home)).collect()
}

fn check_store(home: &Home) -> Option<Check> {
    Some(match examine_store(home)? {
        Ok(()) => Check::ok(NAME, "the store is sound"),
        Err(error) => {
            let next = "until then the gateway does not start, and messages that it stores may be lost; `myclaw gateway` makes \
                        a new store where there is none";
            Check::warn(NAME, error.to_string(), next)
        }
    })
}

fn check_certificate(config: &Config, home: &Home) -> Vec<Check> {
    let CertificateReport { until, days_left, open_key } = match examine_certificate(home, config) {
        Ok(Some(report)) => report,
        Ok(None) => return Vec::new(),
        Err(error) => {
            let next = "correct it; until then the gateway does not start";
            return vec![Check::warn(NAME, error.to_string(), next)];
        }
    };
    let found = format!("the certificate is valid until {until}");
    let mut checks = vec![match days_left > SOON_DAYS {
        true => Check::ok(NAME, found),
        false => {
            Check::warn(NAME, found, "renew it; the gateway takes over the new file by itself")
        }
    }];
    if let Some(key) = open_key {
        let key = key.display();
        let found = format!("other users of this machine can read the private key {key}");
        checks.push(Check::warn(NAME, found, format!("chmod 600 {key}")));
    }
    checks
}
