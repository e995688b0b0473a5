//! Which proxy a request goes through: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, as curl reads them.
//!
//! Every client of this program that leaves the machine uses [`through_environment`], so that models, channels, web tools
//! and downloads go the same way.
#![forbid(unsafe_code)]

use std::env;
use std::net::IpAddr;

use ipnet::IpNet;
use reqwest::{ClientBuilder, Proxy, Url};

/// Lets the requests of the client go through the proxies that the environment names. Without one, the settings of the
/// operating system count where it has any.
pub fn through_environment(builder: ClientBuilder) -> ClientBuilder {
    match Rules::new(|name| env::var(name).ok()) {
        Some(rules) => builder.no_proxy().proxy(Proxy::custom(move |url| rules.proxy_for(url))),
        None => builder,
    }
}

/// How requests to a server go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// The environment names a proxy, but not for this server.
    Direct,
    /// Through this proxy.
    Through(Url),
    /// The environment names no proxy, so the settings of the operating system count where it has any.
    System,
}

/// How a client that goes [`through_environment`] reaches the server.
pub fn way_to(server: &Url) -> Way {
    match Rules::new(|name| env::var(name).ok()) {
        Some(rules) => rules.proxy_for(server).map_or(Way::Direct, Way::Through),
        None => Way::System,
    }
}

/// Lets the requests of a client of one server, with this address, go to it directly if it is on this machine, and
/// otherwise [`through_environment`].
pub fn to_server(builder: ClientBuilder, address: &str) -> ClientBuilder {
    match Url::parse(address) {
        Ok(server) if is_this_machine(&server) => builder.no_proxy(),
        _ => through_environment(builder),
    }
}

fn is_this_machine(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// What the environment says.
#[derive(Debug)]
struct Rules {
    plain: Option<Url>,
    tls: Option<Url>,
    exceptions: String,
}

impl Rules {
    /// `None` if no variable names a proxy.
    fn new(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let named = |names: &[&str]| {
            let mut values = names.iter().filter_map(|name| variable(name));
            values.find(|value| !value.trim().is_empty())
        };
        // A web server puts a header `Proxy:` of its clients into HTTP_PROXY of a CGI program.
        let is_cgi = variable("REQUEST_METHOD").is_some();
        let plain: &[&str] = if is_cgi { &["http_proxy"] } else { &["http_proxy", "HTTP_PROXY"] };
        let all = || named(&["all_proxy", "ALL_PROXY"]);
        let address = |value: Option<String>| value.or_else(all).and_then(|text| address(&text));
        let (plain, tls) = (address(named(plain)), address(named(&["https_proxy", "HTTPS_PROXY"])));
        let exceptions = named(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
        (plain.is_some() || tls.is_some()).then_some(Self { plain, tls, exceptions })
    }

    fn proxy_for(&self, url: &Url) -> Option<Url> {
        let proxy = if url.scheme() == "https" { &self.tls } else { &self.plain };
        let host = url.host_str()?;
        let is_direct = is_excepted(&self.exceptions, host, url.port_or_known_default());
        proxy.clone().filter(|_| !is_direct)
    }
}

/// The address of a proxy, which may be written without `http://`.
fn address(text: &str) -> Option<Url> {
    let text = text.trim();
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    Url::parse(&full).ok().filter(Url::has_host)
}

/// Whether a list such as that of `NO_PROXY` names the host: `*` for every host, a domain with or without `.` or `*.` in
/// front for it and all below it, an IP address, or a network such as `10.0.0.0/8`; each also with `:port` behind it.
fn is_excepted(list: &str, host: &str, port: Option<u16>) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    list.split([',', ' ', '\t', '\n'])
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .any(|entry| names(entry, host, port))
}

fn names(entry: &str, host: &str, port: Option<u16>) -> bool {
    let (entry, wanted_port) = split_port(entry);
    if wanted_port.is_some() && wanted_port != port {
        return false;
    }
    if entry == "*" {
        return true;
    }
    match host.parse::<IpAddr>() {
        Ok(address) => holds(entry, address) || holds(entry, address.to_canonical()),
        Err(_) => {
            let domain = entry.strip_prefix('*').unwrap_or(entry);
            let domain = domain.trim_start_matches('.').trim_end_matches('.');
            let Some(at) = host.len().checked_sub(domain.len()) else { return false };
            !domain.is_empty()
                && host.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(domain))
                && (at == 0 || host.as_bytes()[at - 1] == b'.')
        }
    }
}

/// The port behind a name, an IPv4 address or an IPv6 address in brackets.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some((inside, after)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        // `[fd00::]/8` is a network.
        return match after.strip_prefix(':') {
            Some(port) => match port.parse() {
                Ok(port) => (inside, Some(port)),
                Err(_) => ("", None),
            },
            None if after.is_empty() => (inside, None),
            None => (entry, None),
        };
    }
    match entry.split_once(':') {
        Some((name, port)) if !port.contains(':') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

/// Whether an address or a network holds `address`.
fn holds(entry: &str, address: IpAddr) -> bool {
    let entry = entry.replace(['[', ']'], "");
    let network = entry.parse::<IpNet>().or_else(|_| entry.parse().map(IpAddr::into));
    network.is_ok_and(|network| network.contains(&address))
}

#[cfg(test)]
mod tests;
