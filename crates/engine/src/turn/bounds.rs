//! Step `bounds`: what ends a turn that would go on.
//!
//! Each message of the user's begins a new allowance of calls, time, tokens and money; the totals of a day go on. What
//! was used is read off the run's tally, so every model call counts, whoever made it.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use myclaw_config::RunLimits;
use myclaw_llm::{Model, Usage};
use myclaw_session::{DaySpending, Spent};
use tokio::time::Instant;

use super::Turn;
use crate::{Bound, Notice, RunError};

/// What the run has used since the user last said something, and what the day has.
#[derive(Debug)]
pub(crate) struct Allowance {
    limits: RunLimits,
    /// By the monotonic clock: the machine's own may jump.
    began: Instant,
    iterations_before: u32,
    usage_before: Usage,
    /// What of the run's usage the day's totals hold.
    recorded: Usage,
    day: Spent,
    spending: DaySpending,
    has_warned: bool,
    has_warned_of_price: bool,
}

impl Allowance {
    /// Begins now.
    pub(crate) fn new(limits: RunLimits, spending: DaySpending) -> Self {
        Self {
            limits,
            began: Instant::now(),
            iterations_before: 0,
            usage_before: Usage::default(),
            recorded: Usage::default(),
            day: Spent::default(),
            spending,
            has_warned: false,
            has_warned_of_price: false,
        }
    }

    /// Time that is left; `None` if there is no limit.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let limit = Duration::from_secs(self.limits.run_seconds);
        (!limit.is_zero()).then(|| limit.saturating_sub(self.began.elapsed()))
    }
}

impl Turn<'_> {
    /// The user has said something: what was used before counts no longer.
    pub(super) fn begin_allowance(&mut self) {
        self.allowance.began = Instant::now();
        self.allowance.iterations_before = self.tally.iterations;
        self.allowance.usage_before = self.tally.usage;
        self.repetition.begin_anew();
    }
}

/// The limit that is reached, if one is.
pub(super) async fn reached(turn: &mut Turn<'_>) -> Result<Option<Bound>, RunError> {
    record_usage(turn).await?;
    warn_of_unknown_price(turn);
    let allowance = &turn.allowance;
    let limits = &allowance.limits;
    let iterations = turn.tally.iterations - allowance.iterations_before;
    let tokens = turn.tally.usage.total_tokens - allowance.usage_before.total_tokens;
    let dollars = turn.tally.usage.cost.total - allowance.usage_before.cost.total;
    let checks = [
        (Bound::MaxIterations, turn.limits.max_iterations.is_some_and(|cap| iterations >= cap)),
        (Bound::RepeatedCalls, turn.repetition.goes_in_circles()),
        (Bound::RunSeconds, allowance.time_left().is_some_and(|left| left.is_zero())),
        (Bound::RunTokens, limits.run_tokens > 0 && tokens >= limits.run_tokens),
        (Bound::RunCost, limits.run_cost > 0.0 && dollars >= limits.run_cost),
        (Bound::DayTokens, limits.day_tokens > 0 && allowance.day.tokens >= limits.day_tokens),
        (
            Bound::DayCost,
            limits.day_cost > 0.0 && allowance.day.micro_dollars >= micro_dollars(limits.day_cost),
        ),
    ];
    Ok(checks.into_iter().find_map(|(bound, is_reached)| is_reached.then_some(bound)))
}

/// Says once that a limit on money cannot hold, because nobody knows what a call cost.
fn warn_of_unknown_price(turn: &mut Turn<'_>) {
    let limits = &turn.allowance.limits;
    let names = [("limits.runCost", limits.run_cost), ("limits.dayCost", limits.day_cost)];
    let set: Vec<&str> =
        names.iter().filter(|(_, dollars)| *dollars > 0.0).map(|(name, _)| *name).collect();
    if turn.allowance.has_warned_of_price
        || set.is_empty()
        || turn.tally.usage.cost.unpriced_calls == 0
    {
        return;
    }
    turn.allowance.has_warned_of_price = true;
    let Model { provider, id, .. } = &turn.model.model;
    turn.notice(Notice::PriceUnknown {
        provider: provider.clone(),
        model: id.clone(),
        limits: set.join(" and "),
    });
}

/// Adds what was used since the last time to the day's totals, and learns what other runs have added. A budget that
/// cannot be kept is told once; it is no reason to fail a conversation.
pub(super) async fn record_usage(turn: &mut Turn<'_>) -> Result<(), RunError> {
    let (usage, recorded) = (turn.tally.usage, turn.allowance.recorded);
    let used = Spent {
        tokens: usage.total_tokens - recorded.total_tokens,
        micro_dollars: micro_dollars(usage.cost.total - recorded.cost.total),
    };
    let spending = turn.allowance.spending.clone();
    let day = day_of(turn.now_ms());
    let blocking = tokio::task::spawn_blocking(move || {
        if used == Spent::default() { spending.of(&day) } else { spending.add(&day, used) }
    });
    match blocking.await.map_err(|error| RunError::Internal(error.to_string()))? {
        Ok(day) => {
            turn.allowance.day = day;
            turn.allowance.recorded = usage;
            tell_of_damage(turn);
        }
        Err(error) if !turn.allowance.has_warned => {
            turn.allowance.has_warned = true;
            turn.notice(Notice::DayTotalsUnavailable { error: error.to_string() });
        }
        Err(_) => {}
    }
    Ok(())
}

/// Says once that the totals of the day were lost.
fn tell_of_damage(turn: &mut Turn<'_>) {
    let spending = &turn.allowance.spending;
    let Some(copy) = spending.set_aside().filter(|_| !turn.allowance.has_warned) else { return };
    let (path, backup) = (spending.path().to_owned(), copy.to_owned());
    turn.allowance.has_warned = true;
    turn.notice(Notice::DayTotalsLost { path, backup });
}

/// The day in UTC, as `2026-01-31`.
fn day_of(timestamp_ms: u64) -> String {
    let time = i64::try_from(timestamp_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(TimeZone::UTC).date().to_string()
}

/// Rounded up, so that many small calls are not free.
fn micro_dollars(dollars: f64) -> u64 {
    (dollars * 1e6 - 1e-6).ceil().max(0.0) as u64
}
