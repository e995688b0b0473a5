//! The text of an answer for a reader from whom nothing can be taken back, such as a terminal.
//!
//! If the gateway that works on a message dies, another one asks the model again. What the reader has of the first attempt is
//! not shown a second time.

/// What a reader has of the message that arrives.
#[derive(Debug, Default)]
pub struct TakeUp {
    /// The text of the present attempt.
    text: String,
    /// What the reader has of an attempt that broke off, until the present one has said the same.
    had: String,
}

/// What a reader lacks.
#[derive(Debug, PartialEq, Eq)]
pub enum Lacking {
    /// Nothing.
    Nothing,
    /// This text, behind what it has.
    More(String),
    /// This text: the attempt says something else than what the reader has.
    Anew(String),
}

impl TakeUp {
    /// A run begins: a message that is not whole may come again.
    pub fn run_begins(&mut self) {
        let text = std::mem::take(&mut self.text);
        if text.len() > self.had.len() {
            self.had = text;
        }
    }

    /// A model call begins.
    pub fn call_begins(&mut self) {
        self.text.clear();
    }

    /// The message is whole, or another one is worked on.
    pub fn is_whole(&mut self) {
        *self = Self::default();
    }

    /// What the reader has of the message.
    pub fn shown(&self) -> &str {
        if self.had.is_empty() { &self.text } else { &self.had }
    }

    /// More text of the message arrives.
    pub fn arrives(&mut self, delta: &str) -> Lacking {
        self.text.push_str(delta);
        if self.had.is_empty() {
            return Lacking::More(delta.to_owned());
        }
        if self.had.starts_with(&self.text) && self.had.len() > self.text.len() {
            return Lacking::Nothing;
        }
        let had = std::mem::take(&mut self.had);
        match self.text.strip_prefix(had.as_str()) {
            Some("") => Lacking::Nothing,
            Some(rest) => Lacking::More(rest.to_owned()),
            None => Lacking::Anew(self.text.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
