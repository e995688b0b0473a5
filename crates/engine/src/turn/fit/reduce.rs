//! Rungs that send only parts of long messages. The log keeps the messages whole.

use std::collections::HashMap;

use myclaw_llm::Message;
use myclaw_session::{EntryId, Reduction, Role, TranscriptMessage};

use super::{Fit, Shared, append_reductions};
use crate::estimate::{chars_of, message_tokens, row_cost, text_tokens};
use crate::{ActiveModel, ContextChange, Notice, RunError};

/// The reason that the entries of these rungs record.
const REASON: &str = "overflow";

/// Most characters that the lower rung keeps at the beginning of a tool result, and as many at its end: enough to show
/// what it was and how it ended.
const HALF_OF_RESULT: usize = 2_000;

/// If there is room for fewer characters than this on either side of a result, nothing of it is sent.
const SMALLEST_HALF: usize = 50;

/// All results together get one part in this many of a request.
const SHARE_OF_RESULTS: u64 = 2;

/// Of a user's or model's text that is too long for the window, three quarters of the kept part come from its
/// beginning.
const HEAD_QUARTERS: usize = 3;

/// Characters that are sent of each message after a refusal, where the size of the model is unknown: ten of them fit
/// the smallest windows that agents work with.
const OF_UNKNOWN_WINDOW: usize = 8_000;

impl Fit {
    /// Cuts the answers of models that alone are longer than a request may be, with their thinking and the arguments of
    /// their calls; returns whether there were any. Neither a summary nor the provider could make anything of them.
    pub(super) fn cut_oversized_answers(
        &self,
        shared: &mut Shared,
        model: &ActiveModel,
    ) -> Result<bool, RunError> {
        let room = self.room(shared, model);
        let is_oversized = |message: &Message| {
            matches!(message, Message::Assistant(_)) && message_tokens(message) > room
        };
        if !shared.log.messages().iter().any(is_oversized) {
            return Ok(false);
        }
        let ends = ends_of_message(room);
        let tail = shared.log.tail()?;
        let planned = plan(&tail.messages, &tail.reductions, |row| {
            let cost = row_cost(row, tail.reductions.get(&row.id));
            (row.role == Role::Assistant && cost > room).then_some(ends)
        });
        cut(shared, planned)
    }

    /// Cuts every long message, where the size of the model is unknown; returns whether there were any.
    pub(super) fn cut_for_unknown_window(&self, shared: &mut Shared) -> Result<bool, RunError> {
        let tail = shared.log.tail()?;
        let ends = (OF_UNKNOWN_WINDOW / 4 * HEAD_QUARTERS, OF_UNKNOWN_WINDOW / 4);
        let planned = plan(&tail.messages, &tail.reductions, |row| {
            let is_sent = row.role != Role::System;
            (is_sent && row_cost(row, None) > text_tokens(OF_UNKNOWN_WINDOW)).then_some(ends)
        });
        cut(shared, planned)
    }

    /// Cuts each tool result to the length that the config allows; returns whether that makes the request smaller.
    pub(super) fn cut_long_results(&self, shared: &mut Shared) -> Result<bool, RunError> {
        let head = self.compaction.max_result_chars;
        let tail = shared.log.tail()?;
        let planned = plan(&tail.messages, &tail.reductions, |row| match row.role {
            Role::Tool => Some((head, 0)),
            Role::User | Role::Assistant | Role::System => None,
        });
        apply(shared, planned, ContextChange::ResultsCut)
    }

    /// Cuts every long text: results to their beginning and end, shorter if there are more of them, and texts of the
    /// user or a model to a quarter of the window.
    pub(super) fn cut_long_texts(
        &self,
        shared: &mut Shared,
        model: &ActiveModel,
    ) -> Result<bool, RunError> {
        let room = self.room(shared, model);
        let ends = ends_of_message(room);
        let tail = shared.log.tail()?;
        let results = tail.messages.iter().filter(|row| row.role == Role::Tool).count();
        let tokens = room / SHARE_OF_RESULTS;
        let planned = plan(&tail.messages, &tail.reductions, |row| match row.role {
            Role::Tool => {
                let half = half_of_result(row, tokens, results);
                Some((half, half))
            }
            Role::User | Role::Assistant => Some(ends),
            Role::System => None,
        });
        cut(shared, planned)
    }
}

/// Characters that are sent of the beginning and the end of a message. At four characters per token, together they are a
/// quarter of the room in tokens.
fn ends_of_message(room: u64) -> (usize, usize) {
    let both = usize::try_from(room).unwrap_or(usize::MAX);
    let head = both / 4 * HEAD_QUARTERS;
    (head, both - head)
}

/// Stores the reductions of long texts, and reports them, if there are any.
fn cut(shared: &mut Shared, planned: Vec<Reduction>) -> Result<bool, RunError> {
    let changed = apply(shared, planned, ContextChange::TextsCut)?;
    if changed {
        shared.notice(Notice::MessagesCut {});
    }
    Ok(changed)
}

/// Stores the reductions and emits an event, if there is anything to reduce.
fn apply(
    shared: &mut Shared,
    planned: Vec<Reduction>,
    change: ContextChange,
) -> Result<bool, RunError> {
    let count = shared.log.messages().len();
    let changed = append_reductions(shared, REASON, planned)?;
    if changed {
        shared.emit_compaction(count, count, change);
    }
    Ok(changed)
}

/// Characters that are sent of each end of one of `results` results that may cost `tokens` together. There is always at
/// least as much room for all of them as a single cut result needs.
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
