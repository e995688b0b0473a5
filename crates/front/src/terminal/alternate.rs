//! The second screen of a terminal, without a history: what was on the first comes back afterwards.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Switches to the second screen, and hides the cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// Switches back.
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// Whether the second screen is shown.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// The second screen, as long as this lives.
#[derive(Debug)]
pub struct AlternateScreen(());

impl AlternateScreen {
    /// Switches to it.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn enter() -> io::Result<Self> {
        IS_SHOWN.store(true, Ordering::SeqCst);
        write(ENTER)?;
        Ok(Self(()))
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        leave();
    }
}

/// Switches back if the second screen is shown.
pub(super) fn leave() {
    if IS_SHOWN.swap(false, Ordering::SeqCst) {
        // The error is ignored: the terminal is gone.
        let _ = write(LEAVE);
    }
}

fn write(sequence: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(sequence)?;
    stdout.flush()
}
