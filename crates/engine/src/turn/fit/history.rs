//! The limit on how much of a chat is sent: settings of a channel, apart for direct chats and for groups.

use myclaw_session::{CompactionEntry, EntryId, Role, TranscriptMessage};

use super::{Turn, estimated_tokens};
use crate::{ContextChange, RunError};

/// Of a history that has grown over its limit three parts of four stay, so that it is not cut again, and the
/// provider's cache lost, with each message.
const KEPT_QUARTERS: usize = 3;

/// Cuts the history in the log if it has more messages than the settings allow. Nothing is summarised: a limit is
/// meant to forget.
pub(super) fn limit(turn: &mut Turn<'_>) -> Result<(), RunError> {
    let Some(limit) = turn.params.rules.history_limit else { return Ok(()) };
    // The message about to be added counts too.
    if turn.conversation.messages().len() < limit {
        return Ok(());
    }
    let tail = turn.conversation.tail()?;
    let first_kept = first_kept(&tail.messages, limit);
    let old_count = turn.conversation.messages().len();
    let id = EntryId::generate();
    let kept = first_kept.map_or(0, |position| tail.messages.len() - position);
    let entry = CompactionEntry {
        id,
        ts: turn.now_ms(),
        summary: String::new(),
        first_kept_id: first_kept.map_or(id, |position| tail.messages[position].id),
        tokens_before: estimated_tokens(turn),
        old_count: old_count as u64,
        new_count: kept as u64,
    };
    turn.conversation.append_change(entry)?;
    turn.opening.cut_before = None;
    turn.emit_compaction(old_count, kept, ContextChange::LeftOut);
    Ok(())
}

/// The first user message from which on few enough remain; `None` if there is none.
fn first_kept(rows: &[TranscriptMessage], limit: usize) -> Option<usize> {
    let room = (limit * KEPT_QUARTERS / 4).min(limit - 1);
    let start = rows.len().saturating_sub(room);
    rows[start..].iter().position(|row| row.role == Role::User).map(|offset| start + offset)
}

#[cfg(test)]
mod tests;
