//! Decides which addresses a web tool may connect to.
//!
//! A check of the URL alone is not enough: a name can lead to any address, and to another one a moment later. So
//! [`AddressGuard::addresses`] resolves the name, checks every address, and returns those that were checked; its caller
//! connects to them and to nothing else. Each redirect starts again with [`AddressGuard::check_url`].

mod address;
mod lookup;
mod rules;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use url::{Host, Url};

pub use address::{AddressKind, address_kind};
pub use lookup::{Lookup, SystemLookup};
pub use rules::{AddressRules, AllowedHost, InvalidHost, PrivateNetworks};

/// Longest URL. Browsers and servers refuse longer ones as well.
const MAX_URL_BYTES: usize = 8 * 1024;
/// Longest part of a URL that a message quotes.
const MAX_QUOTED_CHARS: usize = 200;
/// Longest wait for a name server: above the 5 s after which a resolver asks its second server.
const LOOKUP_LIMIT: Duration = Duration::from_secs(10);

/// Ports of services that do not speak HTTP: the list of "bad ports" in the Fetch standard, which browsers refuse. A
/// request to a mail server could otherwise carry commands in its path.
const NON_HTTP_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Checks URLs and addresses before a connection is made.
#[derive(Clone)]
pub struct AddressGuard {
    rules: Arc<AddressRules>,
    lookup: Arc<dyn Lookup>,
}

impl fmt::Debug for AddressGuard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AddressGuard").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Why a connection is not made. The text is for the model and the owner: what is wrong and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The text is no URL that can be used.
    #[error("{url:?} cannot be used: {why}. Give a full address such as https://example.com/page")]
    Unusable {
        /// The beginning of the text, without a password.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The port belongs to a service that does not speak HTTP.
    #[error(
        "port {port} of {host} is not for web pages; use the address of a web server. The owner can \
         permit it with \"{host}:{port}\" in {setting}"
    )]
    Port {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// The setting that can permit it.
        setting: &'static str,
    },
    /// The address is not on the public internet.
    #[error(
        "{host} is {kind} ({address}), which web tools do not connect to; use a public address. The \
         owner can permit it with \"{host}\" in {setting}"
    )]
    NotPublic {
        /// The host as the URL names it.
        host: String,
        /// The address it leads to.
        address: IpAddr,
        /// What kind of address that is.
        kind: AddressKind,
        /// The setting that can permit it.
        setting: &'static str,
    },
    /// The name has no address.
    #[error("the host {host} cannot be found ({why}): check the spelling and the network")]
    NotFound {
        /// The host.
        host: String,
        /// What the lookup said.
        why: String,
    },
}

impl AddressGuard {
    /// A guard that resolves names as this machine does.
    pub fn new(rules: AddressRules) -> Self {
        Self::with_lookup(rules, Arc::new(SystemLookup))
    }

    /// A guard that resolves names with `lookup`.
    pub fn with_lookup(rules: AddressRules, lookup: Arc<dyn Lookup>) -> Self {
        Self { rules: Arc::new(rules), lookup }
    }

    /// Parses a URL and checks all that can be checked without a lookup: the scheme, the port, and a host that is
    /// written as an address.
    ///
    /// # Errors
    /// The URL is not valid, has a scheme other than http and https, or must not be connected to.
    pub fn check_url(&self, text: &str) -> Result<Url, Refusal> {
        let text = text.trim();
        let unusable = |why: &str| Refusal::Unusable { url: quoted(text), why: why.to_owned() };
        if text.len() > MAX_URL_BYTES {
            return Err(unusable(&format!("it is longer than {MAX_URL_BYTES} bytes")));
        }
        let url = Url::parse(text).map_err(|error| unusable(&error.to_string()))?;
        self.check_parsed(&url)?;
        Ok(url)
    }

    /// As [`AddressGuard::check_url`], for a URL that is already parsed.
    ///
    /// # Errors
    /// As [`AddressGuard::check_url`].
    pub fn check_parsed(&self, url: &Url) -> Result<(), Refusal> {
        let unusable = |why: String| Refusal::Unusable { url: quoted(url.as_str()), why };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unusable(format!(
                "its scheme is {:?}, and only http and https are permitted",
                url.scheme()
            )));
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(unusable("it names no host".to_owned()));
        };
        match self.literal(&host, port)? {
            Some(_) => Ok(()),
            None => self.check_port(&host, None, port),
        }
    }

    /// The addresses of `host`, all of them checked. Connect to these and do not resolve the name again.
    ///
    /// # Errors
    /// The host cannot be found, or one of its addresses must not be connected to: a name with public and private
    /// addresses is refused as a whole, because nobody knows which one a connection would use.
    pub async fn addresses(
        &self,
        host: &Host<&str>,
        port: u16,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        if let Some(address) = self.literal(host, port)? {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let name = host.to_string();
        let not_found = |why: String| Refusal::NotFound { host: name.clone(), why };
        let found = tokio::time::timeout(LOOKUP_LIMIT, self.lookup.lookup(&name))
            .await
            .map_err(|_| not_found(format!("no answer within {} s", LOOKUP_LIMIT.as_secs())))?
            .map_err(|error| not_found(error.to_string()))?;
        if found.is_empty() {
            return Err(not_found("it has no address".to_owned()));
        }
        for address in &found {
            self.check_address(host, *address, port)?;
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }

    /// The checked address of a host that is written as one; `None` for a name.
    fn literal(&self, host: &Host<&str>, port: u16) -> Result<Option<IpAddr>, Refusal> {
        let address = match host {
            Host::Ipv4(address) => IpAddr::V4(*address),
            Host::Ipv6(address) => IpAddr::V6(*address),
            Host::Domain(name) => match name.trim_matches(['[', ']']).parse() {
                Ok(address) => address,
                Err(_) => return Ok(None),
            },
        };
        self.check_address(host, address, port)?;
        Ok(Some(address))
    }

    fn check_address(&self, host: &Host<&str>, address: IpAddr, port: u16) -> Result<(), Refusal> {
        self.check_port(host, Some(address), port)?;
        let kind = address_kind(address);
        if self.rules.permits(kind) || self.rules.lists(host, Some(address), port) {
            return Ok(());
        }
        Err(Refusal::NotPublic {
            host: host.to_string(),
            address,
            kind,
            setting: self.rules.setting,
        })
    }

    fn check_port(
        &self,
        host: &Host<&str>,
        address: Option<IpAddr>,
        port: u16,
    ) -> Result<(), Refusal> {
        if !NON_HTTP_PORTS.contains(&port) || self.rules.lists_port(host, address, port) {
            return Ok(());
        }
        Err(Refusal::Port { host: host.to_string(), port, setting: self.rules.setting })
    }
}

/// The beginning of a text that may be a URL, without what could be a user name and password.
fn quoted(url: &str) -> String {
    let authority = url.find("://").map_or(0, |scheme| scheme + 3);
    let end = url[authority..].find(['/', '?', '#']).map_or(url.len(), |end| authority + end);
    let host = url[authority..end].rfind('@').map_or(authority, |at| authority + at + 1);
    url[..authority].chars().chain(url[host..].chars()).take(MAX_QUOTED_CHARS).collect()
}

#[cfg(test)]
mod tests;
