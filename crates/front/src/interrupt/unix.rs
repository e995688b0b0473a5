//! Unix: signals.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGXFSZ;
pub(super) use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::flag;
pub(super) use signal_hook::iterator::{Handle, Signals};

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail like one to a full disk, instead of killing the
/// process half-way through a line. A handler is used because child processes would inherit an ignored signal.
pub fn survive_file_size_limit() {
    // The write returns the error, so the flag is not read. If the handler cannot be installed, the limit still kills.
    drop(flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))));
}
