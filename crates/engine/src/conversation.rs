//! The session's log and the messages it holds for the next request.
//!
//! The log is the only state of a conversation. The list in memory mirrors its end: whatever is added here has been
//! appended to the log first.

use std::collections::HashMap;

use myclaw_llm::{Message, PairedMessages, ToolCall, Usage, UserMessage};
use myclaw_session::{
    CompactionEntry, Entry, EntryId, MovedAside, OpenSession, RefusalEntry, SessionError,
    SwitchedOff, SyncHandle, Tail, TailLimit, TranscriptMessage,
};

use crate::estimate::row_cost;
use crate::reduction;
use crate::transcript::{message_to_row, row_to_message, taken_ids};

/// Opens the user message that a compaction leaves behind.
pub(crate) const SUMMARY_TAG: &str = "[Conversation summary]";

/// Most tokens of rows that are read for a summary: what four pieces for a model with a window of 250,000 hold. Of a
/// longer log the beginning is read instead of what comes before that.
const MOST_READ: u64 = 500_000;

/// An open session.
pub(crate) struct Conversation {
    log: Box<dyn OpenSession>,
    messages: Vec<Message>,
    /// The first row of the list, where the log holds older ones that no compaction accounts for.
    loaded_from: Option<EntryId>,
    /// What the newest messages may cost in a request, in tokens.
    budget: u64,
    /// What is read although earlier runs left it out.
    switched_off: SwitchedOff,
    /// By model: tokens of the smallest request that it refused as too long, in earlier runs too.
    refused: HashMap<String, u64>,
}

/// What was noticed while a session was opened.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    /// Lines of the log that could not be read.
    pub(crate) skipped_lines: usize,
    /// What was moved out of the log, because its end was no whole line.
    pub(crate) moved_aside: Option<MovedAside>,
    /// The first loaded message, if the log holds older ones that no compaction accounts for yet.
    pub(crate) cut_before: Option<EntryId>,
    /// The waiting messages that the loaded rows took in.
    pub(crate) taken: Vec<EntryId>,
}

/// What the end of the log asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NextStep {
    /// A user message or the last missing result stands at the end: call the model.
    CallModel,
    /// These calls have no result yet.
    RunTools(PendingCalls),
    /// The model has answered.
    Finish,
}

/// Calls of the last assistant message that have no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingCalls {
    pub(crate) calls: Vec<ToolCall>,
    /// Whether the message was cut off by the output limit: then no call of it runs.
    pub(crate) message_was_cut: bool,
}

impl Conversation {
    /// Reads as much of the log's end as the next request can hold, or only half of that if there is more: the turn
    /// itself needs room too.
    pub(crate) fn load(
        log: Box<dyn OpenSession>,
        budget: u64,
        switched_off: SwitchedOff,
    ) -> Result<(Self, Opening), SessionError> {
        let mut conversation = Self {
            log,
            messages: Vec::new(),
            loaded_from: None,
            budget,
            switched_off,
            refused: HashMap::new(),
        };
        let mut tail = conversation.read(budget)?;
        if tail.older_messages_exist {
            tail = conversation.read(budget / 2)?;
        }
        conversation.refused = std::mem::take(&mut tail.refused);
        let opening = Opening {
            skipped_lines: tail.skipped_lines,
            moved_aside: tail.moved_aside.clone(),
            cut_before: tail
                .messages
                .first()
                .filter(|_| tail.older_messages_exist)
                .map(|message| message.id),
            taken: tail.messages.iter().flat_map(taken_ids).collect(),
        };
        conversation.loaded_from = opening.cut_before;
        conversation.fill(tail);
        Ok((conversation, opening))
    }

    /// Reads messages from the end of the log that cost at most `max_cost` tokens.
    fn read(&mut self, max_cost: u64) -> Result<Tail, SessionError> {
        let switched_off = self.switched_off;
        self.log.tail(TailLimit { max_cost, cost: row_cost, switched_off })
    }

    /// Builds the list in memory anew from the log's end.
    fn fill(&mut self, tail: Tail) {
        self.messages.clear();
        self.messages.extend(tail.compaction.as_ref().and_then(summary_message));
        let unchanged_since =
            tail.behind_last_change.map_or(0, |count| tail.messages.len() - count);
        for (position, row) in tail.messages.into_iter().enumerate() {
            let reduction = tail.reductions.get(&row.id);
            let Some(mut message) = row_to_message(row) else { continue };
            if let Some(reduction) = reduction {
                reduction::apply(&mut message, *reduction);
            }
            if position < unchanged_since {
                forget_count(&mut message);
            }
            self.messages.push(message);
        }
    }

    /// The rows behind the list in memory, also where they have outgrown what is loaded of a log.
    pub(crate) fn tail(&mut self) -> Result<Tail, SessionError> {
        let mut tail = self.read(self.budget)?;
        if tail.older_messages_exist && self.unread(&tail).is_none() {
            tail = self.wide_tail()?;
        }
        if let Some(unread) = self.unread(&tail) {
            tail.messages.drain(..unread);
            tail.older_messages_exist = true;
            tail.behind_last_change =
                tail.behind_last_change.map(|newer| newer.min(tail.messages.len()));
        }
        Ok(tail)
    }

