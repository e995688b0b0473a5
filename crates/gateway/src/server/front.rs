//! How clients reach the gateway: its certificate, its names, and the proxies between.
//!
//! A page in a browser can make its own name point to any address, and then send requests to the gateway as if they were
//! of the same origin. Such a request has the page's name in `Host`, so only known names are answered. Addresses need no
//! entry: nobody can make an address point elsewhere.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use axum::http::header::{HOST, HeaderName};
use axum::http::{HeaderMap, Uri};
use myclaw_agent::Home;
use myclaw_config::{Config, HostName, Network, PageOrigin};

use crate::GatewayError;
use crate::tls::{Certificate, CertificateFiles};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What the config says about clients.
pub(crate) struct Front {
    /// With it the gateway speaks HTTPS, and only that.
    pub(crate) certificate: Option<Certificate>,
    files: Option<(CertificateFiles, FileTimes)>,
    proxies: Vec<Network>,
    hosts: Vec<HostName>,
    origins: Vec<PageOrigin>,
}

/// When the two files of a certificate were changed.
type FileTimes = [Option<SystemTime>; 2];

impl Front {
    /// Reads what the config names. Blocks.
    ///
    /// # Errors
    /// The certificate cannot be used.
    pub(crate) fn read(home: &Home, config: &Config) -> Result<Self, GatewayError> {
        let config = &config.gateway;
        let files = config.tls.as_ref().map(|tls| CertificateFiles::of(home, tls)).transpose()?;
        // Looked at before they are read: what changes meanwhile is noticed.
        let files = files.map(|files| {
            let times = times(&files);
            (files, times)
        });
        let certificate = files.as_ref().map(|(files, _)| Certificate::read(files)).transpose()?;
        Ok(Self {
            certificate,
            files,
            proxies: config.trusted_proxies(),
            hosts: config.allowed_hosts(),
            origins: config.allowed_origins(),
        })
    }

    /// Whether the files of the certificate have changed since they were read. Blocks.
    pub(crate) fn has_changed(&self) -> bool {
        self.files.as_ref().is_some_and(|(files, before)| times(files) != *before)
    }

    /// The hashes by which the gateway's own clients know it; none without a certificate.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        self.certificate.as_ref().map(Certificate::fingerprint)
    }

    /// Who asks, and for whom.
    pub(super) fn caller(&self, link: &Link, headers: &HeaderMap) -> Caller {
        // Of several values the last is that of the nearest proxy.
        let text = |name: HeaderName| {
            let value = headers.get_all(name).iter().next_back()?.to_str().ok()?;
            value.rsplit(',').next().map(str::trim)
        };
        let host = text(HOST);
        if !self.is_proxy(link.peer) {
            let (address, host) = (link.peer, host.map(str::to_owned));
            return Caller { address, host, is_encrypted: link.is_encrypted };
        }
        let says_encrypted = text(FORWARDED_PROTO).map(|proto| proto.eq_ignore_ascii_case("https"));
        Caller {
            address: self.client_behind(link.peer, headers),
            host: text(FORWARDED_HOST).or(host).map(str::to_owned),
            is_encrypted: says_encrypted.unwrap_or(link.is_encrypted),
        }
    }

    /// The address that the last trusted proxy saw. What stands before it is what that client says about itself.
    fn client_behind(&self, proxy: IpAddr, headers: &HeaderMap) -> IpAddr {
        let values: Vec<_> =
            headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok()).collect();
        let mut client = proxy;
        for entry in values.iter().rev().flat_map(|value| value.rsplit(',')) {
            let Some(address) = address_of(entry.trim()) else { break };
            client = address;
            if !self.is_proxy(address) {
                break;
            }
        }
        client
    }

    /// Whether an address stands for many clients, or for none but the owner.
    pub(super) fn is_near(&self, peer: IpAddr) -> bool {
        peer.is_loopback() || self.is_proxy(peer)
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|proxy| proxy.contains(address))
    }

    /// Whether a request is for this gateway. A proxy may pass on a header that the client wrote, so the name for which the
    /// proxy was asked does not replace the one that it asks for.
    pub(super) fn is_asked(&self, headers: &HeaderMap, link: &Link, caller: &Caller) -> bool {
        let own = headers.get(HOST).and_then(|host| host.to_str().ok());
        [own, caller.host.as_deref()].into_iter().all(|host| {
            host.is_some_and(|host| {
                [caller.scheme(), link.scheme()].iter().any(|it| self.is_own_host(host, link, *it))
            })
        })
    }

    /// Whether the target of a request, where it names a host, names this gateway. It counts for the host then, whatever
    /// the header says (RFC 9112, 3.2.2).
    pub(super) fn is_own_target(&self, target: &Uri, link: &Link, caller: &Caller) -> bool {
        let Some(host) = target.authority() else { return true };
        let scheme = match target.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return false,
        };
        let is_spoken = [caller.scheme(), link.scheme()].contains(&scheme);
        is_spoken && self.is_own_host(host.as_str(), link, scheme)
    }

    /// Whether `host` is a name of this gateway.
    fn is_own_host(&self, host: &str, link: &Link, scheme: Scheme) -> bool {
        if self.hosts.iter().any(|own| own.is(host)) {
            return true;
        }
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().ok()),
            _ => (host, Some(scheme.port())),
        };
        if port != Some(link.local.port()) {
            return false;
        }
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match address {
            Ok(address) => address.is_loopback() || address == link.local.ip(),
            Err(_) => {
                name.eq_ignore_ascii_case("localhost")
                    || self.certificate.as_ref().is_some_and(|own| own.is_for(name))
            }
        }
    }

    /// Whether a page of `origin` may use this gateway. One that came without encryption may not, where there is some:
    /// anybody could have written it.
    pub(super) fn is_own_origin(&self, origin: &str, link: &Link, caller: &Caller) -> bool {
        if self.origins.iter().any(|own| own.is(origin)) {
            return true;
        }
        match origin.split_once("://") {
            Some(("https", host)) => self.is_own_host(host, link, Scheme::Https),
            Some(("http", host)) if !caller.is_encrypted => {
                self.is_own_host(host, link, Scheme::Http)
            }
            _ => false,
        }
    }
}

