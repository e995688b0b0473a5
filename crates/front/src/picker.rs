//! A list on a screen of its own, from which the user chooses: typing narrows it down.

use std::io::{self, Write};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::interrupt::Interrupts;
use crate::terminal::{AlternateScreen, Keyboard, Paint, Size, Style, escaped, truncated};

/// How often the size of the terminal is looked at.
const SIZE_INTERVAL: Duration = Duration::from_millis(250);
/// Fewest columns for the name of an entry; details that leave less are not shown.
const LEAST_NAME: usize = 24;
/// Most characters of the text that is searched for.
const MOST_TYPED: usize = 200;

/// What can be chosen.
pub trait Choices {
    /// The number of entries.
    fn count(&self) -> usize;
    /// The text in which an entry is found, in lower case.
    fn search_text(&self, at: usize) -> &str;
    /// How an entry is shown.
    fn row(&self, at: usize) -> Row;
    /// Whether an entry is shown only when something is typed that it fits.
    fn is_folded(&self, at: usize) -> bool {
        let _ = at;
        false
    }
}

/// An entry on the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What follows the name, as far as there is room.
    pub about: String,
    /// Columns at the right, the most important one first. On a narrow screen the last ones are left out.
    pub details: Vec<String>,
}

/// The words around a list.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// Above it.
    pub title: &'static str,
    /// Below it: the keys besides the usual ones, if there are any.
    pub keys: &'static str,
    /// The control keys that end the choice, as the letters that they are pressed with.
    pub letters: &'static [char],
}

/// How a choice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picked {
    /// Enter was pressed on this entry.
    Entry(usize),
    /// Control and one of the letters were pressed on this entry.
    With(char, usize),
    /// The list was left, or the terminal is gone.
    Nothing,
}

/// Lets the user choose. The entry `current` is marked at first. A signal leaves the list too.
pub async fn pick(
    interrupts: &Interrupts,
    words: Words,
    choices: &dyn Choices,
    current: usize,
) -> Picked {
    let Ok(mut keyboard) = Keyboard::listen() else { return Picked::Nothing };
    let left = CancellationToken::new();
    let _armed = interrupts.arm(left.clone());
    tokio::select! {
        picked = show(&mut keyboard, words, choices, current) => picked.unwrap_or(Picked::Nothing),
        () = left.cancelled() => Picked::Nothing,
    }
}

async fn show(
    keyboard: &mut Keyboard,
    words: Words,
    choices: &dyn Choices,
    current: usize,
) -> io::Result<Picked> {
    let _screen = AlternateScreen::enter()?;
    let mut list = List::new(words, choices, current);
    let mut size = Size::current();
    list.draw(size)?;
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
            if let Some(picked) = list.press(key, size) {
                return Ok(picked);
            }
            rest = others;
        }
        list.draw(size)?;
    }
}

/// Bytes of the first key, or of the text up to the next key that is no text.
fn key_length(keys: &[u8]) -> usize {
    let is_text = |byte: &u8| *byte >= b' ' && *byte != 0x7f;
    let length = match keys {
        [0x1b, b'[', rest @ ..] => {
            rest.iter().position(|byte| matches!(byte, 0x40..=0x7e)).map_or(keys.len(), |at| at + 3)
        }
        [0x1b, b'O', ..] => 3,
        [0x1b, ..] => 1,
        [first, ..] if is_text(first) => {
            keys.iter().position(|byte| !is_text(byte)).unwrap_or(keys.len())
        }
        _ => 1,
    };
    length.min(keys.len())
}

/// The list as it is shown.
struct List<'a> {
    words: Words,
    choices: &'a dyn Choices,
    typed: String,
    /// The entries that fit what was typed.
    found: Vec<usize>,
    /// The marked one of them.
    at: usize,
    /// The first one on the screen.
    top: usize,
}

impl<'a> List<'a> {
    fn new(words: Words, choices: &'a dyn Choices, current: usize) -> Self {
        let mut list =
            Self { words, choices, typed: String::new(), found: Vec::new(), at: 0, top: 0 };
        list.search();
        list.at = list.found.iter().position(|at| *at == current).unwrap_or(0);
        list
    }

    fn press(&mut self, key: &[u8], size: Size) -> Option<Picked> {
        let page = rows_for_entries(size);
        let last = self.found.len().saturating_sub(1);
        match key {
            b"\x1b" | b"\x03" => return Some(Picked::Nothing),
            b"\r" | b"\n" => return self.found.get(self.at).copied().map(Picked::Entry),
            b"\x1b[A" | b"\x1bOA" | b"\x10" => self.at = self.at.saturating_sub(1),
            b"\x1b[B" | b"\x1bOB" | b"\x0e" => self.at = last.min(self.at + 1),
            b"\x1b[5~" => self.at = self.at.saturating_sub(page),
            b"\x1b[6~" => self.at = last.min(self.at + page),
            b"\x1b[H" | b"\x1bOH" | b"\x1b[1~" => self.at = 0,
            b"\x1b[F" | b"\x1bOF" | b"\x1b[4~" => self.at = last,
            b"\x7f" | b"\x08" => {
                self.typed.pop();
                self.search();
            }
            b"\x15" => {
                self.typed.clear();
                self.search();
            }
            [control @ 1..=26] => {
                let letter = char::from(control + b'a' - 1);
                if let (true, Some(at)) =
                    (self.words.letters.contains(&letter), self.found.get(self.at))
                {
                    return Some(Picked::With(letter, *at));
                }
            }
            [0x1b, ..] => {}
            text => {
                let room = MOST_TYPED.saturating_sub(self.typed.chars().count());
                let text = String::from_utf8_lossy(text);
                self.typed.extend(text.chars().filter(|char| !char.is_control()).take(room));
                self.search();
            }
        }
        None
    }

