//! Unix: what the starting of confined processes needs of the system.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

pub(crate) use libc::{AF_INET, AF_INET6, AF_UNIX};
use tokio::net::UnixStream;
use tokio::process::Command;

/// A connection to a confined process.
pub type Socket = UnixStream;

/// One end of a connection for this process, and the other one for a child.
pub(crate) fn socket_pair() -> io::Result<(Socket, Stdio)> {
    let (outside, inside) = std::os::unix::net::UnixStream::pair()?;
    outside.set_nonblocking(true)?;
    Ok((UnixStream::from_std(outside)?, OwnedFd::from(inside).into()))
}

/// Lets a command begin a process group.
pub(crate) fn apart(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Whether this process may change the directory at `path`.
pub(crate) fn may_change(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}
