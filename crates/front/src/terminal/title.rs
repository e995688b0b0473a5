//! The title of the terminal, its bell and its notifications.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the title is this program's.
static IS_CHANGED: AtomicBool = AtomicBool::new(false);

/// A change of the terminal's title.
#[derive(Debug, Clone, Copy)]
pub enum Title<'a> {
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
pub fn set_title(title: Title<'_>) {
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

/// How the user is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// By the bell alone.
    Bell,
    /// By the bell, and by a desktop notification where the terminal shows one.
    Desktop,
}

/// Calls the user, who may look elsewhere.
pub fn notify(call: Call, text: &str) {
    let mut sequence = String::from("\x07");
    if call == Call::Desktop {
        let of = |name| std::env::var(name).unwrap_or_default();
        let (terminal, program) = (of("TERM"), of("TERM_PROGRAM"));
        sequence.push_str(&notification(&terminal, &program, text).unwrap_or_default());
    }
    write_sequence(&sequence);
}

/// The sequence for a desktop notification: each terminal has its own. `None` where none is known.
fn notification(terminal: &str, program: &str, text: &str) -> Option<String> {
    // A semicolon would begin another field.
    let text: String =
        text.chars().filter(|char| !char.is_control()).collect::<String>().replace(';', ",");
    let begins = |names: &[&str]| names.iter().any(|name| terminal.starts_with(name));
    if begins(&["xterm-kitty"]) {
        return Some(format!("\x1b]99;;myclaw: {text}\x1b\\"));
    }
    if begins(&["foot", "rxvt"]) {
        return Some(format!("\x1b]777;notify;myclaw;{text}\x1b\\"));
    }
    let has_osc_9 =
        matches!(program, "iTerm.app" | "WezTerm" | "ghostty") || begins(&["xterm-ghostty"]);
    has_osc_9.then(|| format!("\x1b]9;myclaw: {text}\x07"))
}

/// Writes a sequence. If the terminal is gone, the next line says so.
pub(super) fn write_sequence(sequence: &str) {
    let mut stdout = io::stdout().lock();
    drop(stdout.write_all(sequence.as_bytes()).and_then(|()| stdout.flush()));
}

#[cfg(test)]
mod tests {
    use super::notification;

    #[test]
    fn each_terminal_gets_its_own_notification() {
        for (terminal, program, expected) in [
            ("xterm-kitty", "", Some("\x1b]99;;myclaw: done, ok\x1b\\")),
            ("foot", "", Some("\x1b]777;notify;myclaw;done, ok\x1b\\")),
            ("xterm-256color", "iTerm.app", Some("\x1b]9;myclaw: done, ok\x07")),
            ("xterm-256color", "", None),
            ("tmux-256color", "tmux", None),
        ] {
            let made = notification(terminal, program, "do\x1bne; ok");
            assert_eq!(made.as_deref(), expected, "{terminal}");
        }
    }
}
