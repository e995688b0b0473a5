//! Auth profiles of one run: which key is tried next, and how long a failed one rests.

use std::time::Duration;

use myclaw_llm::{ErrorClass, ModelError};

use crate::AuthProfile;

/// Rest after a profile's first failure; it doubles with each further one.
const FIRST_COOLDOWN: Duration = Duration::from_secs(1);

/// Longest rest that the doubling reaches.
const LONGEST_COOLDOWN: Duration = Duration::from_secs(60);

/// A wait shorter than this would be a busy loop against clock granularity.
pub(crate) const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The profiles of a run and their state. Nothing here outlives the run.
#[derive(Debug)]
pub(crate) struct ProfileRotation {
    profiles: Vec<ProfileState>,
    current: usize,
}

#[derive(Debug)]
struct ProfileState {
    profile: AuthProfile,
    failures: u32,
    available_at_ms: u64,
    /// Refused for a reason that waiting does not mend: a wrong key stays wrong for the whole run.
    spent: bool,
}

/// What to do for the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Call with the profile at this index.
    Ready(usize),
    /// All profiles rest; this long until the first is available.
    Wait(Duration),
    /// No profile can help any more in this run.
    Spent,
}

impl ProfileRotation {
    pub(crate) fn new(profiles: &[AuthProfile]) -> Self {
        let profiles = profiles
            .iter()
            .map(|profile| ProfileState {
                profile: profile.clone(),
                failures: 0,
                available_at_ms: 0,
                spent: false,
            })
            .collect();
        Self { profiles, current: 0 }
    }

    /// The first available profile from the current one on, round-robin.
    pub(crate) fn pick(&mut self, now_ms: u64) -> Pick {
        let count = self.profiles.len();
        for offset in 0..count {
            let index = (self.current + offset) % count;
            if !self.profiles[index].spent && self.profiles[index].available_at_ms <= now_ms {
                self.current = index;
                return Pick::Ready(index);
            }
        }
        match self
            .profiles
            .iter()
            .filter(|state| !state.spent)
            .map(|state| state.available_at_ms)
            .min()
        {
            Some(at) => Pick::Wait(Duration::from_millis(at - now_ms).max(SHORTEST_WAIT)),
            None => Pick::Spent,
        }
    }

    pub(crate) fn profile(&self, index: usize) -> &AuthProfile {
        &self.profiles[index].profile
    }

    /// The profile that calls go to at the moment.
    pub(crate) fn current_profile(&self) -> &AuthProfile {
        &self.profiles[self.current].profile
    }

    /// The profile that the next pick gives, or will give, and how long until then.
    pub(crate) fn upcoming(&self, now_ms: u64) -> (String, Duration) {
        let count = self.profiles.len();
        (0..count)
            .map(|offset| &self.profiles[(self.current + offset) % count])
            .filter(|state| !state.spent)
            .map(|state| (state, state.available_at_ms.saturating_sub(now_ms)))
            .min_by_key(|(_, wait_ms)| *wait_ms)
            .map(|(state, wait_ms)| (state.profile.id.clone(), Duration::from_millis(wait_ms)))
            .unwrap_or_default()
    }

    /// A success makes the next failure count as the first.
    pub(crate) fn succeeded(&mut self, index: usize) {
        self.profiles[index].failures = 0;
    }

    /// Lets a profile rest and moves on to the next. The provider's own delay wins over the doubling one.
    pub(crate) fn failed(&mut self, index: usize, error: &ModelError, now_ms: u64) {
        let state = &mut self.profiles[index];
        state.failures += 1;
        let rest = error.retry_after.unwrap_or_else(|| cooldown(state.failures));
        state.available_at_ms = now_ms.saturating_add(rest.as_millis() as u64);
        state.spent = match error.class {
            ErrorClass::Auth | ErrorClass::Billing | ErrorClass::Quota => true,
            ErrorClass::RateLimit
            | ErrorClass::Timeout
            | ErrorClass::ContextOverflow
            | ErrorClass::Unknown => false,
        };
        self.current = (index + 1) % self.profiles.len();
    }

    /// Whether a profile other than `index` may still be tried.
    pub(crate) fn has_other_than(&self, index: usize) -> bool {
        self.profiles.iter().enumerate().any(|(at, state)| at != index && !state.spent)
    }
}

/// Rest after the nth failure in a row: 1, 2, 4, … seconds, at most 60.
fn cooldown(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(LONGEST_COOLDOWN.as_secs().ilog2() + 1);
    (FIRST_COOLDOWN * 2u32.pow(doublings)).min(LONGEST_COOLDOWN)
}

#[cfg(test)]
mod tests;
