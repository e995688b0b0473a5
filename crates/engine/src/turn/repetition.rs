//! Part of step `act`: detects a model that repeats itself.
//!
//! Small models tend to make the same call again and again. A remark in the result usually ends that. If it does not,
//! the run is ended: at the same call with the same result several times in a row, at two such calls in alternation, or
//! at a poll that returns the same result between other calls. The record is cleared when the user sends a message.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use myclaw_llm::ToolCall;

/// From this many equal results on, the result contains a remark for the model. Two may be a check.
const REMARK_FROM: usize = 3;

/// Fewest calls that are remembered: more than the default iteration cap allows at two calls each.
const REMEMBERED: usize = 64;

/// A poll has other calls in between, so it is allowed this multiple of the limit.
const PATIENCE: usize = 2;

/// The calls since the last user message.
#[derive(Debug, Default)]
pub(crate) struct Repetition {
    /// Hashes of call and result; the newest is last.
    recent: VecDeque<u64>,
    /// Rounds that end the run; `None` disables the check.
    limit: Option<usize>,
    repeats_itself: bool,
}

impl Repetition {
    /// Ends a run after `limit` rounds of the same calls; 0 disables the check.
    pub(crate) fn new(limit: u32) -> Self {
        // A single call is not a repetition.
        let limit =
            usize::try_from(limit).ok().filter(|limit| *limit > 0).map(|limit| limit.max(2));
        Self { limit, ..Self::default() }
    }

    /// Clears the record.
    pub(super) fn begin_anew(&mut self) {
        self.recent.clear();
        self.repeats_itself = false;
    }

    /// Whether the run should end.
    pub(super) fn repeats_itself(&self) -> bool {
        self.repeats_itself
    }

    /// Records a call and the text of its result, and returns a remark to add to the result, if one is due.
    pub(super) fn note(&mut self, call: &ToolCall, text: &str) -> Option<String> {
        let newest = fingerprint(call, text);
        self.recent.push_back(newest);
        let most = REMEMBERED.max(self.limit.unwrap_or(0).saturating_mul(2 * PATIENCE));
        if self.recent.len() > most {
            self.recent.pop_front();
        }
        let times = self.recent.iter().filter(|seen| **seen == newest).count();
        self.repeats_itself |= self.limit.is_some_and(|limit| {
            self.rounds(1) >= limit || self.rounds(2) >= limit || times >= PATIENCE * limit
        });
        (times >= REMARK_FROM).then(|| {
            format!(
                "[This call has now given the same result {times} times. Do not repeat it: use what you have, try \
                 something else, or answer.]"
            )
        })
    }

    /// How often the last `period` calls were repeated in a row.
    fn rounds(&self, period: usize) -> usize {
        let newest_first = || self.recent.iter().rev();
        let same = newest_first().zip(newest_first().skip(period)).take_while(|(a, b)| a == b);
        same.count() / period + 1
    }
}

fn fingerprint(call: &ToolCall, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.name.hash(&mut hasher);
    for (name, value) in &call.arguments {
        name.hash(&mut hasher);
        value.to_string().hash(&mut hasher);
    }
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
