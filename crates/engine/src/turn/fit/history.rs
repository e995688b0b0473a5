//! The limit on how many messages of a chat are sent. It is set per channel, separately for direct chats and groups.

use myclaw_session::{CompactionEntry, EntryId, Role, TranscriptMessage};

use super::{Fit, Shared, estimated_tokens};
use crate::open_log::NextStep;
use crate::{ContextChange, RunError};

/// A cut leaves this many of five messages of the limit, so that the next ones need no cut: requests that begin with the
/// same bytes are cheaper, because providers keep what they have read.
const KEPT_FIFTHS: usize = 4;

impl Fit {
    /// Cuts the history in the log if it has more messages than the config allows. The cut is at a user message, so that
    /// between four fifths of the limit and all of it are left, where a turn begins there. Nothing is summarised, because the
    /// purpose of the limit is to forget. Messages that wait for their answer since an interruption stay.
    pub(super) fn limit_history(&mut self, shared: &mut Shared) -> Result<(), RunError> {
        let Some(limit) = self.history_limit else { return Ok(()) };
        let old_count = shared.log.messages().len();
        // The message about to be added counts too.
        if old_count < limit {
            return Ok(());
        }
        let tail = shared.log.tail()?;
        let is_unanswered = shared.log.next_step() != NextStep::Finish;
        let first_kept = first_kept(&tail.messages, limit, is_unanswered);
        if first_kept == Some(0) {
            return Ok(());
        }
        let id = EntryId::generate();
        let kept = first_kept.map_or(0, |position| tail.messages.len() - position);
        let entry = CompactionEntry {
            id,
            ts: shared.now_ms(),
            summary: String::new(),
            first_kept_id: first_kept.map_or(id, |position| tail.messages[position].id),
            tokens_before: estimated_tokens(shared),
            old_count: old_count as u64,
            new_count: kept as u64,
        };
        shared.log.append_change(entry)?;
        self.opening.cut_before = None;
        shared.emit_compaction(old_count, kept, ContextChange::LeftOut);
        Ok(())
    }
}

/// The user message at which the history begins, counting the message about to be added: the newest one that leaves four
/// fifths of the limit, else the oldest one that the limit allows. What is unanswered is never cut.
fn first_kept(rows: &[TranscriptMessage], limit: usize, is_unanswered: bool) -> Option<usize> {
    let is_user = |row: &TranscriptMessage| row.role == Role::User;
    let start_of = |most: usize| rows.len().saturating_sub(most.saturating_sub(1));
    let (oldest, newest) = (start_of(limit), start_of((limit * KEPT_FIFTHS).div_ceil(5)));
    let in_step = rows[oldest..].iter().take(newest + 1 - oldest).rposition(is_user);
    let fitting = in_step.or_else(|| rows[oldest..].iter().position(is_user));
    let fitting = fitting.map(|offset| oldest + offset);
    match is_unanswered.then(|| first_unanswered(rows)).flatten() {
        Some(unanswered) => Some(fitting.map_or(unanswered, |fitting| fitting.min(unanswered))),
        None => fitting,
    }
}

/// The first user message behind the last answer: a message of the model that was neither followed by results nor is the last.
fn first_unanswered(rows: &[TranscriptMessage]) -> Option<usize> {
    let is_answer =
        |pair: &[TranscriptMessage]| pair[0].role == Role::Assistant && pair[1].role != Role::Tool;
    let behind = rows.windows(2).rposition(is_answer).map_or(0, |answer| answer + 1);
    rows[behind..].iter().position(|row| row.role == Role::User).map(|offset| behind + offset)
}

#[cfg(test)]
mod tests;
