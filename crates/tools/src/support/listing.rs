//! The lines of a result, up to its limit.

/// Characters reserved for the notes at the end.
const NOTE_CHARS: usize = 400;

/// Collects lines until the result is full.
#[derive(Debug)]
pub(crate) struct Listing {
    text: String,
    room: usize,
}

/// The line was not taken, because the result is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Listing {
    /// A listing for a result of at most `max_chars` characters, notes included.
    pub(crate) fn new(max_chars: usize) -> Self {
        Self { text: String::new(), room: max_chars - NOTE_CHARS.min(max_chars / 2) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Appends one line.
    ///
    /// # Errors
    /// [`Full`] if there is no room for all of it.
    pub(crate) fn push_line(&mut self, line: &str) -> Result<(), Full> {
        let needed = line.chars().count() + 1;
        if needed > self.room {
            self.room = 0;
            return Err(Full);
        }
        self.room -= needed;
        self.text.push_str(line);
        self.text.push('\n');
        Ok(())
    }

    /// The lines, or `if_empty`, followed by the notes, each on a line of its own in brackets.
    pub(crate) fn finish(mut self, if_empty: &str, notes: &[String]) -> String {
        if self.text.is_empty() {
            self.text.push_str(if_empty);
            self.text.push('\n');
        }
        self.text.pop();
        for note in notes {
            self.text.push_str("\n[");
            self.text.push_str(note);
            self.text.push(']');
        }
        self.text
    }
}

#[cfg(test)]
mod tests;
