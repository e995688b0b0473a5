//! The terminal: safe output, drawing and its abilities.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

mod alternate;
mod colour;
mod escape;
pub mod highlight;
pub mod images;
#[cfg_attr(windows, path = "terminal/windows/keyboard.rs")]
mod keyboard;
#[cfg_attr(
    windows,
    expect(dead_code, reason = "only the relay reads keys so, which Windows does not need")
)]
mod keys;
mod markdown;
mod output;
mod paste;
#[cfg_attr(windows, path = "terminal/windows/relay.rs")]
mod relay;
mod sixel;
mod spinner;
mod styled;
#[cfg_attr(windows, path = "terminal/windows/suspend.rs")]
mod suspend;
mod theme;
mod title;
mod wrapped;

pub use alternate::AlternateScreen;
pub use colour::{Paint, Style};
pub use escape::{Escaper, escaped};
pub use keyboard::{Keyboard, forget_typed};
pub use keys::{ENDING_LETTERS, bind_keys};
pub use markdown::{MarkdownStream, rendered};
pub use output::{Destination, JsonMode, Output};
pub use paste::{FocusReports, PasteMarks};
pub use relay::{Relay, end_was_read, line_is_drawn};
pub use spinner::{LiveLine, format_elapsed, truncated};
pub use styled::StyledLine;
pub use suspend::suspend;
pub use theme::{Palette, choose_palette};
pub use title::{Call, Title, notify, set_title};
pub use wrapped::wrapped;

/// Longest wait for the last output on an abrupt exit.
const LAST_WRITE: Duration = Duration::from_millis(200);
/// Columns to assume if the terminal does not report its size.
const DEFAULT_COLUMNS: u16 = 80;
/// Rows to assume if the terminal does not report its size.
const DEFAULT_ROWS: u16 = 24;

/// Size of the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Columns, at least 1.
    pub columns: usize,
    /// Rows, at least 1.
    pub rows: usize,
}

impl Size {
    /// The current size; 80 by 24 if the terminal does not report it.
    pub fn current() -> Self {
        let (columns, rows) =
            crossterm::terminal::size().unwrap_or((DEFAULT_COLUMNS, DEFAULT_ROWS));
        // A terminal whose size was never set reports 0.
        let or_default =
            |value: u16, default: u16| usize::from(if value == 0 { default } else { value });
        Self { columns: or_default(columns, DEFAULT_COLUMNS), rows: or_default(rows, DEFAULT_ROWS) }
    }
}

/// Takes the terminal out of raw mode and shows the cursor. Called on abrupt exits: a panic, a second Ctrl-C. No-op if
/// raw mode was never on.
pub fn restore() {
    relay::restore();
    keyboard::restore_own_mode();
    // The main thread may hold standard output while it waits for a terminal that takes nothing.
    let (begun, is_done) = mpsc::channel::<()>();
    let ending = thread::Builder::new().spawn(move || {
        let _until_the_end = begun;
        alternate::leave();
        paste::end();
        title::restore();
    });
    if ending.is_ok() {
        // The error says that the thread has ended, or waits in vain.
        let _ = is_done.recv_timeout(LAST_WRITE);
    }
    if crossterm::terminal::is_raw_mode_enabled().unwrap_or(false) {
        // Nothing can be done about a failure on the way out.
        drop(crossterm::terminal::disable_raw_mode());
        drop(crossterm::execute!(
            std::io::stdout(),
            crossterm::event::DisableBracketedPaste,
            crossterm::cursor::Show
        ));
    }
}
