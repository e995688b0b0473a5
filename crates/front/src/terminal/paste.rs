//! Marks around pasted text, so that its line ends do not send it; and reports of the focus, so that a user who looks on
//! is not called.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks the terminal for the marks and the reports.
const BEGIN: &[u8] = b"\x1b[?2004h\x1b[?1004h";
/// Asks for neither.
const END: &[u8] = b"\x1b[?2004l\x1b[?1004l";

/// Whether the terminal was asked for the marks.
static IS_MARKED: AtomicBool = AtomicBool::new(false);

/// The terminal marks pasted text as long as this lives.
#[derive(Debug)]
pub struct PasteMarks(());

impl PasteMarks {
    /// Asks the terminal for the marks. Standard output must be that terminal.
    pub fn begin() -> Self {
        IS_MARKED.store(true, Ordering::SeqCst);
        write(BEGIN);
        Self(())
    }

    /// Does without the marks during `work`.
    pub fn lend(&self, work: impl FnOnce()) {
        end();
        work();
        IS_MARKED.store(true, Ordering::SeqCst);
        write(BEGIN);
    }
}

impl Drop for PasteMarks {
    fn drop(&mut self) {
        end();
    }
}

/// The terminal reports its focus as long as this lives, without marks: the line editor asks for those.
#[derive(Debug)]
pub struct FocusReports(());

impl FocusReports {
    /// Asks the terminal for the reports. Standard output must be that terminal.
    pub fn begin() -> Self {
        IS_MARKED.store(true, Ordering::SeqCst);
        write(b"\x1b[?1004h");
        Self(())
    }
}

impl Drop for FocusReports {
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
