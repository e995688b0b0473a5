//! A terminal for a program that needs one: not on Windows.

use std::convert::Infallible;
use std::ffi::CString;
use std::io;

use crate::attach::TerminalSize;

/// This program's side of a terminal.
pub(crate) type Side = Infallible;

/// A terminal, of which there is none.
pub(crate) struct Terminal {
    pub(crate) path: CString,
}

impl Terminal {
    /// # Errors
    /// Always.
    pub(crate) fn open(_size: TerminalSize) -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "MyClaw has no terminals for commands on Windows; run the command without one",
        ))
    }

    /// # Errors
    /// Always.
    pub(crate) fn handle(&self) -> io::Result<Side> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
