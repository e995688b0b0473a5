//! Work of this process that may touch only some files: a thread confines itself and ends with the work.
//!
//! The kernel checks each file when it is opened, so a path that changes between a check and its use leads nowhere else.
//! Nothing but files is confined: this is for code of this program that gets its paths from others, not for programs.

use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::sync::mpsc;
use std::thread::{self, Scope};

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
    /// Names that stay as they are in every directory that holds something protected, and below.
    pub protected_names: Vec<String>,
}

/// Whether this kernel can confine a thread: Linux 5.13 with Landlock.
pub fn can_confine_threads() -> bool {
    crate::probe::landlock_version() > 0
}

/// Runs `work` on a thread that can open only `paths`, and waits for it. A panic of `work` continues in the caller. Takes
/// about a tenth of a millisecond more than the work.
///
/// # Errors
/// The thread cannot be started or confined; `work` does not run then.
pub fn with_open_paths<T: Send>(
    paths: &OpenPaths,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    enforce(paths, || Ok(work()))
}

/// Starts a thread for the work and waits for it.
fn run<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> io::Result<T> + Send + 'scope,
) -> io::Result<T> {
    let thread = thread::Builder::new().spawn_scoped(scope, work)?;
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(target_os = "linux")]
fn enforce<T: Send>(
    paths: &OpenPaths,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    use crate::enter::{Broker, listen, open_only};
    use crate::plan::BrokerRules;

    let readable = paths.readable.iter().filter(|path| path.exists()).cloned().collect();
    let rules = BrokerRules::new(
        paths.writable.clone(),
        readable,
        paths.protected.clone(),
        paths.protected_names.clone(),
    );
    if rules.brokered.is_empty() {
        return thread::scope(|scope| {
            run(scope, || {
                open_only(&rules).map_err(io::Error::other)?;
                work()
            })
        });
    }
    let broker = Broker::new(&rules).map_err(io::Error::other)?;
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        // It gives up rights, so it is a thread of its own. It ends when the thread that works has ended.
        thread::Builder::new().spawn_scoped(scope, move || {
            if let Ok(calls) = receiver.recv() {
                broker.serve(&calls);
            }
        })?;
        run(scope, || {
            open_only(&rules).map_err(io::Error::other)?;
            let calls = listen(&rules).map_err(io::Error::other)?;
            sender.send(calls).map_err(io::Error::other)?;
            work()
        })
    })
}

#[cfg(not(target_os = "linux"))]
fn enforce<T: Send>(_: &OpenPaths, _: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests;
