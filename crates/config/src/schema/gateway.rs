//! Where the gateway listens, and whom it trusts.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use ipnet::IpNet;
use myclaw_files::tenants;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::HostEntry;
use super::values::{self, NonBlankText, TenantName};

/// Port on which the gateway listens by default.
const DEFAULT_PORT: u16 = 18_789;

/// The long-lived process that serves the web chat and the channels.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GatewayConfig {
    /// TCP port, 1 to 65535. The variable `MYCLAW_GATEWAY_PORT` overrides it.
    #[serde(deserialize_with = "values::within::<_, _, 1, 65_535>")]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: u16,
    /// The token that a client must present. Preferably a reference such as `"${MYCLAW_GATEWAY_TOKEN}"`.
    #[serde(with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<values::SecretText>")]
    pub token: Option<SecretString>,
    /// Where it listens: `loopback` (this machine only), `lan` or `all` (every address of this machine), or one address.
    /// Other machines can reach it only with `tls` or `protectedLink`.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub bind: String,
    /// The certificate with which it speaks HTTPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// True says: whatever lies between the gateway and its clients is encrypted by something else, such as WireGuard,
    /// Tailscale or a proxy on a private network. Only then may it listen beyond this machine without `tls`.
    pub protected_link: bool,
    /// Addresses and networks of proxies whose `X-Forwarded-For`, `-Proto` and `-Host` are believed. From everybody else
    /// these headers are ignored.
    #[schemars(with = "Vec<NonBlankText>")]
    pub trusted_proxies: Vec<HostEntry>,
    /// Names under which clients reach the gateway besides this machine's addresses, such as `claw.example.org`, also with
    /// a port. The names in its certificate need no entry.
    #[schemars(with = "Vec<NonBlankText>")]
    pub allowed_hosts: Vec<HostEntry>,
    /// Pages of other origins that may use it, such as `https://home.example.org`.
    #[schemars(with = "Vec<NonBlankText>")]
    pub allowed_origins: Vec<HostEntry>,
    /// The PostgreSQL database that several gateways share, such as `"postgresql://myclaw@db.example.org/myclaw"`, or
    /// where its address is kept: `file:` and a path, or `env:` and the name of a variable. The variable
    /// `MYCLAW_STORE_URL` overrides it. Without it, everything is in the state directory.
    #[serde(with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<values::SecretText>")]
    pub store: Option<SecretString>,
    /// The object storage for large contents of a cluster, such as `"s3://bucket/prefix?region=eu-central-1"`, or where its
    /// address is kept, as for `store`. Without it, they are in the database.
    #[serde(with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<values::SecretText>")]
    pub blobs: Option<SecretString>,
    /// Whose records and sessions in the database of a cluster this gateway works with: lower-case letters, digits and
    /// underscores. Several persons or teams can share a database that way.
    #[serde(deserialize_with = "values::tenant")]
    #[schemars(with = "TenantName")]
    pub tenant: String,
    /// The name of this machine in the cluster, by default its host name. The other gateways reach one that listens on every
    /// address by it.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub node: Option<String>,
    /// Where traces are sent: a span for each run, model call and tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<TelemetryConfig>,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            port: DEFAULT_PORT,
            token: None,
            bind: Bind::Loopback.to_string(),
            tls: None,
            protected_link: false,
            trusted_proxies: Vec::new(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            store: None,
            blobs: None,
            tenant: tenants::MAIN.to_owned(),
            node: None,
            telemetry: None,
        }
    }
}

/// The values that are written as text. Those that cannot be read are reported when the config is loaded.
impl GatewayConfig {
    /// Where it listens.
    pub fn bind(&self) -> Bind {
        self.bind.trim().parse().unwrap_or_default()
    }

    /// The proxies whose headers are believed.
    pub fn trusted_proxies(&self) -> Vec<Network> {
        read(&self.trusted_proxies)
    }

