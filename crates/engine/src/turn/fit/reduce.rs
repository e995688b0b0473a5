//! Rungs that leave out parts of long messages in what is sent. The log keeps them whole.

use std::collections::HashMap;

use myclaw_session::{EntryId, Reduction, Role, TranscriptMessage};

use super::{Fit, Shared, append_reductions};
use crate::estimate::{chars_of, row_cost};
use crate::{ActiveModel, ContextChange, Notice, RunError};

/// How an entry of these rungs says why it was made.
const REASON: &str = "overflow";

/// Most characters at the beginning of a tool's result on the lower rung, and as many at its end: enough to tell what it
/// was and how it ended.
const HALF_OF_RESULT: usize = 2_000;

/// Where less of a result than this has room, on either side, nothing of it is sent.
const SMALLEST_HALF: usize = 50;

/// All results together get this part of what a request may hold.
const SHARE_OF_RESULTS: u64 = 2;

/// Of what a user or a model wrote that is too long for the window, three parts of four are kept from its beginning.
const HEAD_QUARTERS: usize = 3;

/// Which long texts are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LongTexts {
    /// Those of users and tools.
    NotOfModels,
    /// Those of models too, which lose their thinking then.
    All,
}

impl Fit {
    /// Cuts each longer result of a tool to the length that the config allows; whether that helps.
    pub(super) fn cut_long_results(&self, shared: &mut Shared) -> Result<bool, RunError> {
        let head = self.compaction.max_result_chars;
        let tail = shared.conversation.tail()?;
        let planned = plan(&tail.messages, &tail.reductions, |row| match row.role {
            Role::Tool => Some((head, 0)),
            Role::User | Role::Assistant | Role::System => None,
        });
        apply(shared, planned, ContextChange::ResultsCut)
    }

    /// Cuts every long text: results to their beginning and end, the shorter the more there are, and what the user
    /// or a model wrote to a quarter of the window.
    pub(super) fn cut_long_texts(
        &self,
        shared: &mut Shared,
        model: &ActiveModel,
        which: LongTexts,
    ) -> Result<bool, RunError> {
        let room = self.room(shared, model);
        // At four characters a token, as many characters as there is room for tokens are a quarter of it.
        let of_message = usize::try_from(room).unwrap_or(usize::MAX);
        let head_of_message = of_message / 4 * HEAD_QUARTERS;
        let tail = shared.conversation.tail()?;
        let results = tail.messages.iter().filter(|row| row.role == Role::Tool).count();
        let tokens = room / SHARE_OF_RESULTS;
        let planned = plan(&tail.messages, &tail.reductions, |row| match row.role {
            Role::Tool => {
                let half = half_of_result(row, tokens, results);
                Some((half, half))
            }
            Role::Assistant if which == LongTexts::NotOfModels => None,
            Role::User | Role::Assistant => Some((head_of_message, of_message - head_of_message)),
            Role::System => None,
        });
        let changed = apply(shared, planned, ContextChange::TextsCut)?;
        if changed {
            shared.notice(Notice::MessagesCut {});
        }
        Ok(changed)
    }
}

/// Sends less from now on, and says so, if there is anything to reduce.
fn apply(
    shared: &mut Shared,
    planned: Vec<Reduction>,
    change: ContextChange,
) -> Result<bool, RunError> {
    let count = shared.conversation.messages().len();
    let changed = append_reductions(shared, REASON, planned)?;
    if changed {
        shared.emit_compaction(count, count, change);
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
