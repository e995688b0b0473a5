//! Windows: a host is a name.

use tokio_postgres::config::Host;

/// The name of a host.
pub(super) fn name_of(host: &Host) -> String {
    let Host::Tcp(name) = host;
    name.clone()
}

pub(super) fn is_socket(_host: &Host) -> bool {
    false
}
