//! The live line: one line that shows the current activity.

use std::time::Duration;

use unicode_width::UnicodeWidthChar;

use super::escaped;

/// The frames of the spinner; ten frames of a tenth of a second are one turn a second.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The text of the live line.
#[derive(Debug, Default)]
pub struct LiveLine {
    text: String,
    frame: usize,
}

impl LiveLine {
    /// How often it moves.
    pub const TICK: Duration = Duration::from_millis(100);

    /// Sets the text. `text` may come from a model.
    pub fn set(&mut self, text: &str) {
        self.text = escaped(text).replace(['\n', '\t'], " ");
    }

    /// The next picture of it, with `elapsed`, in at most `columns` columns.
    pub fn next(&mut self, elapsed: Duration, columns: usize) -> String {
        let time = format_elapsed(elapsed);
        // The spinner, a space, and two spaces before the time.
        let room = columns.saturating_sub(time.len() + 4);
        self.frame = (self.frame + 1) % FRAMES.len();
        format!("{} {}  {time}", FRAMES[self.frame], truncated(&self.text, room))
    }
}

/// `text`, cut to `columns` columns with an ellipsis.
pub fn truncated(text: &str, columns: usize) -> String {
    let mut width = 0;
    let mut fits = 0;
    for (at, char) in text.char_indices() {
        let char_width = char.width().unwrap_or(0);
        if width + char_width > columns {
            // Give back characters until the ellipsis fits.
            return format!("{}…", &text[..fits]);
        }
        width += char_width;
        if width < columns {
            fits = at + char.len_utf8();
        }
    }
    text.to_owned()
}

/// `3.2 s`, `75 s`, `12 min`.
pub fn format_elapsed(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        0..60 => format!("{:.1} s", elapsed.as_secs_f64()),
        seconds @ 60..600 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests;
