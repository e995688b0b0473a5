//! Unix: the pipe and the socket of a browser.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Makes a named pipe, and opens it for reading and writing, because opening one end alone waits for the other.
pub(super) fn lifeline(path: &Path) -> io::Result<File> {
    make_pipe(path)?;
    Ok(rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// Whether somebody listens at a socket.
pub(super) fn answers(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

/// Makes a named pipe for this user.
#[cfg(target_os = "linux")]
fn make_pipe(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, mknodat};
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

/// Makes a named pipe for this user. There is no safe binding for macOS.
#[cfg(not(target_os = "linux"))]
fn make_pipe(path: &Path) -> io::Result<()> {
    let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(path).status()?;
    if made.success() { Ok(()) } else { Err(io::Error::other(format!("mkfifo: {made}"))) }
}
