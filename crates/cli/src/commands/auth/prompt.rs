//! Asks for a secret without echo.

use std::io::{self, Write};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::enable_raw_mode;

use myclaw_front::exit::CliError;
use myclaw_front::terminal;

/// Longest text that is taken.
const MAX_CHARS: usize = 16 * 1024;

/// Restores the terminal when dropped.
struct RawMode;

impl Drop for RawMode {
    fn drop(&mut self) {
        terminal::restore();
        drop(writeln!(io::stderr()));
    }
}

/// Asks on standard error and reads a line that is not shown.
///
/// # Errors
/// The user pressed Ctrl-C, or the terminal cannot be read.
pub(in crate::commands) fn read_unseen(question: &str) -> Result<String, CliError> {
    let unreadable = |error: io::Error| {
        CliError::failure(format!(
            "cannot read from the terminal: {error}; pipe the key in instead"
        ))
    };
    // Echo is turned off first, so that input typed ahead is not shown either.
    enable_raw_mode().map_err(unreadable)?;
    let _raw_mode = RawMode;
    drop(write!(io::stderr(), "{question}"));
    drop(io::stderr().flush());
    let mut text = String::new();
    loop {
        let event = read().map_err(unreadable)?;
        let Event::Key(key) = event else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return Ok(text),
            KeyCode::Char('c' | 'd') if is_control => {
                let mut given_up = CliError::aborted();
                given_up.message = "no key was kept".to_owned();
                return Err(given_up);
            }
            KeyCode::Char('u') if is_control => text.clear(),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(character) if text.len() < MAX_CHARS => text.push(character),
            _ => {}
        }
    }
}
