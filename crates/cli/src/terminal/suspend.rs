//! Ctrl-Z: the shell goes on until the user calls the program back.

use rustix::process::{Signal, getpid, kill_process};

/// Suspends this process until it is continued. The terminal must be in its own mode. Where nobody could continue it
/// (without a shell with job control), nothing happens.
pub(crate) fn suspend() {
    // The error is ignored: then the program just goes on.
    let _ = kill_process(getpid(), Signal::TSTP);
}
