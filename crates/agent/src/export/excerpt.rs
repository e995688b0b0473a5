//! The newest messages of a session for a model: as many as fit, each of bounded length.

use std::ops::ControlFlow;

use myclaw_session::{EntryId, ReadSession, Role, SessionError, TranscriptMessage};
use serde_json::{Value, json};

/// Most rows that are looked at.
const MOST_READ: usize = 1_000;
/// Most characters of a message.
const MOST_MESSAGE_CHARS: usize = 4_000;
/// Most bytes of all messages.
const MOST_BYTES: usize = 40_000;

/// Which messages are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    /// Those before this one; the newest without it.
    pub before: Option<EntryId>,
    /// Most messages.
    pub most: usize,
    /// Whether results of tools and notes are among them.
    pub with_tools: bool,
}

impl Excerpt {
    /// The messages, the oldest first; `None` if there is no message with the id in `before`. Blocks.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn read(self, reader: &dyn ReadSession) -> Result<Option<Vec<Value>>, SessionError> {
        let (mut shown, mut bytes, mut read) = (Vec::new(), 0, 0);
        let is_found = reader.visit_before(self.before, &mut |row| {
            read += 1;
            let is_wanted = matches!(row.role, Role::User | Role::Assistant) || self.with_tools;
            if is_wanted && !row.content.trim().is_empty() {
                let text = cut(&row);
                bytes += text.len();
                if bytes > MOST_BYTES && !shown.is_empty() {
                    return ControlFlow::Break(());
                }
                // Logs of other programs have rows without a time.
                let time = (row.ts > 0).then_some(row.ts);
                shown.push(json!({"id": row.id, "role": row.role, "ts": time, "text": text}));
            }
            match shown.len() < self.most && read < MOST_READ {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        shown.reverse();
        Ok(is_found.then_some(shown))
    }
}

fn cut(row: &TranscriptMessage) -> String {
    let mut text: String = row.content.chars().take(MOST_MESSAGE_CHARS).collect();
    if text.len() < row.content.len() {
        text.push_str(" [cut]");
    }
    text
}
