//! Finds the answers to messages that came from a session's inbox, in the session's log.

use std::collections::{HashMap, HashSet};

use myclaw_llm::outside::restored;
use myclaw_llm::{AssistantMessage, Message, StopReason, ToolCall};
use myclaw_session::{EntryId, Meta, Role, TranscriptMessage};

use crate::open_log::restored as restored_call;
use crate::program::is_handed_over;
use crate::transcript::{CORRECTION, row_to_message, taken_ids};

/// What people are told at the end of an answer that is not whole; `None` if it is.
pub fn incomplete_remark(stop_reason: StopReason) -> Option<&'static str> {
    match stop_reason {
        StopReason::Length => Some(
            "[This answer is not whole, because it became too long for one message of the model. Write \"continue\" for \
             the rest.]",
        ),
        StopReason::Refusal => Some(
            "[This answer is not whole, because a filter of the model's provider stopped it. Ask in other words.]",
        ),
        _ => None,
    }
}

/// Name of the tool that makes pictures. The details of its result have the `path`.
pub const IMAGE_GENERATE: &str = "image_generate";

/// The state of a message that a run took from the inbox.
#[derive(Debug, Clone, PartialEq)]
pub enum TakenState {
    /// A full queue dropped it. The log has a notice of that for the model.
    Dropped,
    /// No answer follows it yet.
    Open,
    /// A whole answer follows it.
    Answered {
        /// The row of the answer.
        row: EntryId,
        /// Its text, which is blank only if it calls tools of the program that asked.
        text: String,
        /// The calls that the program makes.
        calls: Vec<ToolCall>,
        /// Why it ended: [`StopReason::Length`] and [`StopReason::Refusal`] mean that it is not whole.
        stop_reason: StopReason,
        /// Paths of the pictures that were made for it.
        pictures: Vec<String>,
    },
    /// The answer was cut off or is empty. Without another message the session does not continue.
    Broken {
        /// The reason, worded to follow "the answer".
        why: &'static str,
    },
}

/// Searches the rows of a log, given from the newest to the oldest, for messages and their answers.
#[derive(Debug)]
pub struct AnswerSearch {
    wanted: HashSet<EntryId>,
    /// The wanted messages by the ids under which the log would say that they were dropped.
    remains: HashMap<EntryId, EntryId>,
    found: HashMap<EntryId, TakenState>,
    /// The answer to a message directly before the rows that were read so far.
    answer: TakenState,
    /// The calls that the newer rows hand over to the program that asked.
    handed_over: HashSet<String>,
    /// Whether the next row was no answer in the eyes of the program.
    is_corrected: bool,
}

impl AnswerSearch {
    /// A search for the messages with these ids.
    pub fn new(wanted: impl IntoIterator<Item = EntryId>) -> Self {
        let wanted: HashSet<EntryId> = wanted.into_iter().collect();
        let remains = wanted.iter().map(|id| (id.of_remains(), *id)).collect();
        let (found, answer) = (HashMap::new(), TakenState::Open);
        let handed_over = HashSet::new();
        Self { wanted, remains, found, answer, handed_over, is_corrected: false }
    }

    /// Whether all messages were found, so that older rows are not needed.
    pub fn is_complete(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Whether the message was found.
    pub fn has_found(&self, id: EntryId) -> bool {
        self.found.contains_key(&id)
    }

    /// Reads the next older row.
    pub fn row(&mut self, row: TranscriptMessage) {
        for id in taken_ids(&row) {
            let (message, state) = match self.remains.get(&id) {
                Some(dropped) => (*dropped, TakenState::Dropped),
                None => (id, self.answer.clone()),
            };
            if self.wanted.remove(&message) {
                self.found.insert(message, state);
            }
        }
        let id = row.id;
        let has_field = |meta: &Meta| meta.field::<bool>(CORRECTION).unwrap_or(false);
        let is_correction = row.role == Role::User && row.meta.as_ref().is_some_and(has_field);
        if std::mem::replace(&mut self.is_corrected, is_correction) {
            return;
        }
        if let (TakenState::Answered { pictures, .. }, Some(made)) =
            (&mut self.answer, picture_of(&row))
        {
            pictures.insert(0, made);
        }
        match row_to_message(row) {
            Some(Message::ToolResult(result)) if is_handed_over(result.details.as_ref()) => {
                self.handed_over.insert(result.tool_call_id);
            }
            Some(Message::Assistant(message)) => self.answer = self.answer_of(id, &message),
            Some(Message::User(_) | Message::ToolResult(_)) | None => {}
        }
    }

    /// The answer to a message before `message`, which is the row `id`.
    fn answer_of(&mut self, id: EntryId, message: &AssistantMessage) -> TakenState {
        let handed_over = std::mem::take(&mut self.handed_over);
        let is_broken = matches!(message.stop_reason, StopReason::Error | StopReason::Aborted);
        let calls = message.tool_calls().filter(|call| handed_over.contains(&call.id));
        let calls: Vec<ToolCall> = calls.cloned().map(restored_call).collect();
        let goes_on = !is_broken && calls.is_empty() && message.tool_calls().next().is_some();
        let text = message.text();
        match &self.answer {
            // A message with calls is not the answer: the model continues after its tools have run.
            answer if goes_on => answer.clone(),
            // A failed attempt, after which another one succeeded.
            answer @ TakenState::Answered { .. } if is_broken => answer.clone(),
            _ if is_broken => TakenState::Broken { why: "was cut off" },
            _ if text.trim().is_empty() && calls.is_empty() => {
                TakenState::Broken { why: "is empty" }
            }
            // Who reads it gets what the model copied from text from outside as it was there.
            _ => TakenState::Answered {
                row: id,
                text: restored(&text).into_owned(),
                calls,
                stop_reason: message.stop_reason,
                pictures: Vec::new(),
            },
        }
    }

    /// The messages that were found.
    pub fn into_found(self) -> HashMap<EntryId, TakenState> {
        self.found
    }
}

/// The path of the picture that a call has made, if the row is the result of such a call.
fn picture_of(row: &TranscriptMessage) -> Option<String> {
    let meta = row.meta.as_ref().filter(|_| row.role == Role::Tool)?;
    // Most rows are not parsed for it.
    if !meta.as_str().contains(IMAGE_GENERATE) {
        return None;
    }
    let meta = meta.to_object();
    let is_made = meta.get("toolName")? == IMAGE_GENERATE && meta.get("isError")? == false;
    is_made.then(|| Some(meta.get("details")?["path"].as_str()?.to_owned()))?
}

#[cfg(test)]
mod tests;
