//! Other systems than Linux confine no threads.

use std::io;

use super::OpenPaths;

pub(super) fn enforce<T: Send>(
    _: &OpenPaths,
    _: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}
