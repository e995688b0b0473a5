//! Windows confines nothing: the probe finds no level, so nothing of this is reached.

use std::io;
use std::path::Path;
use std::process::Stdio;

use myclaw_exec::UnixStream;
use tokio::process::Command;

/// Families of sockets, for plans that nobody carries out.
pub(crate) const AF_UNIX: i32 = 1;
pub(crate) const AF_INET: i32 = 2;
pub(crate) const AF_INET6: i32 = 23;

/// A connection to a confined process, of which there is none.
pub type Socket = UnixStream;

/// Always an error.
pub(crate) fn socket_pair() -> io::Result<(Socket, Stdio)> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "Windows has no sandbox that MyClaw can use"))
}

/// Does nothing.
pub(crate) fn apart(command: &mut Command) -> &mut Command {
    command
}

/// There are no cgroups.
pub(crate) fn may_change(_path: &Path) -> bool {
    false
}
