//! The note that replaces messages without a summary. There is only one, however often summaries fail.

/// Separates the summary from the user's last message.
pub(in crate::turn::fit) const LAST_REQUEST: &str =
    "\n\nThe user's last message, which is being worked on:\n";

/// Separates the summary from the plan that the agent has shown, before the last message.
pub(in crate::turn::fit) const PLAN: &str = "\n\nThe plan that the user sees:\n";

/// Follows the number of messages.
const LEFT_OUT: &str = " later messages were left out without a summary";

const ADVICE: &str =
    ". They are still in the session file; ask the user for what you need of them.";

/// Separates the summary from the note.
const PARAGRAPH: &str = "\n\n";

/// The parts of the text that replaces older messages.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// The model's summary.
    said: String,
    /// Number of later messages that are left out.
    left_out: u64,
}

impl Standing {
    /// Parses the summary of an entry. The plan and the user's last message in it are dropped, because they may be no longer
    /// the last.
    pub(super) fn read(text: &str) -> Self {
        let ends = [PLAN, LAST_REQUEST].into_iter().filter_map(|mark| text.find(mark));
        let mut end = ends.min().unwrap_or(text.len());
        let mut left_out = 0_u64;
        for (at, _) in text.match_indices(LEFT_OUT) {
            let before = &text[..at];
            let rest = before.trim_end_matches(|digit: char| digit.is_ascii_digit());
            if let Ok(count) = before[rest.len()..].parse::<u64>()
                && (rest.is_empty() || rest.ends_with(PARAGRAPH))
            {
                left_out = left_out.saturating_add(count);
                end = end.min(rest.len());
            }
        }
        Self { said: text[..end].trim_end().to_owned(), left_out }
    }

    /// The same text with more messages left out.
    pub(super) fn without(self, count: usize) -> Self {
        Self { left_out: self.left_out.saturating_add(count as u64), ..self }
    }

    /// The text for the model, with at most `longest` bytes of the summary.
    pub(super) fn into_text(self, longest: usize) -> String {
        let Self { said: mut text, left_out } = self;
        text.truncate(text.floor_char_boundary(longest));
        if left_out > 0 {
            if !text.is_empty() {
                text.push_str(PARAGRAPH);
            }
            text.push_str(&format!("{left_out}{LEFT_OUT}{ADVICE}"));
        }
        text
    }
}

#[cfg(test)]
mod tests;
