//! The address of a gateway elsewhere, and the encrypted way to it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::client::Stream;
use crate::{ClientError, ConnectError, tls};

/// Whether a plain connection to another machine is accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlainLink {
    /// Only to this machine.
    #[default]
    Refused,
    /// Something else encrypts the way.
    Protected,
}

impl PlainLink {
    /// What the option `--protected-link` says.
    pub fn of_option(is_given: bool) -> Self {
        if is_given { Self::Protected } else { Self::Refused }
    }
}

/// Where a gateway is, and how it is recognised.
pub(crate) struct RemoteGateway {
    /// With the scheme `ws` or `wss`.
    url: Url,
    /// None for plain HTTP.
    tls: Option<Arc<ClientConfig>>,
}

impl RemoteGateway {
    /// The gateway at `address`. `ca` is a PEM file with its certificate, or with the authority that signed it; without one
    /// those of the system count. Reads the file, so it blocks for a moment.
    ///
    /// # Errors
    /// The address cannot be used, would show the token to others, or the file cannot be read.
    pub(crate) fn new(
        address: &str,
        ca: Option<&Path>,
        link: PlainLink,
    ) -> Result<Self, ClientError> {
        let refused = |why: &str| Err(ClientError::Unusable(why.to_owned()));
        let Ok(mut url) = Url::parse(address) else {
            return refused("the address of a gateway is such as wss://claw.example.org:18789");
        };
        if url.query().is_some() || !url.username().is_empty() || url.password().is_some() {
            return refused(
                "a token does not belong into an address, which is kept in histories; leave it out",
            );
        }
        let is_encrypted = match url.scheme() {
            "wss" | "https" => true,
            "ws" | "http" => false,
            _ => return refused("the address of a gateway begins with wss:// or ws://"),
        };
        let is_near = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => return refused("the address names no host"),
        };
        if !is_encrypted && !is_near && link == PlainLink::Refused {
            return refused(
                "ws:// would show the token to everybody in between; use wss://, or an SSH tunnel, or --protected-link if \
                 a VPN encrypts the whole way",
            );
        }
        // The scheme is one of the same kind, which can always be set.
        let _ = url.set_scheme(if is_encrypted { "wss" } else { "ws" });
        let tls = is_encrypted.then(|| tls::trusting(ca)).transpose()?;
        Ok(Self { url, tls })
    }

    /// A gateway of this machine, by the hashes of its certificates; without any it speaks plain HTTP.
    pub(crate) fn pinned(address: &str, certificates: Vec<String>) -> Result<Self, ClientError> {
        let address = address.replacen("http", "ws", 1);
        let url = Url::parse(&address)
            .map_err(|error| ClientError::Internal(format!("{address} is no address: {error}")))?;
        let is_plain = certificates.is_empty();
        let tls = (!is_plain).then(|| tls::pinned(certificates)).transpose()?;
        Ok(Self { url, tls })
    }

    /// How it is shown.
    pub(crate) fn label(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Host and port, as the header `Host` has them.
    pub(crate) fn authority(&self) -> &str {
        self.url.authority()
    }

    /// The address of `path`.
    pub(crate) fn at(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{path}", self.url.path().trim_end_matches('/')));
        url
    }

    /// A connection to it.
    ///
    /// # Errors
    /// Nothing answers there, or it cannot be recognised.
    pub(crate) async fn stream(&self) -> Result<Box<dyn Stream>, ConnectError> {
        let host =
            self.url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port_or_known_default().unwrap_or_default();
        let stream = TcpStream::connect((host, port)).await.map_err(|error| {
            ConnectError::Unreachable(format!("{host} port {port} cannot be reached: {error}"))
        })?;
        // Small frames leave at once.
        let _ = stream.set_nodelay(true);
        let Some(tls) = self.tls.clone() else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| ConnectError::Refused(format!("{host} is no name of a host")))?;
        match TlsConnector::from(tls).connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(ConnectError::Refused(format!(
                    "there is no encrypted connection to {host} port {port}: {error}; --ca FILE names a certificate to trust"
                )))
            }
            Err(error) => {
                let message = format!("the connection to {host} port {port} broke: {error}");
                Err(ConnectError::Unreachable(message))
            }
        }
    }
}
