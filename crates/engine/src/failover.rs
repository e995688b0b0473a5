//! Decides what to try next: which key of a model, how long a failed key is in cooldown in this run, and which model
//! after it.

mod candidates;
mod ledger;
mod roster;

use std::time::Duration;

use myclaw_auth::{Arranged, FailureReason, FailureScope};
use myclaw_llm::{ErrorClass, ModelError};

use crate::AuthProfile;
pub(crate) use candidates::{Candidate, Candidates, LONGEST_WAIT_BEFORE_FALLBACK};
pub(crate) use ledger::{KeyLedger, Use};
pub(crate) use roster::Roster;

/// Cooldown after a profile's first failure; it doubles with each further failure.
const FIRST_COOLDOWN: Duration = Duration::from_secs(1);

/// Longest cooldown that the doubling reaches.
const LONGEST_COOLDOWN: Duration = Duration::from_secs(60);

/// Shortest wait for a key. A shorter one would be a busy loop, because clocks are coarse.
pub(crate) const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The profiles of one model in a run, and their state. The [`KeyLedger`] stores what later runs need.
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
    /// Time of the last failure in this run. If the clock is now earlier than that, it was set back, and the cooldown
    /// is over.
    failed_at_ms: u64,
    /// The key is out of credit or was refused. Waiting does not change that, so it is not used again in this run.
    is_exhausted: bool,
    /// Whether the store holds failures that a success would clear.
    has_failures: bool,
    /// Why the profile is in cooldown, from this run or an earlier one.
    cooldown_reason: Option<FailureReason>,
}

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Call with the profile at this index.
    Ready(usize),
    /// All profiles are in cooldown; the first is available after this time.
    Wait(Duration),
    /// No profile can be used again in this run.
    Spent,
}

impl ProfileRotation {
    /// Creates the profiles in the order in which they are tried. A single profile is tried even while it is in
    /// cooldown from an earlier run, so that a past failure does not lock out a user with one key.
    pub(crate) fn new(arranged: Vec<Arranged>) -> Self {
        let is_alone = arranged.len() == 1;
        let profiles = arranged
            .into_iter()
            .map(|Arranged { profile, cooldown, has_failures }| {
                let cooldown = cooldown.filter(|_| !is_alone);
                ProfileState {
                    profile,
                    failures: 0,
                    available_at_ms: cooldown.map_or(0, |(until, _)| until),
                    failed_at_ms: 0,
                    is_exhausted: false,
                    has_failures,
                    cooldown_reason: cooldown.map(|(_, reason)| reason),
                }
            })
            .collect();
        Self { profiles, current: 0 }
    }

    /// Why no profile is available yet.
    pub(crate) fn cooldown_reason(&self) -> Option<FailureReason> {
        self.profiles.iter().find_map(|state| state.cooldown_reason)
    }

    /// Number of profiles.
    pub(crate) fn count(&self) -> usize {
        self.profiles.len()
    }

