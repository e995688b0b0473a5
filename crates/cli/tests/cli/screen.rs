//! A chat on a terminal.

use myclaw_testkit::{TempHome, Terminal};

use crate::myclaw;

/// Widths in columns: a phone, a classic terminal, a wide screen.
pub(crate) const WIDTHS: [u16; 3] = [40, 80, 200];
pub(crate) const ROWS: u16 = 30;

/// A chat at its prompt, in a terminal of 100 columns.
pub(crate) fn chat(home: &TempHome) -> Terminal {
    chat_at(home, 100)
}

/// The same at a width.
pub(crate) fn chat_at(home: &TempHome, columns: u16) -> Terminal {
    let mut terminal = Terminal::spawn_sized(&myclaw(home, &[]), columns, ROWS);
    terminal.expect("You: ");
    terminal
}

/// All that was written to the terminal.
pub(crate) fn raw(terminal: &Terminal) -> String {
    String::from_utf8_lossy(&terminal.raw()).into_owned()
}
