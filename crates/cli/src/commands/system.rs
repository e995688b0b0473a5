//! What differs between systems.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{MISSING, refuse};
#[cfg(windows)]
pub(crate) use windows::{MISSING, refuse};
