//! What replaces the ladder where the size of the model is unknown: after a refusal only the newest messages are kept.

use myclaw_llm::ModelError;
use myclaw_session::{CompactionEntry, EntryId, Role, TranscriptMessage};

use super::{Fit, Shared, estimated_tokens};
use crate::{ContextChange, RunError};

impl Fit {
    /// Keeps the newest `count` messages in the log's requests, without the results at their beginning, whose calls are
    /// left out. Every request begins with a message of the user: if none is kept, the last one is repeated as the
    /// summary.
    ///
    /// If there are no more messages than that, or if this was done since the last answer, the long ones are cut.
    ///
    /// # Errors
    /// The refusal, if there is nothing to cut either.
    pub(super) fn keep_newest(
        &mut self,
        shared: &mut Shared,
        count: usize,
        refusal: &ModelError,
    ) -> Result<(), RunError> {
        let old_count = shared.log.messages().len();
        if old_count <= count || std::mem::replace(&mut self.recovery.kept_newest, true) {
            if self.cut_for_unknown_window(shared)? {
                return Ok(());
            }
            return Err(RunError::Model(refusal.clone()));
        }
        let tail = shared.log.tail()?;
        let rows = &tail.messages;
        let newest = rows.len().saturating_sub(count);
        let results = rows[newest..].iter().take_while(|row| row.role == Role::Tool).count();
        let kept = &rows[newest + results..];
        let is_of_user = |row: &&TranscriptMessage| row.role == Role::User;
        let summary = match kept.iter().any(|row| row.role == Role::User) {
            true => None,
            false => rows.iter().rfind(is_of_user).map(|row| row.content.clone()),
        };
        let id = EntryId::generate();
        let new_count = kept.len() + usize::from(summary.is_some());
        let entry = CompactionEntry {
            id,
            ts: shared.now_ms(),
            summary: summary.unwrap_or_default(),
            first_kept_id: kept.first().map_or(id, |row| row.id),
            tokens_before: estimated_tokens(shared),
            old_count: old_count as u64,
            new_count: new_count as u64,
        };
        shared.log.append_change(entry)?;
        shared.emit_compaction(old_count, new_count, ContextChange::LeftOut);
        Ok(())
    }
}
