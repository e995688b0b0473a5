//! The account of XMPP.

use std::sync::Arc;

use myclaw_agent::FileDownloads;
use myclaw_channels::{
    AcceptsContact, Channel, FetchFile, Security, ServerAddress, XMPP, Xmpp, XmppOptions,
};
use myclaw_config::{Config, ConnectionSecurity, DEFAULT_ACCOUNT, DmPolicy, XmppConfig, digest};
use myclaw_delivery::channels::ChannelSetup;

use super::MEGABYTE;

/// The usual ports.
const TLS_PORT: u16 = 5223;
const OTHER_PORT: u16 = 5222;

pub(super) fn set_up(config: &Config, xmpp: &XmppConfig) -> ChannelSetup {
    let (security, port) = match xmpp.security {
        ConnectionSecurity::Tls => (Security::Tls, TLS_PORT),
        ConnectionSecurity::StartTls => (Security::StartTls, OTHER_PORT),
        ConnectionSecurity::None => (Security::Plain, OTHER_PORT),
    };
    let (local, domain) = xmpp.address.split_once('@').unwrap_or((&xmpp.address, ""));
    let server = ServerAddress {
        host: xmpp.host.clone().unwrap_or_else(|| domain.to_owned()),
        port: xmpp.port.unwrap_or(port),
        security,
    };
    let nick = xmpp.nick.clone().unwrap_or_else(|| local.to_owned());
    let rooms: Vec<String> = xmpp.groups.keys().filter(|name| *name != "*").cloned().collect();
    let fetch = &config.tools.web.fetch;
    // Its rules say which rooms are joined and who becomes a contact, and those of the web tools what is downloaded.
    let fingerprint = digest(&(xmpp, fetch), &[]);
    let made = FileDownloads::of(config).map(|downloads| {
        Arc::new(Xmpp::new(XmppOptions {
            account: DEFAULT_ACCOUNT.to_owned(),
            address: xmpp.address.clone(),
            password: xmpp.password.clone(),
            server,
            nick,
            rooms,
            most_file_bytes: xmpp.media_max_mb * MEGABYTE,
            fetch: fetching(downloads),
            accepts_contact: accepts_contact(xmpp),
        })) as Arc<dyn Channel>
    });
    ChannelSetup { channel: XMPP, account: DEFAULT_ACCOUNT.to_owned(), made, fingerprint }
}

/// Files of people lie on any server, so their addresses are checked as those of web tools are.
fn fetching(downloads: FileDownloads) -> FetchFile {
    let downloads = Arc::new(downloads);
    Arc::new(move |address, most| {
        let downloads = Arc::clone(&downloads);
        Box::pin(async move { downloads.get(&address, most).await.map(|(_, bytes)| bytes) })
    })
}

/// A person who may write, or ask to, may become a contact: some servers let nobody else write.
fn accepts_contact(config: &XmppConfig) -> AcceptsContact {
    let (policy, people) = (config.dm_policy, config.allow_from.clone());
    Arc::new(move |address| match policy {
        DmPolicy::Disabled => false,
        DmPolicy::Allowlist => people.iter().any(|id| id.is(address, None)),
        DmPolicy::Open | DmPolicy::Pairing => true,
    })
}