/// A scheme of addresses in browsers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn of(is_encrypted: bool) -> Self {
        if is_encrypted { Self::Https } else { Self::Http }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The two ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// Who has connected, which may be a proxy.
    pub(super) peer: IpAddr,
    /// The own end.
    pub(super) local: SocketAddr,
    /// Whether it is a connection of TLS.
    pub(super) is_encrypted: bool,
}

impl Link {
    fn scheme(&self) -> Scheme {
        Scheme::of(self.is_encrypted)
    }
}

/// Who asks, through however many trusted proxies.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) address: IpAddr,
    /// For which name.
    pub(super) host: Option<String>,
    /// Whether nobody between the client and this machine or its first proxy can read along.
    pub(super) is_encrypted: bool,
}

impl Caller {
    fn scheme(&self) -> Scheme {
        Scheme::of(self.is_encrypted)
    }

    /// Whether browsers may keep in mind that this name is reached by HTTPS only. That concerns all ports of a name, so a
    /// gateway that shares its name with other services, on a port of its own, does not decide it.
    pub(super) fn owns_name(&self) -> bool {
        let host = self.host.as_deref().unwrap_or_default();
        let is_name = !host.contains(':') && host.parse::<IpAddr>().is_err();
        self.is_encrypted && is_name && !host.eq_ignore_ascii_case("localhost")
    }
}

/// One client as far as limits are concerned: an address, or with IPv6 the network of which one household or server has
/// all addresses.
pub(super) fn household(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            // This machine itself is not its network.
            if address.is_loopback() { address.into() } else { Ipv6Addr::from_bits(network).into() }
        }
        address => address,
    }
}

/// An entry of `X-Forwarded-For`: an address, sometimes with a port.
fn address_of(entry: &str) -> Option<IpAddr> {
    let bare = entry.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let with_port = || entry.parse::<SocketAddr>().map(|address| address.ip());
    bare.or_else(|_| with_port()).ok().map(|address| address.to_canonical())
}

fn times(files: &CertificateFiles) -> FileTimes {
    [&files.cert, &files.key].map(|path| std::fs::metadata(path).and_then(|it| it.modified()).ok())
}

/// The front in force, which a reload replaces.
pub(crate) type CurrentFront = parking_lot::RwLock<Arc<Front>>;

#[cfg(test)]
mod tests;
