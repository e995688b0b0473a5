//! Rungs that leave out parts of long messages in what is sent. The log keeps them whole.

use std::collections::HashMap;

use myclaw_session::{EntryId, Reduction, Role, TranscriptMessage};

use super::{Turn, append_reductions};
use crate::estimate::{chars_of, row_cost};
use crate::{ContextChange, Notice, RunError};

/// How an entry of these rungs says why it was made.
const REASON: &str = "overflow";

/// Most characters at the beginning of a tool's result on the lower rung, and as many at its end: enough to tell what it
/// was and how it ended.
const HALF_OF_RESULT: usize = 2_000;

/// Where less of a result than this has room, on either side, nothing of it is sent.
const SMALLEST_HALF: usize = 50;

/// All results together get this part of what a request may hold.
const SHARE_OF_RESULTS: u64 = 2;

/// Of a user's text that is too long for the window, three parts of four are kept from its beginning.
const USER_HEAD_QUARTERS: usize = 3;

/// Cuts each longer result of a tool to the length that the settings allow; whether that helps.
pub(super) fn long_results(turn: &mut Turn<'_>) -> Result<bool, RunError> {
    let head = turn.limits.compaction.max_result_chars;
    let tail = turn.conversation.tail()?;
    let planned = plan(&tail.messages, &tail.reductions, |row| match row.role {
        Role::Tool => Some((head, 0)),
        Role::User | Role::Assistant | Role::System => None,
    });
    apply(turn, planned, ContextChange::ResultsCut)
}

/// Cuts every long text: results to their beginning and end, the shorter the more there are, and what the user wrote to a
/// quarter of the window.
pub(super) fn long_texts(turn: &mut Turn<'_>) -> Result<bool, RunError> {
    // At four characters a token, as many characters as there is room for tokens are a quarter of it.
    let of_user = usize::try_from(turn.room()).unwrap_or(usize::MAX);
    let head_of_user = of_user / 4 * USER_HEAD_QUARTERS;
    let tail = turn.conversation.tail()?;
    let results = tail.messages.iter().filter(|row| row.role == Role::Tool).count();
    let tokens = turn.room() / SHARE_OF_RESULTS;
    let planned = plan(&tail.messages, &tail.reductions, |row| match row.role {
        Role::Tool => {
            let half = half_of_result(row, tokens, results);
            Some((half, half))
        }
        Role::User => Some((head_of_user, of_user - head_of_user)),
        Role::Assistant | Role::System => None,
    });
    let changed = apply(turn, planned, ContextChange::TextsCut)?;
    if changed {
        turn.notice(Notice::MessagesCut {});
    }
    Ok(changed)
}

/// Sends less from now on, and tells, if there is anything to reduce.
fn apply(
    turn: &mut Turn<'_>,
    planned: Vec<Reduction>,
    change: ContextChange,
) -> Result<bool, RunError> {
    let count = turn.conversation.messages().len();
    let changed = append_reductions(turn, REASON, planned)?;
    if changed {
        turn.emit_compaction(count, count, change);
    }
    Ok(changed)
}

/// Characters that are sent of either end of one of so many results, where all together may cost `tokens`. However little
/// that is, all together have room for what a single one is cut to.
fn half_of_result(row: &TranscriptMessage, tokens: u64, results: usize) -> usize {
    let half = chars_of(row, tokens / results as u64) / 2;
    let half = half.max(HALF_OF_RESULT / results).min(HALF_OF_RESULT);
    if half < SMALLEST_HALF { 0 } else { half }
}

/// The reductions that make a row smaller than it is sent now.
fn plan(
    rows: &[TranscriptMessage],
    current: &HashMap<EntryId, Reduction>,
    wanted: impl Fn(&TranscriptMessage) -> Option<(usize, usize)>,
) -> Vec<Reduction> {
    let reduce = |row: &TranscriptMessage| {
        let (head, tail) = wanted(row)?;
        let reduction = Reduction { id: row.id, head, tail };
        let before = row_cost(row, current.get(&row.id));
        (row_cost(row, Some(&reduction)) < before).then_some(reduction)
    };
    rows.iter().filter_map(reduce).collect()
}

#[cfg(test)]
mod tests;
