//! Lines on the screen, and the styled text that they consist of.

use unicode_width::UnicodeWidthChar;

use crate::terminal::{Paint, Style};

/// Columns between two tab stops of a terminal.
const TAB_STOP: usize = 8;

/// One line: characters with their styles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    cells: Vec<(char, Styles)>,
    width: usize,
}

impl Line {
    /// A line of `text` in `styles`.
    pub(super) fn of(text: &str, styles: Styles) -> Self {
        let mut line = Self::default();
        line.push_str(text, styles);
        line
    }

    /// Columns it takes.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Rows it takes on a terminal of `columns`.
    pub(super) fn rows(&self, columns: usize) -> usize {
        self.width.div_ceil(columns).max(1)
    }

    /// Adds a character.
    pub(super) fn push(&mut self, char: char, styles: Styles) {
        self.cells.push((char, styles));
        self.width += match char {
            '\t' => TAB_STOP - self.width % TAB_STOP,
            char => width_of(char),
        };
    }

    /// Adds text.
    pub(super) fn push_str(&mut self, text: &str, styles: Styles) {
        text.chars().for_each(|char| self.push(char, styles));
    }

    /// Adds another line's text.
    pub(super) fn push_line(&mut self, line: &Self) {
        line.cells.iter().for_each(|(char, styles)| self.push(*char, *styles));
    }

    /// How many characters of `self` are left to write if `shown` is on the screen already; `None` if `shown` is not
    /// the beginning of this line.
    pub(super) fn growth_over(&self, shown: &Self) -> Option<usize> {
        self.cells.starts_with(&shown.cells).then(|| self.cells.len() - shown.cells.len())
    }

    /// Appends the sequence that writes the last `count` characters, and ends with all styles off.
    pub(super) fn write_last(&self, count: usize, paint: Paint, out: &mut String) {
        let mut current = Styles::default();
        for (char, styles) in &self.cells[self.cells.len().saturating_sub(count)..] {
            if *styles != current {
                if current != Styles::default() {
                    paint.reset(out);
                }
                styles.iter().for_each(|style| paint.start(style, out));
                current = *styles;
            }
            out.push(*char);
        }
        if current != Styles::default() {
            paint.reset(out);
        }
    }

    /// Appends the sequence that writes the whole line.
    pub(super) fn write(&self, paint: Paint, out: &mut String) {
        self.write_last(self.cells.len(), paint, out);
    }
}

/// A set of styles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Styles(u32);

impl Styles {
    /// These and `style`.
    pub(super) fn with(self, style: Style) -> Self {
        Self(self.0 | 1 << style as u16)
    }

    fn iter(self) -> impl Iterator<Item = Style> {
        use Style::{
            Bad, Bold, Code, Comment, Constant, Dim, Function, Good, Heading, Italic, Keyword,
            Quoted, Strike, Type, Underline, Warning,
        };
        [
            Bold, Italic, Strike, Underline, Dim, Code, Heading, Good, Warning, Bad, Keyword,
            Quoted, Constant, Comment, Function, Type,
        ]
        .into_iter()
        .filter(move |style| self.0 & 1 << *style as u16 != 0)
    }
}

/// Text in one style. A line feed in it is a line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) styles: Styles,
    pub(super) spaces: Spaces,
}

/// What the spaces of a piece mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spaces {
    /// Any number of them is one, and a line may be broken there.
    Separate,
    /// They belong to the text, as in code.
    Keep,
}

/// Columns of one character.
pub(super) fn width_of(char: char) -> usize {
    char.width().unwrap_or(0)
}
