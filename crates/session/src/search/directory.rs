//! The directory of the sessions, in which names are found faster than whole paths where the system can do that.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::OpenDirectory;
#[cfg(windows)]
pub(super) use windows::OpenDirectory;
