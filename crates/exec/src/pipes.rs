//! This process's ends of pipes to a child, in the form that the runtime of tasks can wait for.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe::pipe;
pub(crate) use tokio::net::unix::pipe::{Receiver, Sender};

use crate::terminal::Side;

/// The writing end.
///
/// # Errors
/// The runtime cannot watch it.
pub(crate) fn sender(pipe: PipeWriter) -> io::Result<Sender> {
    Sender::from_owned_fd(OwnedFd::from(pipe))
}

/// The reading end.
///
/// # Errors
/// The runtime cannot watch it.
pub(crate) fn receiver(pipe: PipeReader) -> io::Result<Receiver> {
    Receiver::from_owned_fd(OwnedFd::from(pipe))
}

/// A terminal to write to.
///
/// # Errors
/// The runtime cannot watch it.
pub(crate) fn keyboard(side: Side) -> io::Result<Sender> {
    Sender::from_owned_fd_unchecked(side)
}

/// A terminal to read from.
///
/// # Errors
/// The runtime cannot watch it.
pub(crate) fn screen(side: Side) -> io::Result<Receiver> {
    Receiver::from_owned_fd_unchecked(side)
}

/// A pipe: the end that this process reads, and the one for a program that prints.
///
/// # Errors
/// No descriptor is free.
pub fn output_pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (sender, receiver) = pipe()?;
    Ok((receiver, sender.into_blocking_fd()?))
}
