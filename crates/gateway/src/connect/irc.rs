//! The account on a network of IRC.

use std::sync::Arc;

use myclaw_channels::{Channel, IRC, Irc, IrcOptions, Security, ServerAddress};
use myclaw_config::{DEFAULT_ACCOUNT, IrcConfig, digest};
use myclaw_delivery::channels::ChannelSetup;

use super::after_interruption;

/// The usual ports.
const TLS_PORT: u16 = 6697;
const PLAIN_PORT: u16 = 6667;

pub(super) fn set_up(config: &IrcConfig) -> ChannelSetup {
    let (security, port) = match config.tls {
        true => (Security::Tls, TLS_PORT),
        false => (Security::Plain, PLAIN_PORT),
    };
    let channels: Vec<String> = config.groups.keys().filter(|name| *name != "*").cloned().collect();
    let sasl = config.sasl.as_ref();
    // The groups are joined.
    let fingerprint = digest(config, &[]);
    let options = IrcOptions {
        account: DEFAULT_ACCOUNT.to_owned(),
        server: ServerAddress {
            host: config.host.clone(),
            port: config.port.unwrap_or(port),
            security,
        },
        nick: config.nick.clone(),
        sasl: sasl.map(|sasl| (sasl.user.clone(), sasl.password.clone())),
        server_password: config.server_password.clone(),
        channels,
        after_interruption: after_interruption(config.uncertain),
    };
    let made = Ok(Arc::new(Irc::new(options)) as Arc<dyn Channel>);
    ChannelSetup { channel: IRC, account: DEFAULT_ACCOUNT.to_owned(), made, fingerprint }
}
