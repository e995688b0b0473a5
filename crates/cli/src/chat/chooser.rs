//! Lets the user choose one line of a list, on a screen of its own.

use std::io::{self, Write};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::pager::key_length;
use crate::interrupt::Interrupts;
use crate::terminal::{AlternateScreen, Keyboard, Paint, Size, Style, escaped, truncated};

/// How often the size of the terminal is looked at.
const SIZE_INTERVAL: Duration = Duration::from_millis(250);
/// The last row of the screen.
const HELP: &str = "Up, Down, PgUp, PgDn; Enter chooses; Esc leaves";

/// Shows `lines` below `title` and waits for a choice; `None` if the user chose nothing or a signal came.
pub(super) async fn choose(
    interrupts: &Interrupts,
    title: &str,
    lines: &[String],
    start: usize,
) -> Option<usize> {
    let mut keyboard = Keyboard::listen().ok()?;
    let closed = CancellationToken::new();
    let _armed = interrupts.arm(closed.clone());
    let list = List { title, lines, at: start.min(lines.len().saturating_sub(1)) };
    tokio::select! {
        // If the terminal is gone, the next read of the prompt says so.
        chosen = list.show(&mut keyboard) => chosen.ok().flatten(),
        () = closed.cancelled() => None,
    }
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
enum Pressed {
    Moved,
    Chose,
    Left,
}

struct List<'a> {
    title: &'a str,
    lines: &'a [String],
    at: usize,
}

impl List<'_> {
    async fn show(mut self, keyboard: &mut Keyboard) -> io::Result<Option<usize>> {
        let _screen = AlternateScreen::enter()?;
        let mut size = Size::current();
        self.draw(size)?;
        loop {
            let keys = match tokio::time::timeout(SIZE_INTERVAL, keyboard.read_keys()).await {
                Ok(keys) => keys?,
                Err(_) if Size::current() == size => continue,
                Err(_) => Vec::new(),
            };
            size = Size::current();
            let mut rest = keys.as_slice();
            while !rest.is_empty() {
                let (key, others) = rest.split_at(key_length(rest));
                match self.press(key, size) {
                    Pressed::Moved => {}
                    Pressed::Chose => return Ok(Some(self.at)),
                    Pressed::Left => return Ok(None),
                }
                rest = others;
            }
            self.draw(size)?;
        }
    }

    /// Rows for lines.
    fn height(size: Size) -> usize {
        size.rows.saturating_sub(2).max(1)
    }

    fn press(&mut self, key: &[u8], size: Size) -> Pressed {
        let (last, page) = (self.lines.len().saturating_sub(1), Self::height(size));
        self.at = match key {
            b"\r" | b"\n" => return Pressed::Chose,
            b"q" | b"\x1b" => return Pressed::Left,
            b"\x1b[A" | b"\x1bOA" | b"k" => self.at.saturating_sub(1),
            b"\x1b[B" | b"\x1bOB" | b"j" => (self.at + 1).min(last),
            b"\x1b[5~" => self.at.saturating_sub(page),
            b"\x1b[6~" => (self.at + page).min(last),
            b"\x1b[H" | b"\x1bOH" | b"g" => 0,
            b"\x1b[F" | b"\x1bOF" | b"G" => last,
            _ => self.at,
        };
        Pressed::Moved
    }

    fn draw(&self, size: Size) -> io::Result<()> {
        let mut stdout = io::stdout();
        stdout.write_all(self.picture(size, Paint::for_stream(&stdout)).as_bytes())?;
        stdout.flush()
    }

    fn picture(&self, size: Size, paint: Paint) -> String {
        let columns = size.columns.saturating_sub(1);
        let mut out = String::from("\x1b[H\x1b[2J");
        out.push_str(&paint.paint(Style::Bold, &truncated(self.title, columns)));
        let height = Self::height(size);
        let top = (self.at + 1).saturating_sub(height);
        for (index, line) in self.lines.iter().enumerate().skip(top).take(height) {
            let mark = if index == self.at { "> " } else { "  " };
            let line = escaped(line).replace(['\n', '\t'], " ");
            let line = truncated(&format!("{mark}{line}"), columns);
            out.push_str("\r\n");
            match index == self.at {
                true => out.push_str(&paint.paint(Style::Bold, &line)),
                false => out.push_str(&line),
            }
        }
        out.push_str(&format!("\x1b[{};1H", size.rows));
        out.push_str(&paint.paint(Style::Heading, &truncated(HELP, columns)));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{List, Pressed};
    use crate::terminal::{Paint, Size};

    const SIZE: Size = Size { columns: 12, rows: 5 };

    #[test]
    fn the_chosen_line_stays_in_view() {
        let lines: Vec<String> = (0..9).map(|number| format!("line {number}")).collect();
        let mut list = List { title: "Which?", lines: &lines, at: 0 };
        let rows = |list: &List<'_>| {
            let mut screen = vt100::Parser::new(5, 12, 0);
            screen.process(list.picture(SIZE, Paint::Styled).as_bytes());
            screen.screen().rows(0, 12).collect::<Vec<_>>()
        };
        assert_eq!(rows(&list), ["Which?", "> line 0", "  line 1", "  line 2", "Up, Down, …"]);
        for (key, first, chosen) in [
            (&b"\x1b[B"[..], "  line 0", 1),
            (b"\x1b[6~", "  line 2", 4),
            (b"G", "  line 6", 8),
            (b"\x1b[B", "  line 6", 8),
            (b"\x1b[A", "  line 5", 7),
        ] {
            assert_eq!(list.press(key, SIZE), Pressed::Moved);
            assert_eq!((rows(&list)[1].as_str(), list.at), (first, chosen), "{key:?}");
        }
        assert_eq!(list.press(b"\r", SIZE), Pressed::Chose);
        assert_eq!(list.press(b"\x1b", SIZE), Pressed::Left);
    }
}
