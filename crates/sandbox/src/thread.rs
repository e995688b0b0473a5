//! Work of this process that may touch only some files: a thread confines itself and ends with the work.
//!
//! The kernel checks each file when it is opened, so a path that changes between a check and its use leads nowhere else.
//! Nothing but files is confined: this is for code of this program that gets its paths from others, not for programs.

use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

/// The files and directories that confined work may touch, with everything below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenPaths {
    /// May be read. Those that do not exist are left out.
    pub readable: Vec<PathBuf>,
    /// May be read and changed. They must exist.
    pub writable: Vec<PathBuf>,
    /// Stay as they are, with everything below them, although a directory above may be changed; absolute paths. As
    /// [`Confinement::protected`](crate::Confinement::protected).
    pub protected: Vec<PathBuf>,
}

/// Whether this kernel can confine a thread: Linux 5.13 with Landlock.
pub fn can_confine_threads() -> bool {
    crate::probe::landlock_version() > 0
}

/// Runs `work` on a thread that can open only `paths`, and waits for it. A panic of `work` goes on in the caller. Takes
/// about a tenth of a millisecond more than the work.
///
/// # Errors
/// The thread cannot be started or confined; `work` does not run then.
pub fn with_open_paths<T: Send>(
    paths: &OpenPaths,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    if !paths.protected.is_empty() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    thread::scope(|scope| {
        let confined = || confine(paths).map(|()| work());
        thread::Builder::new()
            .spawn_scoped(scope, confined)?
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(target_os = "linux")]
fn confine(paths: &OpenPaths) -> io::Result<()> {
    crate::enter::open_only(paths).map_err(io::Error::other)
}

#[cfg(not(target_os = "linux"))]
fn confine(_: &OpenPaths) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
