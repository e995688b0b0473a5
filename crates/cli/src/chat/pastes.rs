//! Long pastes: one line in the editor stands for them, and the message gets the text.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reedline::{EditCommand, EditMode, Emacs, PromptEditMode, ReedlineEvent, ReedlineRawEvent};

/// A paste with more lines is folded.
const MOST_LINES: usize = 5;
/// A paste with more bytes is folded.
const MOST_BYTES: usize = 1_000;

/// The pastes of a chat; one of the history is found again.
#[derive(Debug, Clone, Default)]
pub(super) struct Pastes(Arc<Mutex<Vec<String>>>);

impl Pastes {
    /// What the editor shows for `text`: itself, or a line that stands for it.
    fn fold(&self, text: String) -> String {
        let lines = text.lines().count();
        if lines <= MOST_LINES && text.len() <= MOST_BYTES {
            return text;
        }
        let mut pastes = self.lock();
        pastes.push(text);
        mark(pastes.len(), &pastes[pastes.len() - 1])
    }

    /// `text` with the pastes that its lines stand for.
    pub(super) fn unfold(&self, text: &str) -> String {
        let pastes = self.lock();
        let mut out = text.to_owned();
        for (at, paste) in pastes.iter().enumerate() {
            let mark = mark(at + 1, paste);
            if text.contains(&mark) {
                out = out.replace(&mark, paste);
            }
        }
        out
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn mark(number: usize, text: &str) -> String {
    format!("[paste {number}: {} lines, {} bytes]", text.lines().count(), text.len())
}

/// The keys of Emacs, with long pastes folded.
pub(super) struct FoldingEmacs {
    pub(super) inner: Emacs,
    pub(super) pastes: Pastes,
}

impl EditMode for FoldingEmacs {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        match self.inner.parse_event(event) {
            ReedlineEvent::Edit(commands) => ReedlineEvent::Edit(
                commands
                    .into_iter()
                    .map(|command| match command {
                        EditCommand::InsertString(text) => {
                            EditCommand::InsertString(self.pastes.fold(text))
                        }
                        other => other,
                    })
                    .collect(),
            ),
            other => other,
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.inner.edit_mode()
    }
}

#[cfg(test)]
mod tests;
