//! The codes with which devices pair. They live in memory: a restart ends them all, so none can be used twice.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Scope;
use crate::GatewayError;
use myclaw_delivery::codes::{code, is_code};
use myclaw_delivery::ledger::now_ms;
use parking_lot::Mutex;

/// How long a code can be used.
const CODE_TIME: Duration = Duration::from_secs(10 * 60);
/// Most codes at a time. A further one takes the place of the oldest.
const MOST_CODES: usize = 20;
/// Attempts in [`WINDOW`] after which codes are no longer looked at. With 40 random bits and ten minutes, a guess succeeds
/// once in 500 million times.
const MOST_ATTEMPTS: usize = 10;
/// How long an attempt counts.
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Codes(Mutex<State>);

#[derive(Default)]
struct State {
    codes: VecDeque<Open>,
    attempts: VecDeque<Instant>,
}

struct Open {
    code: String,
    scope: Scope,
    since: Instant,
}

impl Codes {
    /// A new code, and when it ends in milliseconds since the Unix epoch.
    pub(super) fn make(&self, scope: Scope) -> Result<(String, u64), GatewayError> {
        let code = code()?;
        let mut state = self.0.lock();
        state.codes.retain(|open| open.since.elapsed() < CODE_TIME);
        if state.codes.len() >= MOST_CODES {
            state.codes.pop_front();
        }
        state.codes.push_back(Open { code: code.clone(), scope, since: Instant::now() });
        let time = u64::try_from(CODE_TIME.as_millis()).unwrap_or(u64::MAX);
        Ok((code, now_ms().saturating_add(time)))
    }

    /// Uses a code up. Gives the scope that it stands for.
    pub(super) fn take(&self, typed: &str) -> Result<Scope, GatewayError> {
        let mut state = self.0.lock();
        state.attempts.retain(|moment| moment.elapsed() < WINDOW);
        if state.attempts.len() >= MOST_ATTEMPTS {
            let why = "too many devices tried to pair; wait a minute and try again";
            return Err(GatewayError::TooOften(why.to_owned()));
        }
        state.attempts.push_back(Instant::now());
        state.codes.retain(|open| open.since.elapsed() < CODE_TIME);
        // All are compared, so that the time says nothing.
        let same: Vec<bool> =
            state.codes.iter().map(|open| is_code(&open.code, typed).into()).collect();
        let found = same.iter().position(|is_it| *is_it).and_then(|at| state.codes.remove(at));
        found.map(|open| open.scope).ok_or_else(|| {
            let why =
                "the code is wrong, used or too old; make a new one with `myclaw devices code`";
            GatewayError::Forbidden(why.to_owned())
        })
    }
}
