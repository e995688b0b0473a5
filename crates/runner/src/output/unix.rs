//! Unix: noticing that standard output was closed.

use std::io;
use std::os::fd::AsFd as _;

use rustix::event::{PollFd, PollFlags, poll};
use tokio_util::sync::CancellationToken;

/// Stack of the thread that watches the output, which only sleeps in a system call.
const STACK_BYTES: usize = 64 * 1024;

/// Fires `gone` when the other end of standard output is closed, also while nothing is written to it.
pub(crate) fn watch_standard_output(gone: CancellationToken) {
    let watch = move || {
        let stdout = io::stdout();
        loop {
            // No events are asked for, so it returns for an error or a hang-up only.
            let mut watched = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
            match poll(&mut watched, None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
                Ok(_) if watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) => {
                    return gone.cancel();
                }
                Ok(_) => return,
            }
        }
    };
    // Without the thread a closed output is noticed at the next block.
    drop(std::thread::Builder::new().stack_size(STACK_BYTES).spawn(watch));
}
