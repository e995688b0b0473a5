//! What became of messages that were put into a session's inbox, as its log says.

use std::collections::{HashMap, HashSet};

use myclaw_llm::{Message, StopReason};
use myclaw_session::{EntryId, TranscriptMessage};

use crate::transcript::{row_to_message, taken_ids};

/// What the log says about a message that was taken from the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakenState {
    /// No answer follows it yet.
    Open,
    /// A whole answer follows it.
    Answered {
        /// The row of the answer.
        row: EntryId,
        /// Its text, which is not blank.
        text: String,
    },
    /// What follows it was cut off, or says nothing. The session does not go on by itself.
    Broken {
        /// Why, in words that follow "the answer".
        why: &'static str,
    },
}

/// Finds messages in the rows of a log, which it gets from the newest to the oldest.
#[derive(Debug)]
pub struct AnswerSearch {
    wanted: HashSet<EntryId>,
    found: HashMap<EntryId, TakenState>,
    /// The answer to what stands before the rows so far.
    answer: TakenState,
}

impl AnswerSearch {
    /// Looks for the messages with these ids.
    pub fn new(wanted: impl IntoIterator<Item = EntryId>) -> Self {
        let wanted = wanted.into_iter().collect();
        Self { wanted, found: HashMap::new(), answer: TakenState::Open }
    }

    /// Whether older rows can add anything.
    pub fn is_complete(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Whether the message was found.
    pub fn has_found(&self, id: EntryId) -> bool {
        self.found.contains_key(&id)
    }

    /// Looks at the next older row.
    pub fn row(&mut self, row: TranscriptMessage) {
        for id in taken_ids(&row) {
            if self.wanted.remove(&id) {
                self.found.insert(id, self.answer.clone());
            }
        }
        let id = row.id;
        if let Some(Message::Assistant(message)) = row_to_message(row) {
            let is_broken = matches!(message.stop_reason, StopReason::Error | StopReason::Aborted);
            let goes_on = !is_broken && message.tool_calls().next().is_some();
            let text = message.text();
            self.answer = match &self.answer {
                // The model goes on after its tools have run, with what follows.
                answer if goes_on => answer.clone(),
                // An attempt that failed is followed by one that did not.
                answer @ TakenState::Answered { .. } if is_broken => answer.clone(),
                _ if is_broken => TakenState::Broken { why: "was cut off" },
                _ if text.trim().is_empty() => TakenState::Broken { why: "is empty" },
                _ => TakenState::Answered { row: id, text },
            };
        }
    }

    /// The messages that were found.
    pub fn into_found(self) -> HashMap<EntryId, TakenState> {
        self.found
    }
}

#[cfg(test)]
mod tests;
