//! The limit on how many messages of a chat are sent. It is set per channel, separately for direct chats and groups.

use myclaw_session::{CompactionEntry, EntryId, Role, TranscriptMessage};

use super::{Fit, Shared, estimated_tokens};
use crate::open_log::NextStep;
use crate::{ContextChange, RunError};

impl Fit {
    /// Cuts the history in the log if it has more messages than the config allows. The cut is at the first user message
    /// after which the limit holds. Nothing is summarised, because the purpose of the limit is to forget. A message that
    /// waits for its answer since an interruption stays.
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

/// The first user message from which few enough messages remain, counting the one about to be added; the last one if
/// there is none and that one is unanswered.
fn first_kept(rows: &[TranscriptMessage], limit: usize, is_unanswered: bool) -> Option<usize> {
    let start = rows.len().saturating_sub(limit.saturating_sub(1));
    let is_user = |row: &TranscriptMessage| row.role == Role::User;
    let fitting = rows[start..].iter().position(is_user).map(|offset| start + offset);
    fitting.or_else(|| rows.iter().rposition(is_user).filter(|_| is_unanswered))
}

#[cfg(test)]
mod tests;
