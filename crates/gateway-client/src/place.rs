//! Where the gateway of a state directory keeps its files, and where it listens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use myclaw_agent::Home;
use myclaw_config::Config;

/// Directory of the gateway in the state directory. Only the user can read it.
const DIRECTORY: &str = "gateway";
/// The database in it.
pub const STORE_FILE: &str = "store.sqlite";

/// The directory of the gateway of a state directory.
pub fn gateway_directory(home: &Home) -> PathBuf {
    home.paths.state_dir().join(DIRECTORY)
}

/// The file of its store.
pub fn store_path(home: &Home) -> PathBuf {
    gateway_directory(home).join(STORE_FILE)
}

/// Where it is to listen. An address of IPv6 that stands for all includes those of IPv4.
pub fn gateway_address(home: &Home, config: &Config) -> SocketAddr {
    let address = config.gateway.bind().address().unwrap_or(Ipv6Addr::UNSPECIFIED.into());
    SocketAddr::new(address, config.gateway_port(&home.environment))
}

/// Where programs of this machine reach what listens on `address`.
pub fn near(address: SocketAddr) -> SocketAddr {
    let ip = address.ip();
    let ip = if ip.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip };
    SocketAddr::new(ip, address.port())
}