    /// The rows since the last compaction, those too that are not loaded; of a very long log the newest.
    pub(crate) fn wide_tail(&mut self) -> Result<Tail, SessionError> {
        self.read(self.budget.max(MOST_READ))
    }

    /// How many rows of `tail` are older than the list in memory; `None` if the list does not begin within it.
    pub(crate) fn unread(&self, tail: &Tail) -> Option<usize> {
        let first = self.loaded_from?;
        tail.messages.iter().position(|row| row.id == first)
    }

    /// Appends to the log, then to the list.
    pub(crate) fn append(&mut self, message: Message) -> Result<(), SessionError> {
        self.log.append(&[Entry::Message(message_to_row(&message))])?;
        self.messages.push(message);
        Ok(())
    }

    /// Appends a user message: the row holds what the user said, the list what a model sees of it.
    pub(crate) fn append_user(&mut self, message: UserMessage) -> Result<(), SessionError> {
        self.append_user_rows(vec![message_to_row(&Message::User(message))])
    }

    /// Appends rows of users, all in one write.
    pub(crate) fn append_user_rows(
        &mut self,
        rows: Vec<TranscriptMessage>,
    ) -> Result<(), SessionError> {
        let entries: Vec<Entry> = rows.iter().cloned().map(Entry::Message).collect();
        self.log.append(&entries)?;
        self.messages.extend(rows.into_iter().filter_map(row_to_message));
        Ok(())
    }

    /// Appends a compaction or a reduction and builds the list anew.
    pub(crate) fn append_change(&mut self, change: impl Into<Entry>) -> Result<(), SessionError> {
        let mut entries = vec![change.into()];
        if matches!(entries[0], Entry::Compaction(_)) {
            self.loaded_from = None;
            // The next opening reads back to the messages that are kept, so what lies before them is written again.
            let ts = entries[0].ts().unwrap_or(0);
            entries.extend(self.refused.iter().map(|(model, tokens)| refusal(model, *tokens, ts)));
        }
        self.log.append(&entries)?;
        let tail = self.tail()?;
        self.fill(tail);
        Ok(())
    }

    /// What the end of the list asks for.
    pub(crate) fn next_step(&self) -> NextStep {
        let Some(at) =
            self.messages.iter().rposition(|message| !matches!(message, Message::ToolResult(_)))
        else {
            return NextStep::Finish;
        };
        let (Message::Assistant(assistant), results) =
            (&self.messages[at], &self.messages[at + 1..])
        else {
            return NextStep::CallModel;
        };
        let answered = |call: &ToolCall| {
            results.iter().any(|message| matches!(message, Message::ToolResult(result) if result.tool_call_id == call.id))
        };
        let stop_reason = assistant.stop_reason;
        if !stop_reason.keeps_tool_calls() || assistant.tool_calls().next().is_none() {
            return NextStep::Finish;
        }
        let calls: Vec<ToolCall> =
            assistant.tool_calls().filter(|call| !answered(call)).cloned().collect();
        if calls.is_empty() {
            return NextStep::CallModel;
        }
        NextStep::RunTools(PendingCalls { calls, message_was_cut: !stop_reason.runs_tool_calls() })
    }

    /// Runs `call` with the messages in the only form a request takes.
    pub(crate) fn take_paired(&mut self) -> PairedMessages {
        PairedMessages::repair(std::mem::take(&mut self.messages))
    }

    /// Puts back what [`Conversation::take_paired`] took.
    pub(crate) fn put_back(&mut self, paired: PairedMessages) {
        self.messages = paired.into_vec();
    }

    /// The messages of the next request.
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Remembers that `model` refused a request of so many tokens as too long, for later runs too.
    pub(crate) fn note_refusal(
        &mut self,
        model: String,
        tokens: u64,
        ts: u64,
    ) -> Result<(), SessionError> {
        if self.smallest_refused(&model).is_some_and(|smallest| smallest <= tokens) {
            return Ok(());
        }
        self.log.append(&[refusal(&model, tokens, ts)])?;
        self.refused.insert(model, tokens);
        Ok(())
    }

    /// Tokens of the smallest request that `model` has refused as too long.
    pub(crate) fn smallest_refused(&self, model: &str) -> Option<u64> {
        self.refused.get(model).copied()
    }

    /// For a sync off the async thread.
    pub(crate) fn sync_handle(&self) -> SyncHandle {
        self.log.sync_handle()
    }
}

fn refusal(model: &str, tokens: u64, ts: u64) -> Entry {
    Entry::Refusal(RefusalEntry { id: EntryId::generate(), ts, model: model.to_owned(), tokens })
}

/// What a provider counted before a compaction or reduction was a larger request than the next one.
fn forget_count(message: &mut Message) {
    if let Message::Assistant(assistant) = message {
        assistant.usage = Usage::default();
    }
}

/// What a compaction leaves behind; `None` where it only cut and has nothing to say.
fn summary_message(compaction: &CompactionEntry) -> Option<Message> {
    let text = || format!("{SUMMARY_TAG}\n{}", compaction.summary);
    (!compaction.summary.is_empty())
        .then(|| Message::User(UserMessage::text(text(), compaction.ts)))
}

#[cfg(test)]
mod tests;
