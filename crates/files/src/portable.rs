//! What the standard library has for Unix only, under the same names on every system.
//!
//! On Unix these are the names of the standard library and of rustix. On Windows they do what has a counterpart there, do nothing
//! where that is harmless (the files are in the profile of the user, which others cannot read), and are refused otherwise. So
//! code above has no cases for systems.

#[cfg(unix)]
mod unix;
#[cfg(any(windows, test))]
mod usual;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

/// What standard input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardInput {
    /// A file.
    File,
    /// A pipe.
    Pipe,
    /// A terminal, a device, a socket, or nothing.
    Other,
}
