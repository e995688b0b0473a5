//! The live line: one line at the bottom that shows the current activity and is erased afterwards.

use std::time::Duration;

use unicode_width::UnicodeWidthChar;

use super::{Paint, Style, escaped};

/// The frames of the spinner; ten frames of a tenth of a second are one turn a second.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The text of the live line.
#[derive(Debug, Default)]
pub(crate) struct LiveLine {
    text: String,
    frame: usize,
    drawn: bool,
}

impl LiveLine {
    /// How often it moves.
    pub(crate) const TICK: Duration = Duration::from_millis(100);

    /// Sets the text. `text` may come from a model.
    pub(crate) fn set(&mut self, text: &str) {
        self.text = escaped(text).replace(['\n', '\t'], " ");
    }

    /// Appends the sequence that draws it, with `elapsed`, in at most `columns` columns.
    pub(crate) fn draw(
        &mut self,
        elapsed: Duration,
        columns: usize,
        paint: Paint,
        out: &mut String,
    ) {
        let time = format_elapsed(elapsed);
        // The spinner, two spaces, the time, and the last column, where some terminals wrap too early.
        let room = columns.saturating_sub(time.len() + 5);
        self.frame = (self.frame + 1) % FRAMES.len();
        out.push('\r');
        paint.start(Style::Dim, out);
        out.push(FRAMES[self.frame]);
        out.push(' ');
        out.push_str(&truncated(&self.text, room));
        out.push_str("  ");
        out.push_str(&time);
        paint.reset(out);
        out.push_str("\x1b[K");
        self.drawn = true;
    }

    /// Appends the sequence that erases it, if it was drawn.
    pub(crate) fn clear(&mut self, out: &mut String) {
        if std::mem::take(&mut self.drawn) {
            out.push_str("\r\x1b[K");
        }
    }
}

/// `text`, cut to `columns` columns with an ellipsis.
pub(crate) fn truncated(text: &str, columns: usize) -> String {
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
pub(crate) fn format_elapsed(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        0..60 => format!("{:.1} s", elapsed.as_secs_f64()),
        seconds @ 60..600 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests;
