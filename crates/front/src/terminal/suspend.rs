//! Ctrl-Z: the shell continues until the user calls the program back.

use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::raise;

/// Suspends this process until it is continued. The terminal must be in its own mode. Where nobody could continue it
/// (without a shell with job control), nothing happens.
pub fn suspend() {
    // The signal goes to this thread, which stops here: one for the process may reach another thread first, and this one
    // would change the terminal's mode again before all stop. The error is ignored: then the program just continues.
    let _ = raise(SIGTSTP);
}