    /// Finds the entries that contain all typed words.
    fn search(&mut self) {
        let typed = self.typed.to_lowercase();
        let words: Vec<&str> = typed.split_whitespace().collect();
        let fits = |at: &usize| {
            if words.is_empty() {
                return !self.choices.is_folded(*at);
            }
            let text = self.choices.search_text(*at);
            words.iter().all(|word| text.contains(word))
        };
        self.found = (0..self.choices.count()).filter(fits).collect();
        (self.at, self.top) = (0, 0);
    }

    fn draw(&mut self, size: Size) -> io::Result<()> {
        let mut stdout = io::stdout();
        let picture = self.picture(size, Paint::for_stream(&stdout));
        stdout.write_all(picture.as_bytes())?;
        stdout.flush()
    }

    fn picture(&mut self, size: Size, paint: Paint) -> String {
        let columns = size.columns.saturating_sub(1).max(1);
        let height = rows_for_entries(size);
        if self.at < self.top {
            self.top = self.at;
        } else if self.at >= self.top + height {
            self.top = self.at + 1 - height;
        }
        let (found, all) = (self.found.len(), self.choices.count());
        let count = match found == all {
            true => format!("{all}"),
            false if self.typed.is_empty() => format!("{found} of {all}; type to find the others"),
            false => format!("{found} of {all}"),
        };
        let head = truncated(&format!("{} ({count})", self.words.title), columns);
        let typed = truncated(&format!("> {}", escaped(&self.typed)), columns);
        let mut out = format!(
            "\x1b[H\x1b[2J{}\r\n{}\r\n",
            paint.paint(Style::Heading, &head),
            paint.paint(Style::Bold, &typed)
        );
        let shown: Vec<Row> =
            self.found.iter().skip(self.top).take(height).map(|at| self.choices.row(*at)).collect();
        let widths = detail_widths(&shown, columns.saturating_sub(2));
        for (place, row) in shown.iter().enumerate() {
            let is_marked = self.top + place == self.at;
            let mark = if is_marked { "› " } else { "  " };
            let line = format!("{mark}{}", laid_out(row, &widths, columns.saturating_sub(2)));
            let line = truncated(line.trim_end(), columns);
            let line = line.as_str();
            out.push_str(&if is_marked { paint.paint(Style::Bold, line) } else { line.to_owned() });
            out.push_str("\r\n");
        }
        let keys = format!("Enter chooses, Esc leaves{}", self.words.keys);
        let keys = truncated(&keys, columns);
        out.push_str(&format!("\x1b[{};1H{}", size.rows, paint.paint(Style::Dim, &keys)));
        out
    }
}

/// Rows between the two above the list and the one below it.
fn rows_for_entries(size: Size) -> usize {
    size.rows.saturating_sub(3).max(1)
}

/// The widths of the columns at the right that leave enough room for the names.
fn detail_widths(rows: &[Row], columns: usize) -> Vec<usize> {
    let most = rows.iter().map(|row| row.details.len()).max().unwrap_or(0);
    let mut left = columns.saturating_sub(LEAST_NAME);
    let mut widths = Vec::new();
    for at in 0..most {
        let width = rows.iter().filter_map(|row| row.details.get(at)).map(|text| text.width());
        let width = width.max().unwrap_or(0);
        if width + 2 > left {
            break;
        }
        left -= width + 2;
        widths.push(width);
    }
    widths
}

/// The row in `columns` columns.
fn laid_out(row: &Row, widths: &[usize], columns: usize) -> String {
    let taken: usize = widths.iter().map(|width| width + 2).sum();
    let room = columns.saturating_sub(taken);
    let mut name = escaped(&row.name).into_owned();
    if !row.about.is_empty() {
        name = format!("{name}  {}", escaped(&row.about));
    }
    let name = truncated(&name.replace(['\n', '\t'], " "), room);
    let mut line = format!("{name}{}", " ".repeat(room.saturating_sub(name.width())));
    for (text, width) in row.details.iter().zip(widths) {
        line.push_str("  ");
        line.push_str(&" ".repeat(width.saturating_sub(text.width())));
        line.push_str(text);
    }
    line
}

/// The last characters of a path that fit, so that its end stays readable.
pub fn end_of_path(path: &str, columns: usize) -> String {
    if path.width() <= columns {
        return path.to_owned();
    }
    let mut width = 1;
    let mut tail: Vec<char> = Vec::new();
    for char in path.chars().rev() {
        width += char.width().unwrap_or(0);
        if width > columns {
            break;
        }
        tail.push(char);
    }
    std::iter::once('…').chain(tail.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests;
