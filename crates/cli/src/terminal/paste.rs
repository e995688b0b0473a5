//! Marks around pasted text, so that its line ends do not send it.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks the terminal for the marks.
const BEGIN: &[u8] = b"\x1b[?2004h";
/// Asks for no marks.
const END: &[u8] = b"\x1b[?2004l";

/// Whether the terminal was asked for the marks.
static IS_MARKED: AtomicBool = AtomicBool::new(false);

/// The terminal marks pasted text as long as this lives.
#[derive(Debug)]
pub(crate) struct PasteMarks(());

impl PasteMarks {
    /// Asks the terminal for the marks. Standard output must be that terminal.
    pub(crate) fn begin() -> Self {
        IS_MARKED.store(true, Ordering::SeqCst);
        write(BEGIN);
        Self(())
    }
}

impl Drop for PasteMarks {
    fn drop(&mut self) {
        end();
    }
}

/// Asks for no marks if there are any.
pub(super) fn end() {
    if IS_MARKED.swap(false, Ordering::SeqCst) {
        write(END);
    }
}

/// Writes a sequence. The error is ignored: the terminal is gone.
fn write(sequence: &[u8]) {
    let mut stdout = io::stdout();
    drop(stdout.write_all(sequence).and_then(|()| stdout.flush()));
}
