//! The title and the bell of the terminal.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the title is this program's.
static IS_CHANGED: AtomicBool = AtomicBool::new(false);

/// A change of the terminal's title.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Title<'a> {
    /// Remembers the title that it has.
    Begin,
    /// The user is waited for, in this directory.
    Waiting(&'a str),
    /// The agent works in this directory.
    Working(&'a str),
    /// The remembered one.
    Restore,
}

/// Changes the title of the terminal, if it has one.
pub(crate) fn set_title(title: Title<'_>) {
    IS_CHANGED.store(!matches!(title, Title::Restore), Ordering::SeqCst);
    let plain = |text: &str| text.chars().filter(|char| !char.is_control()).collect::<String>();
    let sequence = match title {
        Title::Begin => "\x1b[22;0t".to_owned(),
        Title::Waiting(place) => format!("\x1b]0;myclaw: {}\x07", plain(place)),
        Title::Working(place) => format!("\x1b]0;● myclaw: {}\x07", plain(place)),
        Title::Restore => "\x1b]0;\x07\x1b[23;0t".to_owned(),
    };
    write_sequence(&sequence);
}

/// Gives the terminal its own title back if it was changed.
pub(super) fn restore() {
    if IS_CHANGED.load(Ordering::SeqCst) {
        set_title(Title::Restore);
    }
}

/// Rings the bell, which many terminals show as a notification.
pub(crate) fn ring() {
    write_sequence("\x07");
}

/// Writes a sequence. If the terminal is gone, the next line says so.
fn write_sequence(sequence: &str) {
    let mut stdout = io::stdout().lock();
    drop(stdout.write_all(sequence.as_bytes()).and_then(|()| stdout.flush()));
}
