//! Who is asked next: which key of a model, how long a failed one rests in this run, and which model after it.

mod candidates;
mod ledger;
mod roster;

use std::time::Duration;

use myclaw_auth::{Arranged, FailureReason, FailureScope};
use myclaw_llm::{ErrorClass, ModelError};

use crate::AuthProfile;
pub(crate) use candidates::{Candidate, Candidates, LONGEST_WAIT_BEFORE_FALLBACK};
pub(crate) use ledger::{Ledger, Use};
pub(crate) use roster::Roster;

/// Rest after a profile's first failure; it doubles with each further one.
const FIRST_COOLDOWN: Duration = Duration::from_secs(1);

/// Longest rest that the doubling reaches.
const LONGEST_COOLDOWN: Duration = Duration::from_secs(60);

/// A wait shorter than this would be a busy loop against clock granularity.
pub(crate) const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The profiles of one model in a run, and their state. What outlives the run is the [`Ledger`]'s business.
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
    /// When it failed last in this run. A clock that is behind that was set back, and the rest is over.
    failed_at_ms: u64,
    /// Refused for a reason that waiting does not mend: a wrong key stays wrong for the whole run.
    spent: bool,
    /// Whether a success changes what is remembered about it.
    has_failures: bool,
    /// Why it rests, in this run or since before it.
    resting_for: Option<FailureReason>,
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
    /// The profiles in the order in which they are tried. One that is alone is tried even while it rests from an
    /// earlier run: whoever has one key must not be locked out by a past failure.
    pub(crate) fn new(arranged: Vec<Arranged>) -> Self {
        let is_alone = arranged.len() == 1;
        let profiles = arranged
            .into_iter()
            .map(|Arranged { profile, resting, has_failures }| {
                let resting = resting.filter(|_| !is_alone);
                ProfileState {
                    profile,
                    failures: 0,
                    available_at_ms: resting.map_or(0, |(until, _)| until),
                    failed_at_ms: 0,
                    spent: false,
                    has_failures,
                    resting_for: resting.map(|(_, reason)| reason),
                }
            })
            .collect();
        Self { profiles, current: 0 }
    }

    /// Why no profile is available yet.
    pub(crate) fn resting_for(&self) -> Option<FailureReason> {
        self.profiles.iter().find_map(|state| state.resting_for)
    }

    /// How many profiles there are.
    pub(crate) fn count(&self) -> usize {
        self.profiles.len()
    }

    /// The first available profile from the current one on, round-robin.
    pub(crate) fn pick(&mut self, now_ms: u64) -> Pick {
        let count = self.profiles.len();
        for offset in 0..count {
            let index = (self.current + offset) % count;
            let state = &self.profiles[index];
            let has_rested = state.available_at_ms <= now_ms || now_ms < state.failed_at_ms;
            if !state.spent && has_rested {
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

    /// A success makes the next failure count as the first. Whether there were failures before it, in this run or
    /// earlier ones.
    pub(crate) fn succeeded(&mut self, index: usize) -> bool {
        let state = &mut self.profiles[index];
        state.failures = 0;
        std::mem::take(&mut state.has_failures)
    }

    /// Takes a profile out of this run, with all that is said about it elsewhere.
    pub(crate) fn spend(&mut self, id: &str) {
        for state in self.profiles.iter_mut().filter(|state| state.profile.id == id) {
            state.spent = true;
        }
    }

    /// Lets a profile rest and moves on to the next. The provider's own delay wins over the doubling one, unless it is too
    /// short to be one.
    pub(crate) fn failed(&mut self, index: usize, error: &ModelError, now_ms: u64) {
        let state = &mut self.profiles[index];
        state.failures += 1;
        let rest = error.retry_after.unwrap_or_else(|| cooldown(state.failures)).max(SHORTEST_WAIT);
        state.available_at_ms = now_ms.saturating_add(rest.as_millis() as u64);
        state.failed_at_ms = now_ms;
        let reason = failure_reason(error.class);
        state.spent = reason.is_some_and(FailureReason::is_lasting);
        state.has_failures |= reason.is_some();
        state.resting_for = reason.or(state.resting_for);
        self.current = (index + 1) % self.profiles.len();
    }

    /// Whether a profile other than `index` is available that has not failed in this run.
    pub(crate) fn has_fresh_other_than(&self, index: usize, now_ms: u64) -> bool {
        self.profiles.iter().enumerate().any(|(at, state)| {
            at != index && !state.spent && state.failures == 0 && state.available_at_ms <= now_ms
        })
    }

    /// Whether a profile other than `index` may still be tried.
    pub(crate) fn has_other_than(&self, index: usize) -> bool {
        self.profiles.iter().enumerate().any(|(at, state)| at != index && !state.spent)
    }
}

/// What a failed call says about its profile; nothing where the request itself was at fault.
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

/// Whether a failure of this class says something about the profile with every model of its provider.
pub(crate) fn concerns_every_model(class: ErrorClass) -> bool {
    failure_reason(class).is_some_and(|reason| reason.scope() == FailureScope::Profile)
}

/// The class under which a rest since before this run is reported.
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

/// Rest after the nth failure in a row: 1, 2, 4, … seconds, at most 60.
fn cooldown(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(LONGEST_COOLDOWN.as_secs().ilog2() + 1);
    (FIRST_COOLDOWN * 2u32.pow(doublings)).min(LONGEST_COOLDOWN)
}

#[cfg(test)]
mod tests;
