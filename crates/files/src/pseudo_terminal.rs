//! Pseudo-terminals.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A new terminal: this program's side, which programs that it starts do not inherit, and the path of the other side.
///
/// # Errors
/// An I/O error: no terminal is left, or the system has none.
pub fn open_pseudo_terminal() -> io::Result<(OwnedFd, CString)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    let side = openpt(flags | OpenptFlags::CLOEXEC)?;
    #[cfg(not(target_os = "linux"))]
    let side = {
        use rustix::io::{FdFlags, fcntl_setfd};
        let side = openpt(flags)?;
        fcntl_setfd(&side, FdFlags::CLOEXEC)?;
        side
    };
    grantpt(&side)?;
    unlockpt(&side)?;
    let path = ptsname(&side, Vec::new())?;
    Ok((side, path))
}
