//! Rungs that leave out parts of long messages in what is sent. The log keeps them whole.

use std::collections::HashMap;

use myclaw_session::{EntryId, Reduction, Role, TranscriptMessage};

use super::{Turn, append_reductions};
use crate::RunError;
use crate::estimate::row_cost;

/// How an entry of these rungs says why it was made.
const REASON: &str = "overflow";

/// Characters at the beginning and at the end of a tool's result on the lower rung: enough to tell what it was and
/// how it ended.
const SHORT_RESULT: (usize, usize) = (2_000, 2_000);

/// Of a user's text that is too long for the window, three parts of four are kept from its beginning.
const USER_HEAD_QUARTERS: usize = 3;

/// Cuts each longer result of a tool to the length that the settings allow; whether that helps.
pub(super) fn long_results(turn: &mut Turn<'_>) -> Result<bool, RunError> {
    let head = turn.limits.compaction.max_result_chars;
    let count = turn.conversation.messages().len();
    let tail = turn.conversation.tail()?;
    let planned = plan(&tail.messages, &tail.reductions, |role| match role {
        Role::Tool => Some((head, 0)),
        Role::User | Role::Assistant | Role::System => None,
    });
    let changed = append_reductions(turn, REASON, planned)?;
    turn.emit_compaction(count, count);
    Ok(changed)
}

/// Cuts every long text: results to their beginning and end, and what the user wrote to a quarter of the window.
pub(super) fn long_texts(turn: &mut Turn<'_>) -> Result<bool, RunError> {
    // At four characters a token, as many characters as the budget has tokens are a quarter of it.
    let of_user = usize::try_from(turn.budget()).unwrap_or(usize::MAX);
    let head_of_user = of_user / 4 * USER_HEAD_QUARTERS;
    let tail = turn.conversation.tail()?;
    let planned = plan(&tail.messages, &tail.reductions, |role| match role {
        Role::Tool => Some(SHORT_RESULT),
        Role::User => Some((head_of_user, of_user - head_of_user)),
        Role::Assistant | Role::System => None,
    });
    let count = turn.conversation.messages().len();
    let changed = append_reductions(turn, REASON, planned)?;
    if changed {
        turn.notice("the newest messages are longer than the model's window; only parts are sent");
        turn.emit_compaction(count, count);
    }
    Ok(changed)
}

/// The reductions that make a row smaller than it is sent now.
fn plan(
    rows: &[TranscriptMessage],
    current: &HashMap<EntryId, Reduction>,
    wanted: impl Fn(Role) -> Option<(usize, usize)>,
) -> Vec<Reduction> {
    let reduce = |row: &TranscriptMessage| {
        let (head, tail) = wanted(row.role)?;
        let reduction = Reduction { id: row.id, head, tail };
        let before = row_cost(row, current.get(&row.id));
        (row_cost(row, Some(&reduction)) < before).then_some(reduction)
    };
    rows.iter().filter_map(reduce).collect()
}

#[cfg(test)]
mod tests;
