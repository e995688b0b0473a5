//! Unix: connections to a socket.

use std::path::Path;

use reqwest::ClientBuilder;

pub(super) fn through_socket(builder: ClientBuilder, socket: &Path) -> ClientBuilder {
    builder.unix_socket(socket)
}
