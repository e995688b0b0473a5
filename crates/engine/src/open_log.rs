//! The session's log and the messages loaded from it for the next request.
//!
//! The log is the only state of a session. The list in memory mirrors the end of the log: every message is appended to
//! the log before it is added to the list.

use std::collections::HashMap;

use myclaw_llm::outside::{harmless, restore_arguments};
use myclaw_llm::{
    ContentBlock, INTERRUPTED_RESULT, Message, PairedMessages, ToolCall, ToolResultMessage, Usage,
    UserMessage,
};
use myclaw_session::{
    CompactionEntry, Entry, EntryId, LogEnd, MovedAside, OpenSession, RefusalEntry, SessionError,
    SwitchedOff, SyncHandle, Tail, TailLimit, TranscriptMessage, UnsignedEntry,
};

use crate::estimate::row_cost;
use crate::program::ends_with_hand_over;
use crate::reduction;
use crate::transcript::{message_to_row, row_to_message, shown_result, taken_ids};

/// The first line of the user message that replaces what a compaction summarised.
pub(crate) const SUMMARY_TAG: &str = "[Conversation summary]";

/// Most tokens of rows that are read for a summary: four pieces for a model with a window of 250,000 tokens. Of a
/// longer log the first rows are read too, and the rows in between are skipped.
const MOST_READ: u64 = 500_000;

/// An open session.
pub(crate) struct OpenLog {
    session: Box<dyn OpenSession>,
    /// Where the next entries go.
    end: LogEnd,
    messages: Vec<Message>,
    /// Messages that were appended, without results of tools.
    added: u64,
    /// The first row of the list, if the log holds older rows that no compaction covers.
    loaded_from: Option<EntryId>,
    /// Most tokens that the newest messages may cost in a request.
    budget: u64,
    /// Reductions of earlier runs that the config has switched off, so that the whole text is sent again.
    switched_off: SwitchedOff,
    /// By model: tokens of the smallest request that it refused as too long, in this run or an earlier one.
    refused: HashMap<String, u64>,
    /// By model: when the newest message was written whose signatures it has rejected.
    unsigned: HashMap<String, u64>,
}

/// Findings from opening a session.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    /// Lines of the log that could not be read.
    pub(crate) skipped_lines: usize,
    /// Bytes that were moved out of the log because its last line was incomplete.
    pub(crate) moved_aside: Option<MovedAside>,
    /// The first loaded message, if the log holds older messages that no compaction covers yet.
    pub(crate) cut_before: Option<EntryId>,
    /// The waiting messages that the loaded rows have taken in.
    pub(crate) taken: Vec<EntryId>,
}

/// The next step, as the end of the log determines it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NextStep {
    /// The log ends with a user message or with the last missing result: call the model.
    CallModel,
    /// These calls have no result yet.
    RunTools(PendingCalls),
    /// The model has answered, or the program that asks makes one of its calls.
    Finish,
}

/// Calls of the last assistant message that have no result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingCalls {
    pub(crate) calls: Vec<ToolCall>,
    /// Whether the message was cut off by the output limit: then no call of it runs.
    pub(crate) message_was_cut: bool,
    /// The model that made the calls, as `provider/model`.
    pub(crate) model: String,
    /// When it made them, in milliseconds since the Unix epoch.
    pub(crate) asked_at: u64,
    /// Whether an earlier run ended while it waited for the approval of one of them.
    pub(crate) are_asked_again: bool,
}

impl OpenLog {
    /// Reads as much of the end of the log as the next request can hold. If there is more, it reads only half of that,
    /// because the turn itself needs room too.
    pub(crate) fn load(
        session: Box<dyn OpenSession>,
        budget: u64,
        switched_off: SwitchedOff,
    ) -> Result<(Self, Opening), SessionError> {
        let mut log = Self {
            end: session.end(),
            session,
            messages: Vec::new(),
            added: 0,
            loaded_from: None,
            budget,
            switched_off,
            refused: HashMap::new(),
            unsigned: HashMap::new(),
        };
        let mut tail = log.read(budget)?;
        if tail.older_messages_exist {
            tail = log.read(budget / 2)?;
        }
        log.refused = std::mem::take(&mut tail.refused);
        log.unsigned = std::mem::take(&mut tail.unsigned);
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
        log.loaded_from = opening.cut_before;
        log.fill(tail);
        Ok((log, opening))
    }

