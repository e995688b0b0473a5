//! Part of step `act`: notices a model that goes in circles.
//!
//! Small models like to make the same call again and again. A word in the result mostly ends that at once. If it does
//! not, the run is ended: the same call with the same result over and over, two calls in turn, or a poll that never
//! shows a change among other calls. What is remembered begins anew when the user says something.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use myclaw_llm::ToolCall;

/// How often the same call may give the same result before the model is told. Twice can be a check.
const TOLD_FROM: usize = 3;

/// Calls that are remembered at least: more than the default iteration cap allows with two calls each.
const REMEMBERED: usize = 64;

/// A poll has other calls in between, so it may be patient: it ends a run after so many times the limit.
const PATIENCE: usize = 2;

/// The calls since the user last spoke.
#[derive(Debug, Default)]
pub(crate) struct Repetition {
    /// Call and result, hashed; the newest last.
    recent: VecDeque<u64>,
    /// Rounds that end the run; `None` if none do.
    limit: Option<usize>,
    goes_in_circles: bool,
}

impl Repetition {
    /// Ends a run after `limit` rounds of the same; 0 never does.
    pub(crate) fn new(limit: u32) -> Self {
        // Once is no repetition.
        let limit =
            usize::try_from(limit).ok().filter(|limit| *limit > 0).map(|limit| limit.max(2));
        Self { limit, ..Self::default() }
    }

    /// Forgets what was.
    pub(super) fn begin_anew(&mut self) {
        self.recent.clear();
        self.goes_in_circles = false;
    }

    /// Whether the run should end.
    pub(super) fn goes_in_circles(&self) -> bool {
        self.goes_in_circles
    }

    /// Takes a call and the text of its result, and gives what to add to the result, if anything.
    pub(super) fn note(&mut self, call: &ToolCall, text: &str) -> Option<String> {
        let newest = fingerprint(call, text);
        self.recent.push_back(newest);
        let most = REMEMBERED.max(self.limit.unwrap_or(0).saturating_mul(2 * PATIENCE));
        if self.recent.len() > most {
            self.recent.pop_front();
        }
        let times = self.recent.iter().filter(|seen| **seen == newest).count();
        self.goes_in_circles |= self.limit.is_some_and(|limit| {
            self.rounds(1) >= limit || self.rounds(2) >= limit || times >= PATIENCE * limit
        });
        (times >= TOLD_FROM).then(|| {
            format!(
                "[This call has now given the same result {times} times. Do not repeat it: use what you have, try \
                 something else, or answer.]"
            )
        })
    }

    /// How often the last `period` calls came in a row.
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
