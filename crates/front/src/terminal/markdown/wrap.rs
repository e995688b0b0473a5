//! Breaks styled text into lines.

use super::line::{Line, Piece, Spaces, Styles, width_of};

/// Joins the characters around it into one glyph; a line is never broken after it.
const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Breaks `pieces` into lines of at most `columns` columns: at spaces, before wide characters (scripts that are written
/// without spaces), and inside a word only where it is longer than a line.
pub(super) fn wrap(pieces: &[Piece], columns: usize) -> Vec<Line> {
    let mut wrapper = Wrapper {
        columns: columns.max(1),
        lines: Vec::new(),
        line: Line::default(),
        word: Vec::new(),
        word_width: 0,
        space: None,
    };
    for piece in pieces {
        for char in piece.text.chars() {
            wrapper.push(char, piece);
        }
    }
    wrapper.end_word();
    wrapper.end_line();
    wrapper.lines
}

struct Wrapper {
    columns: usize,
    lines: Vec<Line>,
    line: Line,
    /// The word that is not on the line yet.
    word: Vec<(char, Styles)>,
    word_width: usize,
    /// The styles of the space before the word, if there is one.
    space: Option<Styles>,
}

impl Wrapper {
    fn push(&mut self, char: char, piece: &Piece) {
        match char {
            '\n' => {
                self.end_word();
                self.end_line();
            }
            ' ' | '\t' if piece.spaces == Spaces::Separate => {
                self.end_word();
                self.space = Some(piece.styles);
            }
            char => {
                let width = width_of(char);
                let joined = self.word.last().is_some_and(|(last, _)| *last == ZERO_WIDTH_JOINER);
                if width > 1 && !joined {
                    self.end_word();
                }
                self.word.push((char, piece.styles));
                self.word_width += width;
            }
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let space = self.space.take();
        let before = if self.line.width() == 0 {
            0
        } else {
            self.line.width() + usize::from(space.is_some())
        };
        if before + self.word_width > self.columns && self.line.width() > 0 {
            self.end_line();
        } else if let Some(styles) = space.filter(|_| self.line.width() > 0) {
            self.line.push(' ', styles);
        }
        for (char, styles) in std::mem::take(&mut self.word) {
            if self.line.width() > 0 && self.line.width() + width_of(char) > self.columns {
                self.end_line();
            }
            self.line.push(char, styles);
        }
        self.word_width = 0;
    }

    fn end_line(&mut self) {
        self.space = None;
        self.lines.push(std::mem::take(&mut self.line));
    }
}
