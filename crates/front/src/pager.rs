//! Shows the outputs of tools in full, on a screen of its own: Ctrl-O opens it and closes it again.

use std::io::{self, Write};
use std::ops::Range;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use unicode_width::UnicodeWidthChar;

use crate::interrupt::Interrupts;
use crate::terminal::{AlternateScreen, Keyboard, Paint, Size, Style, StyledLine, truncated};

/// How often the size of the terminal is looked at.
const SIZE_INTERVAL: Duration = Duration::from_millis(250);
/// The last row of the screen.
const HELP: &str = "Up, Down, PgUp, PgDn, Home, End; Ctrl-O or q closes";

/// What is said if there is nothing to show.
pub const NOTHING: &str = "no tool has run in this chat";

/// Shows `lines` as [`show`] does while no turn runs. A signal closes the page too.
pub async fn show_at_prompt(interrupts: &Interrupts, lines: &[StyledLine], start: usize) {
    let Ok(mut keyboard) = Keyboard::listen() else { return };
    let closed = CancellationToken::new();
    let _armed = interrupts.arm(closed.clone());
    tokio::select! {
        // If the terminal is gone, the next read of the prompt says so.
        _ = show(&mut keyboard, lines, start) => {}
        () = closed.cancelled() => {}
    }
}

/// Shows `lines` from line `start` on, until the user closes it.
///
/// # Errors
/// The terminal is gone.
pub async fn show(keyboard: &mut Keyboard, lines: &[StyledLine], start: usize) -> io::Result<()> {
    let _screen = AlternateScreen::enter()?;
    let mut page = Page::new(lines, start, Size::current());
    page.draw()?;
    loop {
        let keys = match tokio::time::timeout(SIZE_INTERVAL, keyboard.read_keys()).await {
            Ok(keys) => keys?,
            Err(_) if Size::current() == page.size => continue,
            Err(_) => Vec::new(),
        };
        let size = Size::current();
        if size != page.size {
            page = Page::new(lines, page.top_line(), size);
        }
        let mut rest = keys.as_slice();
        while !rest.is_empty() {
            let (key, others) = rest.split_at(key_length(rest));
            if page.press(key) == Pressed::Close {
                return Ok(());
            }
            rest = others;
        }
        page.draw()?;
    }
}

/// Bytes of the first of the keys that were read at once: a wheel and a key that is held send several.
pub fn key_length(keys: &[u8]) -> usize {
    let length = match keys {
        [0x1b, b'[', rest @ ..] => {
            rest.iter().position(|byte| matches!(byte, 0x40..=0x7e)).map_or(keys.len(), |at| at + 3)
        }
        [0x1b, b'O', ..] => 3,
        [0x1b, _, ..] => 2,
        _ => 1,
    };
    length.min(keys.len())
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
enum Pressed {
    Moved,
    Close,
}

struct Page {
    size: Size,
    /// The rows of all lines, and the lines that they belong to.
    rows: Vec<(StyledLine, usize)>,
    top: usize,
}

impl Page {
    fn new(lines: &[StyledLine], start: usize, size: Size) -> Self {
        let mut rows = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let ranges = cut(&line.text, size.columns.saturating_sub(1).max(1));
            rows.extend(ranges.into_iter().map(|range| (line.part(range), at)));
        }
        let top = rows.iter().position(|row| row.1 >= start).unwrap_or(0);
        let mut page = Self { size, rows, top };
        page.move_to(top);
        page
    }

    fn top_line(&self) -> usize {
        self.rows.get(self.top).map_or(0, |row| row.1)
    }

    /// Rows of text on the screen.
    fn height(&self) -> usize {
        self.size.rows.saturating_sub(1).max(1)
    }

    fn move_to(&mut self, top: usize) {
        self.top = top.min(self.rows.len().saturating_sub(self.height()));
    }

    fn press(&mut self, keys: &[u8]) -> Pressed {
        let (top, height) = (self.top, self.height());
        match keys {
            b"q" | b"Q" | b"\x1b" | b"\x0f" => return Pressed::Close,
            b"\x1b[A" | b"\x1bOA" | b"k" => self.move_to(top.saturating_sub(1)),
            b"\x1b[B" | b"\x1bOB" | b"j" | b"\r" | b"\n" => self.move_to(top + 1),
            b"\x1b[5~" | b"b" => self.move_to(top.saturating_sub(height)),
            b"\x1b[6~" | b" " => self.move_to(top + height),
            b"\x1b[H" | b"\x1bOH" | b"\x1b[1~" | b"g" => self.move_to(0),
            b"\x1b[F" | b"\x1bOF" | b"\x1b[4~" | b"G" => self.move_to(self.rows.len()),
            _ => {}
        }
        Pressed::Moved
    }

    fn draw(&self) -> io::Result<()> {
        let mut stdout = io::stdout();
        stdout.write_all(self.picture(Paint::for_stream(&stdout)).as_bytes())?;
        stdout.flush()
    }

    fn picture(&self, paint: Paint) -> String {
        let mut out = String::from("\x1b[H\x1b[2J");
        for (row, _) in self.rows.iter().skip(self.top).take(self.height()) {
            row.paint(paint, &mut out);
            out.push_str("\r\n");
        }
        out.push_str(&format!("\x1b[{};1H", self.size.rows));
        let help = truncated(HELP, self.size.columns.saturating_sub(1));
        out.push_str(&paint.paint(Style::Heading, &help));
        out
    }
}

/// The rows of `line` in `columns` columns, in bytes: it is broken behind spaces, and inside a word only where that is
/// longer than a row. One row if it is empty.
fn cut(line: &str, columns: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let (mut start, mut width) = (0, 0);
    // Behind the last space of the row, and the width up to there.
    let mut space = None;
    for (at, char) in line.char_indices() {
        let char_width = char.width().unwrap_or(0);
        if width + char_width > columns {
            let (end, used) = space.take().unwrap_or((at, width));
            rows.push(start..start + line[start..end].trim_end().len());
            (start, width) = (end, width - used);
        }
        width += char_width;
        if char == ' ' {
            space = Some((at + 1, width));
        }
    }
    rows.push(start..line.len());
    rows
}

#[cfg(test)]
mod tests;
