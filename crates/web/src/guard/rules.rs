//! What the owner permits beyond public addresses.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::Host;

use super::AddressKind;

/// What the owner permits beyond public addresses. The default permits nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRules {
    /// Whether this machine and its networks may be connected to.
    pub private_networks: PrivateNetworks,
    /// Hosts that may be connected to wherever they are.
    pub allowed_hosts: Vec<AllowedHost>,
    /// The setting that names such hosts, for messages.
    pub setting: &'static str,
}

impl Default for AddressRules {
    fn default() -> Self {
        Self {
            private_networks: PrivateNetworks::default(),
            allowed_hosts: Vec::new(),
            setting: "tools.web.fetch.allowHosts of the config",
        }
    }
}

/// Whether this machine and its networks may be connected to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PrivateNetworks {
    /// No.
    #[default]
    Refused,
    /// Yes: loopback, private and shared networks. The local link is not among them, because clouds have their
    /// metadata services there.
    Allowed,
}

/// A host that the owner permits: `wiki.example`, `*.corp.example`, `192.168.1.5`, `10.1.0.0/16`, `[::1]`, each also
/// with a port, such as `localhost:8080`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    host: HostPattern,
    /// `None` for every port of a web server.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    /// A name without the dot at its end.
    Name(String),
    /// What a name must end with, with the dot before it.
    Below(String),
    Network(IpNet),
}

/// An entry that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a host; write a name (wiki.example), names (*.corp.example), an address (192.168.1.5) or a network \
     (10.1.0.0/16), without http://, and with a port if only that is meant (localhost:8080)"
)]
pub struct InvalidHost(String);

impl AddressRules {
    /// Whether addresses of this kind may be connected to.
    pub(super) fn permits(&self, kind: AddressKind) -> bool {
        match kind {
            AddressKind::Public => true,
            AddressKind::Loopback | AddressKind::Private | AddressKind::Shared => {
                self.private_networks == PrivateNetworks::Allowed
            }
            AddressKind::LinkLocal
            | AddressKind::Metadata
            | AddressKind::Multicast
            | AddressKind::Unspecified
            | AddressKind::Reserved => false,
        }
    }

    /// Whether an entry names this host or its address.
    pub(super) fn lists(&self, host: &Host<&str>, address: Option<IpAddr>, port: u16) -> bool {
        self.allowed_hosts
            .iter()
            .any(|entry| entry.port.is_none_or(|own| own == port) && entry.names(host, address))
    }

    /// Whether an entry names this host together with this port.
    pub(super) fn lists_port(&self, host: &Host<&str>, address: Option<IpAddr>, port: u16) -> bool {
        self.allowed_hosts
            .iter()
            .any(|entry| entry.port == Some(port) && entry.names(host, address))
    }
}

impl AllowedHost {
    /// Whether this entry names the host as it is written, without a lookup.
    pub fn covers(&self, host: &Host<&str>, port: u16) -> bool {
        let address = match host {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(IpAddr::V4(*address)),
            Host::Ipv6(address) => Some(IpAddr::V6(*address)),
        };
        self.port.is_none_or(|own| own == port) && self.names(host, address)
    }

    fn names(&self, host: &Host<&str>, address: Option<IpAddr>) -> bool {
        match (&self.host, host) {
            (HostPattern::Network(network), _) => {
                address.is_some_and(|address| network.contains(&address.to_canonical()))
            }
            (HostPattern::Name(own), Host::Domain(name)) => *own == plain_name(name),
            (HostPattern::Below(end), Host::Domain(name)) => plain_name(name).ends_with(end),
            (HostPattern::Name(_) | HostPattern::Below(_), _) => false,
        }
    }
}

impl FromStr for AllowedHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let invalid = || InvalidHost(text.to_owned());
        let (host, port) = split_port(text.trim()).ok_or_else(invalid)?;
        let host = parse_pattern(host).ok_or_else(invalid)?;
        Ok(Self { host, port })
    }
}

/// The host and the port of an entry; `None` if the text after the colon is not a port. IPv6 addresses have colons of
/// their own, so a port needs brackets around them.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    if text.parse::<IpNet>().is_ok() || text.parse::<IpAddr>().is_ok() {
        return Some((text, None));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            Some((host, Some(port.parse().ok().filter(|port| *port > 0)?)))
        }
        _ => Some((text, None)),
    }
}

fn parse_pattern(text: &str) -> Option<HostPattern> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(network) = bare.parse::<IpNet>() {
        return Some(HostPattern::Network(network));
    }
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(HostPattern::Network(IpNet::from(address.to_canonical())));
    }
    let (is_below, name) = match text.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, text),
    };
    if name.contains('*') {
        return None;
    }
    // The host as a URL would have it: lower case, punycode.
    match Host::parse(name).ok()? {
        Host::Domain(name) if is_below => {
            Some(HostPattern::Below(format!(".{}", plain_name(&name))))
        }
        Host::Domain(name) => Some(HostPattern::Name(plain_name(&name))),
        Host::Ipv4(address) if !is_below => {
            Some(HostPattern::Network(IpNet::from(IpAddr::V4(address))))
        }
        _ => None,
    }
}

/// A name in lower case without the dot that may end it.
fn plain_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}