    /// Further names of the gateway.
    pub fn allowed_hosts(&self) -> Vec<HostName> {
        read(&self.allowed_hosts)
    }

    /// Origins of other pages.
    pub fn allowed_origins(&self) -> Vec<PageOrigin> {
        read(&self.allowed_origins)
    }
}

fn read<T: FromStr>(entries: &[HostEntry]) -> Vec<T> {
    entries.iter().filter_map(|HostEntry(text)| text.trim().parse().ok()).collect()
}

/// A certificate and its key, as PEM files. A file that changes is read again. A path may begin with `~`; a relative one
/// starts at the directory of this file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate, followed by those between it and the authority that clients know.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub cert: String,
    /// The private key of the certificate.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub key: String,
}

/// A receiver of OpenTelemetry's protocol over HTTP with JSON, such as a collector.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Its address without the path, such as `http://127.0.0.1:4318`; `/v1/traces` is added.
    #[serde(deserialize_with = "values::url")]
    #[schemars(with = "values::BaseUrl")]
    pub endpoint: String,
    /// Headers of each request, such as `Authorization`.
    #[serde(default, with = "values::secret_map", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, values::SecretText>")]
    pub headers: BTreeMap<String, SecretString>,
    /// Name of this program in the traces.
    #[serde(default = "default_service", deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub service_name: String,
}

fn default_service() -> String {
    "myclaw".to_owned()
}

/// The addresses on which the gateway listens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Bind {
    /// This machine only: 127.0.0.1.
    #[default]
    Loopback,
    /// Every address of this machine. `lan` is another word for it.
    All,
    /// One address.
    Address(IpAddr),
}

impl Bind {
    /// Whether only programs of this machine can connect.
    pub fn is_loopback(self) -> bool {
        match self {
            Self::Loopback => true,
            Self::All => false,
            Self::Address(address) => address.to_canonical().is_loopback(),
        }
    }

    /// The address to listen on; `None` stands for every one, of both kinds if the system has both.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Self::Loopback => Some(Ipv4Addr::LOCALHOST.into()),
            Self::All => None,
            Self::Address(address) => Some(address).filter(|address| !address.is_unspecified()),
        }
    }
}

impl FromStr for Bind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "loopback" => Ok(Self::Loopback),
            "lan" | "all" => Ok(Self::All),
            address => address.parse().map(Self::Address).map_err(|_| {
                "expected `loopback`, `lan`, `all` or an address of this machine such as 192.168.1.5"
            }),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => out.write_str("loopback"),
            Self::All => out.write_str("all"),
            Self::Address(address) => address.fmt(out),
        }
    }
}

/// An address, or a network such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Whether `address` is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let one = text.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
        one.or_else(|_| text.parse())
            .map(Self)
            .map_err(|_| "expected an address such as 127.0.0.1, or a network such as 10.0.0.0/8")
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// A name of the gateway, in small letters; with a port, or for every port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

impl HostName {
    /// Whether the header `Host` of a request names it.
    pub fn is(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host.as_str(),
        };
        self.0 == host || self.0 == name
    }
}

impl FromStr for HostName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_of_names = |char: char| char.is_ascii_alphanumeric() || "-._:[]".contains(char);
        if !text.is_empty() && text.chars().all(is_of_names) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err("expected a name such as claw.example.org, without a scheme, a path or `*`")
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The origin of pages: scheme and host, and the port if it is not the scheme's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageOrigin(String);

impl PageOrigin {
    /// Whether the header `Origin` of a request names it.
    pub fn is(&self, origin: &str) -> bool {
        self.0 == origin
    }
}

impl FromStr for PageOrigin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        url.filter(|url| url.path() == "/" && url.query().is_none() && url.fragment().is_none())
            .map(|url| Self(url.origin().ascii_serialization()))
            .ok_or("expected an origin such as https://home.example.org, without a path")
    }
}

impl fmt::Display for PageOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
