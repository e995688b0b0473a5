//! Unix: sockets as standard input and output, and children.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};

use super::{Input, Output};

/// A file that gets larger than the sandbox permits is an error for the call that writes it, not the end of all calls. The
/// programs of commands have no handler, and end.
pub(super) fn outlive_large_files() -> io::Result<()> {
    drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
    Ok(())
}

/// A thread reads the standard input, unless it is a socket, as in the sandbox: the runtime waits for that itself, which
/// saves a change of threads for each message.
pub(super) fn standard_input() -> io::Result<Input> {
    match socket(io::stdin())? {
        Some(socket) => Ok(Box::new(socket)),
        None => Ok(Box::new(tokio::io::stdin())),
    }
}

/// See [`standard_input`].
pub(super) fn standard_output() -> io::Result<Output> {
    match socket(io::stdout())? {
        Some(socket) => Ok(Box::new(socket)),
        None => Ok(Box::new(tokio::io::stdout())),
    }
}

fn socket(stream: impl AsFd) -> io::Result<Option<UnixStream>> {
    let about = rustix::fs::fstat(&stream)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::Socket {
        return Ok(None);
    }
    let socket = std::os::unix::net::UnixStream::from(stream.as_fd().try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket).map(Some)
}

/// Whether a process that this one started is still there, such as a background job. It is not collected.
pub(super) fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}
