//! Unix: a host may be a socket.

use tokio_postgres::config::Host;

/// The name of a host, or the path of a socket.
pub(super) fn name_of(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

pub(super) fn is_socket(host: &Host) -> bool {
    matches!(host, Host::Unix(_))
}
