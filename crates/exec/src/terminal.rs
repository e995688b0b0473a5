//! A terminal for a program that needs one.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use myclaw_files::open_pseudo_terminal;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::attach::TerminalSize;

/// A handle of this program's side of a terminal.
pub(crate) type Side = OwnedFd;

/// This program's side of a terminal.
pub(crate) struct Terminal {
    side: Side,
    /// The name by which the child opens its own side. No other process may hold that one open, so that the terminal
    /// ends with the child.
    pub(crate) path: CString,
}

impl Terminal {
    /// # Errors
    /// An I/O error: no terminal is left, or the system has none.
    pub(crate) fn open(size: TerminalSize) -> io::Result<Self> {
        let (side, path) = open_pseudo_terminal()?;
        let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&side, size)?;
        fcntl_setfl(&side, fcntl_getfl(&side)? | OFlags::NONBLOCK)?;
        Ok(Self { side, path })
    }

    /// Another handle of this program's side, for reading or writing without waiting.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn handle(&self) -> io::Result<Side> {
        self.side.try_clone()
    }
}