    /// Appends to the log alone.
    fn write(&mut self, entries: &[Entry]) -> Result<(), SessionError> {
        self.end = self.session.append(self.end, entries)?;
        Ok(())
    }

    /// Reads messages from the end of the log that cost at most `max_cost` tokens.
    fn read(&mut self, max_cost: u64) -> Result<Tail, SessionError> {
        let switched_off = self.switched_off;
        self.session.tail(TailLimit { max_cost, cost: row_cost, switched_off })
    }

    /// Rebuilds the list in memory from the end of the log.
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

    /// The rows that the list in memory was built from, even if the list has grown beyond the amount that is loaded
    /// from a log.
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

    /// The rows since the last compaction, including rows that are not loaded. Of a very long log, the newest of them.
    ///
    /// It always includes the rows of the list in memory: one answer can be longer than the most that is read.
    pub(crate) fn wide_tail(&mut self) -> Result<Tail, SessionError> {
        let mut most = self.budget.max(MOST_READ);
        loop {
            let tail = self.read(most)?;
            if !tail.older_messages_exist || self.unread(&tail).is_some() || most == u64::MAX {
                return Ok(tail);
            }
            most = most.saturating_mul(2);
        }
    }

    /// Number of rows of `tail` that are older than the list in memory; `None` if the list does not begin within it.
    pub(crate) fn unread(&self, tail: &Tail) -> Option<usize> {
        let first = self.loaded_from?;
        tail.messages.iter().position(|row| row.id == first)
    }

    /// Appends to the log, then to the list: the row of a result stores what the tool returned, the list holds what a
    /// model sees of it.
    pub(crate) fn append(&mut self, mut message: Message) -> Result<(), SessionError> {
        self.write(&[Entry::Message(message_to_row(&message))])?;
        match &mut message {
            Message::ToolResult(result) => {
                result.content =
                    shown_result(&result.tool_name, std::mem::take(&mut result.content));
            }
            Message::User(_) | Message::Assistant(_) => self.added += 1,
        }
        self.messages.push(message);
        Ok(())
    }

    /// Appends the missing result of each call that an interrupted run left open.
    pub(crate) fn close_interrupted_calls(
        &mut self,
        now_ms: impl Fn() -> u64,
    ) -> Result<(), SessionError> {
        let NextStep::RunTools(pending) = self.next_step() else { return Ok(()) };
        for call in pending.calls {
            self.append(Message::ToolResult(ToolResultMessage {
                tool_call_id: call.id,
                tool_name: call.name,
                content: vec![ContentBlock::text(INTERRUPTED_RESULT)],
                is_error: true,
                details: None,
                timestamp: now_ms(),
            }))?;
        }
        Ok(())
    }

    /// Appends a user message: the row stores what the user said, the list holds what a model sees of it.
    pub(crate) fn append_user(&mut self, message: UserMessage) -> Result<(), SessionError> {
        self.append_user_rows(vec![message_to_row(&Message::User(message))])
    }

    /// Appends user rows in one write.
    pub(crate) fn append_user_rows(
        &mut self,
        rows: Vec<TranscriptMessage>,
    ) -> Result<(), SessionError> {
        let entries: Vec<Entry> = rows.iter().cloned().map(Entry::Message).collect();
        self.write(&entries)?;
        self.added += entries.len() as u64;
        self.messages.extend(rows.into_iter().filter_map(row_to_message));
        Ok(())
    }

    /// Appends a compaction or a reduction and rebuilds the list.
    pub(crate) fn append_change(&mut self, change: impl Into<Entry>) -> Result<(), SessionError> {
        let mut entries = vec![change.into()];
        if matches!(entries[0], Entry::Compaction(_)) {
            self.loaded_from = None;
            // The next opening reads back to the first message that is kept, so the state that precedes it is written
            // again.
            let ts = entries[0].ts().unwrap_or(0);
            entries.extend(self.refused.iter().map(|(model, tokens)| refusal(model, *tokens, ts)));
        }
        self.write(&entries)?;
        let tail = self.tail()?;
        self.fill(tail);
        Ok(())
    }

