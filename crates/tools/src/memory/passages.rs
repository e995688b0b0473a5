//! Cuts a note into passages.

use super::notes::FACTS;

/// Most characters of a passage: about as much as a sentence encoder reads (256 word pieces).
const MAX_CHARS: usize = 1_000;

/// A part of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passage {
    /// The note, as the result shows it.
    pub path: String,
    /// Its first line, from 1.
    pub first: usize,
    /// Its last line.
    pub last: usize,
    /// Its text.
    pub text: String,
}

/// The passages of a note. A heading begins a new one, and so does a fact, and a line that has no room any more. A line that is longer
/// than a passage is cut into several.
pub(super) fn passages(path: &str, text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut current = Current::default();
    let are_facts = path.ends_with(FACTS);
    for (number, line) in (1..).zip(text.lines()) {
        let is_heading = line.starts_with('#');
        let is_fact = are_facts && line.starts_with(['-', '*']);
        if is_fact || is_heading && current.has_body {
            passages.extend(current.take(path));
        }
        for piece in pieces(line) {
            let chars = piece.chars().count() + 1;
            if current.chars + chars > MAX_CHARS {
                passages.extend(current.take(path));
            }
            current.push(number, piece, chars);
        }
        current.has_body |= !is_heading && !line.trim().is_empty();
    }
    passages.extend(current.take(path));
    passages
}

/// The line in parts of at most [`MAX_CHARS`] characters.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        // A passage counts a line end with each line.
        let cut = line.char_indices().nth(MAX_CHARS - 1).map(|(at, _)| at);
        let (piece, left) = line.split_at(cut.unwrap_or(line.len()));
        rest = Some(left).filter(|left| !left.is_empty());
        Some(piece)
    })
}

#[derive(Default)]
struct Current {
    text: String,
    chars: usize,
    first: usize,
    last: usize,
    /// Whether it has a line that is neither blank nor a heading.
    has_body: bool,
}

impl Current {
    fn push(&mut self, number: usize, line: &str, chars: usize) {
        if self.text.is_empty() {
            self.first = number;
        }
        self.last = number;
        self.chars += chars;
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Ends the passage. A blank one is dropped.
    fn take(&mut self, path: &str) -> Option<Passage> {
        let Self { text, first, last, .. } = std::mem::take(self);
        let is_blank = text.trim().is_empty();
        (!is_blank).then(|| Passage { path: path.to_owned(), first, last, text })
    }
}

#[cfg(test)]
mod tests;
