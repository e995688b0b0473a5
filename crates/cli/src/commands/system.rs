//! What differs between systems.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{HAS_SERVICES, MISSING, refuse};
#[cfg(windows)]
pub(crate) use windows::{HAS_SERVICES, MISSING, refuse};