    /// Messages that were appended since the log was opened, without results of tools.
    pub(crate) fn added(&self) -> u64 {
        self.added
    }

    /// The next step, as the end of the list determines it.
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
            assistant.tool_calls().filter(|call| !answered(call)).cloned().map(restored).collect();
        if calls.is_empty() {
            return match ends_with_hand_over(results) {
                true => NextStep::Finish,
                false => NextStep::CallModel,
            };
        }
        NextStep::RunTools(PendingCalls {
            calls,
            message_was_cut: !stop_reason.runs_tool_calls(),
            model: format!("{}/{}", assistant.provider, assistant.model),
            asked_at: assistant.timestamp,
            are_asked_again: false,
        })
    }

    /// Takes the messages out as [`PairedMessages`], the only form that a request accepts.
    pub(crate) fn take_paired(&mut self) -> PairedMessages {
        PairedMessages::repair(std::mem::take(&mut self.messages))
    }

    /// Puts back what [`OpenLog::take_paired`] took.
    pub(crate) fn put_back(&mut self, paired: PairedMessages) {
        self.messages = paired.into_vec();
    }

    /// The messages of the next request.
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Records that `model` refused a request of this many tokens as too long, for later runs too.
    pub(crate) fn note_refusal(
        &mut self,
        model: String,
        tokens: u64,
        ts: u64,
    ) -> Result<(), SessionError> {
        if self.smallest_refused(&model).is_some_and(|smallest| smallest <= tokens) {
            return Ok(());
        }
        self.write(&[refusal(&model, tokens, ts)])?;
        self.refused.insert(model, tokens);
        Ok(())
    }

    /// Tokens of the smallest request that `model` has refused as too long.
    pub(crate) fn smallest_refused(&self, model: &str) -> Option<u64> {
        self.refused.get(model).copied()
    }

    /// Records that `model` rejected the signatures of the messages up to `until`, for later runs too.
    pub(crate) fn note_unsigned(
        &mut self,
        model: String,
        until: u64,
        ts: u64,
    ) -> Result<(), SessionError> {
        let id = EntryId::generate();
        self.write(&[Entry::Unsigned(UnsignedEntry { id, ts, model: model.clone(), until })])?;
        self.unsigned.insert(model, until);
        Ok(())
    }

    /// When the newest message was written whose signatures `model` has rejected.
    pub(crate) fn unsigned_until(&self, model: &str) -> Option<u64> {
        self.unsigned.get(model).copied()
    }

    /// A handle to sync the log off the async thread.
    pub(crate) fn sync_handle(&self) -> SyncHandle {
        self.session.sync_handle()
    }
}

/// The call with the arguments that the model means: what it copied from text from outside is whole again.
pub(crate) fn restored(mut call: ToolCall) -> ToolCall {
    restore_arguments(&mut call.arguments);
    call
}

fn refusal(model: &str, tokens: u64, ts: u64) -> Entry {
    Entry::Refusal(RefusalEntry { id: EntryId::generate(), ts, model: model.to_owned(), tokens })
}

/// Removes a provider's token count that was taken before a compaction or reduction: it counts a larger request than
/// the next one.
fn forget_count(message: &mut Message) {
    if let Message::Assistant(assistant) = message {
        assistant.usage = Usage::default();
    }
}

/// The message that replaces what was compacted. A model wrote it about text from outside. `None` if the compaction only cut the history and has no summary.
fn summary_message(compaction: &CompactionEntry) -> Option<Message> {
    let text = || format!("{SUMMARY_TAG}\n{}", harmless(&compaction.summary));
    (!compaction.summary.is_empty())
        .then(|| Message::User(UserMessage::text(text(), compaction.ts)))
}

#[cfg(test)]
mod tests;