    /// Picks the first available profile, round-robin from the current one.
    pub(crate) fn pick(&mut self, now_ms: u64) -> Pick {
        let count = self.profiles.len();
        for offset in 0..count {
            let index = (self.current + offset) % count;
            let state = &self.profiles[index];
            let cooldown_is_over = state.available_at_ms <= now_ms || now_ms < state.failed_at_ms;
            if !state.is_exhausted && cooldown_is_over {
                self.current = index;
                return Pick::Ready(index);
            }
        }
        match self
            .profiles
            .iter()
            .filter(|state| !state.is_exhausted)
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

    /// The profile that the next pick returns, and the time until it is available.
    pub(crate) fn upcoming(&self, now_ms: u64) -> (String, Duration) {
        let count = self.profiles.len();
        (0..count)
            .map(|offset| &self.profiles[(self.current + offset) % count])
            .filter(|state| !state.is_exhausted)
            .map(|state| (state, state.available_at_ms.saturating_sub(now_ms)))
            .min_by_key(|(_, wait_ms)| *wait_ms)
            .map(|(state, wait_ms)| (state.profile.id.clone(), Duration::from_millis(wait_ms)))
            .unwrap_or_default()
    }

    /// Resets the failure count, so that the next failure counts as the first. Returns whether there were failures
    /// before, in this run or earlier ones.
    pub(crate) fn succeeded(&mut self, index: usize) -> bool {
        let state = &mut self.profiles[index];
        state.failures = 0;
        std::mem::take(&mut state.has_failures)
    }

    /// Removes a profile from this run, together with its earlier failures.
    pub(crate) fn exhaust(&mut self, id: &str) {
        for state in self.profiles.iter_mut().filter(|state| state.profile.id == id) {
            state.is_exhausted = true;
        }
    }

    /// Puts a profile in cooldown and moves on to the next. The provider's own delay overrides the doubling one, unless
    /// it is too short to be plausible.
    pub(crate) fn failed(&mut self, index: usize, error: &ModelError, now_ms: u64) {
        let state = &mut self.profiles[index];
        state.failures += 1;
        let wait = error.retry_after.unwrap_or_else(|| cooldown(state.failures)).max(SHORTEST_WAIT);
        state.available_at_ms = now_ms.saturating_add(wait.as_millis() as u64);
        state.failed_at_ms = now_ms;
        let reason = failure_reason(error.class);
        state.is_exhausted = reason.is_some_and(FailureReason::is_lasting);
        state.has_failures |= reason.is_some();
        state.cooldown_reason = reason.or(state.cooldown_reason);
        self.current = (index + 1) % self.profiles.len();
    }

    /// Whether a profile other than `index` is available that has not failed in this run.
    pub(crate) fn has_fresh_other_than(&self, index: usize, now_ms: u64) -> bool {
        self.profiles.iter().enumerate().any(|(at, state)| {
            at != index
                && !state.is_exhausted
                && state.failures == 0
                && state.available_at_ms <= now_ms
        })
    }

    /// Whether a profile other than `index` may still be tried.
    pub(crate) fn has_other_than(&self, index: usize) -> bool {
        self.profiles.iter().enumerate().any(|(at, state)| at != index && !state.is_exhausted)
    }
}

/// The failure that a failed call means for its profile; `None` if the request itself was at fault.
pub(crate) fn failure_reason(class: ErrorClass) -> Option<FailureReason> {
    match class {
        ErrorClass::Auth => Some(FailureReason::Auth),
        ErrorClass::Billing => Some(FailureReason::Billing),
        ErrorClass::Quota => Some(FailureReason::Quota),
        ErrorClass::RateLimit => Some(FailureReason::RateLimit),
        ErrorClass::Timeout => Some(FailureReason::Timeout),
        ErrorClass::ContextOverflow | ErrorClass::Unknown => None,
    }
}

/// Whether a failure of this class affects the profile with every model of its provider.
pub(crate) fn concerns_every_model(class: ErrorClass) -> bool {
    failure_reason(class).is_some_and(|reason| reason.scope() == FailureScope::Profile)
}

/// The class under which a cooldown from an earlier run is reported.
pub(crate) fn error_class(reason: FailureReason) -> ErrorClass {
    match reason {
        FailureReason::Auth => ErrorClass::Auth,
        FailureReason::Billing => ErrorClass::Billing,
        FailureReason::Quota => ErrorClass::Quota,
        FailureReason::RateLimit => ErrorClass::RateLimit,
        FailureReason::Timeout => ErrorClass::Timeout,
        FailureReason::Unknown => ErrorClass::Unknown,
    }
}

/// Cooldown after the nth failure in a row: 1, 2, 4, … seconds, at most 60.
fn cooldown(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(LONGEST_COOLDOWN.as_secs().ilog2() + 1);
    (FIRST_COOLDOWN * 2u32.pow(doublings)).min(LONGEST_COOLDOWN)
}

#[cfg(test)]
mod tests;
