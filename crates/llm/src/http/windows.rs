//! Windows has no such sockets. Only the runner of a container has one, which does not run there.

use std::path::Path;

use reqwest::ClientBuilder;

pub(super) fn through_socket(builder: ClientBuilder, _socket: &Path) -> ClientBuilder {
    builder
}
